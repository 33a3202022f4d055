"""Confidence beside accuracy, against slow loops and exact values."""

import numpy as np
import pytest

from orbitgp.calibration import expected_calibration_error, reliability


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_bins_and_error_are_a_slow_loops(bins):
    rng = np.random.default_rng(0)
    probabilities, labels = rng.dirichlet(np.ones(3), size=200), rng.integers(3, size=200)
    rows, error = [], 0.0
    for number in range(bins):
        inside = [i for i, row in enumerate(probabilities) if number / bins <= row.max() < (number + 1) / bins]
        if inside:
            confidence = np.mean([probabilities[i].max() for i in inside])
            accuracy = np.mean([probabilities[i].argmax() == labels[i] for i in inside])
            rows.append((number, confidence, accuracy, len(inside)))
            error += abs(confidence - accuracy) * len(inside) / 200
    assert np.allclose(np.transpose(reliability(probabilities, labels, bins)), rows)
    assert expected_calibration_error(probabilities, labels, bins) == pytest.approx(error)


def test_certainty_belongs_to_the_last_bin_and_costs_nothing_where_it_is_right():
    certain = np.eye(4)[[0, 1, 2, 3]]
    assert reliability(certain, np.arange(4)).bin.tolist() == [14]
    assert expected_calibration_error(certain, np.arange(4)) == 0
    assert expected_calibration_error(certain, np.array([0, 1, 3, 2])) == 0.5
