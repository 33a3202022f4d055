import gpflow
import numpy as np
import pytest
import tensorflow as tf

from orbitgp import orbits
from orbitgp.datasets import ImageData
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.models import InvariantSVGP
from orbitgp.schemes import FullOrbit, Groups
from orbitgp_paper.experiments.samples import draw_samples


@pytest.fixture(scope="module")
def data(mnist_data):
    return ImageData("some", mnist_data.train.take(20), mnist_data.test.take(100))


def make_model(orbit, scheme=None, **settings):
    kernel = Invariant(gpflow.kernels.SquaredExponential(0.02, 6.0), orbit)
    points = BasePoints(np.random.default_rng(0).uniform(size=(3, 784)))
    return InvariantSVGP(kernel, gpflow.likelihoods.Gaussian(0.02), points, scheme=scheme or Groups(2, 4), **settings)


class Scaled(orbits.Orbit):
    """An orbit that leaves the range of pixels."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    @property
    def num_uniforms(self):
        return 1

    def apply(self, X, U):
        return self.factor * tf.repeat(X[:, None, :], tf.shape(U)[1], axis=1)


@pytest.mark.parametrize(("digits", "labels"), [(1, [0]), (4, [0, 3, 6, 9]), (10, list(range(10)))])
def test_originals_are_the_first_test_images_of_classes_far_apart(data, digits, labels):
    found = draw_samples(make_model(orbits.Rotation((28, 28))), data, digits, 3, 0)
    assert found["labels"].tolist() == labels
    assert found["originals"].shape == (digits, 28, 28, 1)
    assert found["draws"].shape == (digits, 3, 28, 28, 1)
    assert {array.dtype for name, array in found.items() if name != "labels"} == {np.dtype(np.uint8)}
    for label, original in zip(labels, found["originals"], strict=True):
        first = next(image for image, own in zip(data.test.images, data.test.labels, strict=True) if own == label)
        np.testing.assert_array_equal(original, np.round(255 * first))


@pytest.mark.parametrize("precision", ["float64", "mixed"])
def test_draws_are_those_of_the_model_s_own_orbit(data, precision):
    found = draw_samples(make_model(orbits.Identity(), FullOrbit(), precision=precision), data, 4, 2, 0)
    np.testing.assert_array_equal(found["draws"], np.repeat(found["originals"][:, None], 2, axis=1))

    found = draw_samples(make_model(orbits.RightAngles((28, 28)), FullOrbit(), precision=precision), data, 4, 12, 0)
    turned = np.stack([np.rot90(found["originals"], k, axes=(1, 2)) for k in range(4)], axis=1)
    which = np.all(found["draws"][:, :, None] == turned[:, None], axis=(3, 4, 5))
    assert np.all(which.any(axis=2))
    assert len(np.unique(which.argmax(axis=2))) == 4, "each image has its own draws, and all angles occur"


def test_the_learned_range_is_seen_and_the_seed_decides_the_draws(data):
    narrow, wide, again, other = (
        draw_samples(make_model(orbits.Rotation((28, 28), alpha)), data, 4, 8, seed)
        for alpha, seed in ((1.0, 0), (90.0, 0), (90.0, 0), (90.0, 1))
    )
    far = [np.abs(f["draws"] - f["originals"][:, None].astype(float)).mean() for f in (narrow, wide)]
    assert far[1] > 5 * far[0] > 0
    np.testing.assert_array_equal(wide["draws"], again["draws"])
    assert not np.array_equal(wide["draws"], other["draws"])


def test_pixels_beyond_the_range_are_cut_and_what_is_no_number_is_not_drawn(data):
    found = draw_samples(make_model(Scaled(2.0)), data, 2, 1, 0)
    doubled = np.minimum(2 * found["originals"].astype(int), 255)
    np.testing.assert_array_equal(found["draws"][:, 0], doubled)
    np.testing.assert_array_equal(draw_samples(make_model(Scaled(-1.0)), data, 2, 1, 0)["draws"], 0)
    with pytest.raises(ValueError, match="not finite"):
        draw_samples(make_model(Scaled(np.nan)), data, 2, 1, 0)


def test_of_fewer_classes_all_are_drawn_and_a_model_of_other_images_is_refused(data):
    assert draw_samples(make_model(orbits.Identity()), data, 11, 1, 0)["labels"].tolist() == list(range(10))
    with pytest.raises(ValueError, match="784"):
        draw_samples(make_model(orbits.Rotation((14, 14))), data, 2, 1, 0)
