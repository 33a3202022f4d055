import gpflow
import numpy as np
import pytest

from orbitgp import orbits
from orbitgp.datasets import ImageData, Images
from orbitgp.inducing import BasePoints
from orbitgp.insensitivity import insensitivity
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP
from orbitgp.schemes import FullOrbit, Groups
from orbitgp_paper.experiments.deviations import measure

SIDE, OUTPUTS = 5, 3
LABELS = np.array([2, 0, 0, 0, 7, 2, 0, 7, 2, 0])
SETTINGS = {"seed": 3, "images": 8, "draws": 6, "samples": 8, "thresholds": [0.3, 0.01, 0.1]}


@pytest.fixture(scope="module")
def data():
    images = np.random.default_rng(0).uniform(size=(len(LABELS), SIDE, SIDE, 1)).astype(np.float32)
    part = Images(images, LABELS)
    return ImageData("noise", part, part)


def make_model(orbit, scheme=None, precision="float64", input_dim=SIDE**2):
    rng = np.random.default_rng(1)
    model = InvariantSVGP(
        Invariant(gpflow.kernels.SquaredExponential(1.3, 1.5), orbit),
        gpflow.likelihoods.Gaussian(0.1),
        BasePoints(rng.uniform(size=(6, input_dim))),
        num_latent_gps=OUTPUTS,
        scheme=scheme or Groups(2, 4),
        precision=precision,
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


@pytest.mark.parametrize("precision", ["float64", "mixed"])
def test_the_lemma_holds_for_every_class(data, precision):
    frame = measure(make_model(orbits.Rotation((SIDE, SIDE), 10.0), precision=precision), data, SETTINGS)
    assert np.all(frame.probability > 0)
    assert np.all(frame.probability <= frame.bound + 1e-9)
    assert np.any(frame.bound < 1)
    assert np.all(frame.bound <= np.minimum(1, frame.expected_square / frame.threshold) + 1e-9)


@pytest.mark.parametrize("orbit", [orbits.Identity(), orbits.RightAngles((SIDE, SIDE))], ids=["identity", "group"])
def test_a_strictly_invariant_model_never_deviates(data, orbit):
    frame = measure(make_model(orbit, FullOrbit()), data, SETTINGS)
    np.testing.assert_allclose(frame[["probability", "bound", "expected_square"]], 0, atol=1e-9)


def test_a_wider_orbit_is_crossed_with_larger_steps(data):
    narrow, wide = (
        measure(make_model(orbits.Rotation((SIDE, SIDE), alpha)), data, SETTINGS).expected_square
        for alpha in (5.0, 40.0)
    )
    assert np.all(wide > narrow)


def test_the_seed_decides_the_numbers(data):
    model = make_model(orbits.Rotation((SIDE, SIDE), 60.0))
    first, again, other = (measure(model, data, SETTINGS | {"seed": seed}) for seed in (3, 3, 4))
    assert first.equals(again)
    assert not first.equals(other)


def test_keys_that_belong_to_others_are_let_be(data):
    model = make_model(orbits.Identity(), FullOrbit())
    assert measure(model, data, SETTINGS | {"experiment": "mnist", "variants": []}).equals(
        measure(model, data, SETTINGS)
    )


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"model": 3}, TypeError, "model must be an InvariantSVGP"),
        ({"data": 3}, TypeError, "data must be an ImageData"),
        ({"settings": {"images": 8}}, ValueError, "seed, draws, samples, thresholds not among"),
        ({"settings": SETTINGS | {"images": 2}}, ValueError, "images must be an integer of at least 3 and at most 10"),
        ({"settings": SETTINGS | {"images": 11}}, ValueError, "images must be an integer of at least 3 and at most 10"),
        ({"settings": SETTINGS | {"draws": 0}}, ValueError, "draws"),
        ({"settings": SETTINGS | {"samples": "8"}}, TypeError, "samples"),
        ({"settings": SETTINGS | {"thresholds": [0.0]}}, ValueError, "thresholds"),
        ({"settings": SETTINGS | {"seed": -1}}, ValueError, "seed"),
        (
            {"model": make_model(orbits.Identity(), FullOrbit(), input_dim=9)},
            ValueError,
            "25 values.* inputs have 9",
        ),
    ],
)
def test_bad_arguments_are_named(data, change, error, says):
    arguments = {"model": make_model(orbits.Identity(), FullOrbit()), "data": data, "settings": SETTINGS} | change
    with pytest.raises(error, match=says):
        measure(**arguments)
