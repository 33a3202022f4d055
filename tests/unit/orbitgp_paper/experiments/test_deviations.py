import gpflow
import numpy as np
import pytest

from orbitgp import orbits
from orbitgp.datasets import ImageData, Images
from orbitgp.inducing import BasePoints
from orbitgp.insensitivity import insensitivity
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP
from orbitgp.schemes import Groups
from orbitgp_paper.experiments.deviations import measure

SIDE, OUTPUTS = 5, 3
LABELS = np.array([2, 0, 0, 0, 7, 2, 0, 7, 2, 0])
SETTINGS = {"seed": 3, "images": 8, "draws": 6, "samples": 8, "thresholds": [0.3, 0.01, 0.1]}


@pytest.fixture(scope="module")
def data():
    images = np.random.default_rng(0).uniform(size=(len(LABELS), SIDE, SIDE, 1)).astype(np.float32)
    part = Images(images, LABELS)
    return ImageData("noise", part, part)


def make_model(orbit):
    rng = np.random.default_rng(1)
    model = InvariantSVGP(
        Invariant(gpflow.kernels.SquaredExponential(1.3, 1.5), orbit),
        gpflow.likelihoods.Gaussian(0.1),
        BasePoints(rng.uniform(size=(6, SIDE**2))),
        num_latent_gps=OUTPUTS,
        scheme=Groups(2, 4),
    )
    model.q_mu.assign(rng.normal(size=(6, OUTPUTS)))
    model.q_sqrt.assign(0.5 * np.eye(6)[None])
    return model


def test_numbers_are_means_over_the_images_and_outputs_of_a_class(data):
    model = make_model(orbits.Rotation((SIDE, SIDE), 60.0))
    frame = measure(model, data, SETTINGS)
    assert list(frame) == ["view", "label", "threshold", "probability", "bound", "expected_square", "images"]
    assert len(frame) == 2 * 3 * 3

    # one of each class, then the next of each, while there are any: eight of the ten
    chosen = [1, 0, 4, 2, 5, 7, 3, 8]
    X, labels = data.test.inputs()[chosen], LABELS[chosen]
    for view in ("prior", "posterior"):
        found = insensitivity(model, X, SETTINGS["thresholds"], view=view, draws=6, samples=8, seed=3)
        assert found.probability.shape[1] == (OUTPUTS if view == "posterior" else 1)
        for label, images in ((0, 3), (2, 3), (7, 2)):
            for k, threshold in enumerate(SETTINGS["thresholds"]):
                of = (frame["view"] == view) & (frame.label == label) & (frame.threshold == threshold)
                (row,) = frame[of].itertuples()
                own = [n for n in range(len(chosen)) if labels[n] == label]
                values = [(n, p) for n in own for p in range(found.probability.shape[1])]
                squares = [found.expected_square[n, p] for n, p in values]
                assert row.images == images == len(own)
                assert row.probability == pytest.approx(np.mean([found.probability[n, p, k] for n, p in values]))
                assert row.expected_square == pytest.approx(np.mean(squares))
                assert row.bound == pytest.approx(np.mean([min(1.0, square / threshold) for square in squares]))


def test_a_wider_orbit_is_crossed_with_larger_steps_and_the_seed_decides_the_numbers(data):
    narrow, wide, again, other = (
        measure(make_model(orbits.Rotation((SIDE, SIDE), alpha)), data, SETTINGS | {"seed": seed}).expected_square
        for alpha, seed in ((5.0, 3), (40.0, 3), (40.0, 3), (40.0, 4))
    )
    assert np.all(wide > narrow)
    assert wide.equals(again) and not wide.equals(other)
