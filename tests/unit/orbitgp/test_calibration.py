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


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        ([[0.9, 0.1]], ["cat"], "labels must be integers from 0 to 1"),
        ([[0.9, 0.1]], [3], "searchsorted"),
        ([[0.9, 0.1]], [-1], "from 0 to 1"),
        ([[0.9, 0.1], [0.2, 0.8]], [0], "one for each of 2 rows"),
        ([[0.9, 0.1]], [[0]], r"of shape \[1, 1\]"),
        ([[np.nan, 0.1]], [0], "between 0 and 1"),
        ([0.9, 0.1], [0, 1], r"must be \[N, K\]"),
    ],
)
def test_what_is_no_probability_and_no_column_is_refused(probabilities, labels, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(np.array(probabilities), np.array(labels))
    with pytest.raises(ValueError, match="bins"):
        expected_calibration_error(np.array([[0.9, 0.1]]), np.array([0]), bins=0)
