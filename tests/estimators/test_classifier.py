import os
import signal
import threading

import numpy as np
import pytest
from estimators.conftest import SMALL
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from orbitgp import InvariantClassifier, orbits
from orbitgp.likelihoods import PolyaGammaBernoulli


def test_it_learns_digits_and_says_how_sure_it_is(classifier, digits):
    (images, _), (new, labels) = digits
    probabilities = classifier.predict_proba(new)
    assert probabilities.shape == (300, 10) and np.all(probabilities >= 0)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-12)
    np.testing.assert_array_equal(classifier.predict(new), classifier.classes_[probabilities.argmax(1)])
    assert classifier.score(new, labels) > 0.85
    sure = probabilities.max(1)
    right = classifier.predict(new) == labels
    assert sure[right].mean() > sure[~right].mean() + 0.1
    alone = classifier.predict_proba(new[7:8])[0]  # a function of the image, up to the rounding of float32
    np.testing.assert_allclose(alone, probabilities[7], rtol=1e-4, atol=1e-7)
    assert classifier.image_shape_ == (8, 8, 1) and classifier.model_.num_data == len(images)


def test_images_that_are_there_twice_give_one_inducing_point(bars):
    images, labels = (np.concatenate([part[:12]] * 2) for part in bars)
    model = InvariantClassifier("none", steps=2).fit(images, labels)
    assert model.sizes_.inducing == len(np.unique(images[:12], axis=0)) < 24


def test_two_classes_of_words_in_colour_by_the_logistic_likelihood(bars):
    images, labels = bars
    model = InvariantClassifier("translation", **SMALL | {"inducing": 20}).fit(images[:60], labels[:60])
    assert isinstance(model.model_.likelihood, PolyaGammaBernoulli)
    assert model.classes_.tolist() == ["level", "upright"] and set(model.predict(images)) == {"level", "upright"}
    assert model.score(images[60:], labels[60:]) > 0.7
    np.testing.assert_allclose(model.predict_proba(images).sum(1), 1, rtol=1e-12)


@pytest.mark.parametrize("likelihood", ["dirichlet", "softmax", "logistic_softmax"])
def test_other_likelihoods_have_probabilities_and_files_too(likelihood, digits, tmp_path):
    model = InvariantClassifier("rotation", likelihood=likelihood, **SMALL).fit(*digits[0])
    new, labels = digits[1]
    assert model.score(new, labels) > 0.7
    probabilities = model.predict_proba(new)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-9)
    model.save(tmp_path / "a.orbitgp")
    np.testing.assert_array_equal(InvariantClassifier.load(tmp_path / "a.orbitgp").predict_proba(new), probabilities)


def test_large_colour_images_and_orbits_of_ones_own_by_path_and_as_they_are():
    rng = np.random.default_rng(0)
    images, labels = rng.uniform(size=(12, 64, 48, 3)), np.arange(12) % 3
    tiny = {"inducing": 4, "batch": 6, "draws": 4, "steps": 3, "verbose": False}
    mine = orbits.Rotation((64, 48, 3), alpha=30)
    for orbit in ("orbitgp.orbits:Scaling", mine):
        model = InvariantClassifier(orbit, **tiny).fit(images, labels)
        assert model.image_shape_ == (64, 48, 3) and model.predict(images[:1]).shape == (1,)
    assert mine.alpha.numpy() == pytest.approx(30) and model.orbit_.alpha.numpy() != pytest.approx(30, abs=1e-9)


@pytest.mark.parametrize("kind", [object, "S", float])
def test_labels_may_be_strings_as_pandas_has_them_bytes_or_whole_floats(kind, bars, tmp_path):
    labels = (np.arange(80) % 3).astype(str).astype(kind)
    tiny = {"inducing": 4, "batch": 6, "draws": 4, "steps": 2, "verbose": False}
    model = InvariantClassifier("none", **tiny).fit(bars[0], labels)
    assert model.classes_.tolist() == ([0.0, 1.0, 2.0] if kind is float else ["0", "1", "2"])
    model.save(tmp_path / "a.orbitgp")
    loaded = InvariantClassifier.load(tmp_path / "a.orbitgp")
    np.testing.assert_array_equal(loaded.predict(bars[0]), model.predict(bars[0]))


def test_scikit_learns_conventions(digits):
    images, labels = digits[0]
    model = InvariantClassifier("rotation", **SMALL)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(seed=3).seed == 3 and "orbit='rotation'" in repr(model)
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), model.set_params(steps=3, inducing=10))
    assert pipeline.fit(images[:60], labels[:60]).predict(images[:5]).shape == (5,)
    with pytest.raises(NotFittedError):
        clone(model).predict(images)


def test_ctrl_c_keeps_what_there_is(digits):
    model = InvariantClassifier("affine", **SMALL | {"steps": 100_000})
    timer = threading.Timer(12, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    before = signal.getsignal(signal.SIGINT)
    model.fit(*digits[0])
    timer.join()
    assert model.interrupted_ and 0 < model.sizes_.steps < 100_000 and np.isfinite(model.evidence_)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_budget_of_time_is_turned_into_steps(digits, capsys):
    model = InvariantClassifier("affine", **SMALL | {"steps": None, "time_budget": 1.0, "verbose": True})
    model.fit(*digits[0])
    assert 10 <= model.sizes_.steps < 1000
    assert f"30 inducing points, {model.sizes_.steps} steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "images", "labels", "message"),
    [
        ({}, np.zeros((4, 3)), [0, 1, 0, 1], r"images must be \[N, H, W\]"),
        ({}, np.zeros((4, 3, 3)), [0, 1], "one for each of the 4 images"),
        ({}, np.eye(3)[[[0, 1, 2]] * 4], [1, 1, 1, 1], "two classes at least"),
        ({}, np.eye(3)[[[0, 1, 2]] * 4], [0.5, 1, 1, 1], "integers or strings"),
        ({}, np.eye(3)[[[0, 1, 2]] * 4], [np.inf, 1, 1, 1], "integers or strings"),
        ({}, np.eye(3)[[[0, 1, 2]] * 4], [None, "a", "b", "a"], "integers or strings, not object"),
        ({}, np.zeros((4, 3, 3)), [0, 1, 0, 1], "images must differ"),
        ({"likelihood": "probit"}, np.zeros((4, 3, 3)), [0, 1, 0, 1], "likelihood"),
        ({"likelihood": "logistic"}, np.zeros((4, 3, 3)), [0, 1, 2, 1], "two classes"),
        ({"orbit": "spin"}, None, None, "orbit = 'spin' must be one of none, rotation"),
        ({"orbit": "numpy:zeros"}, None, None, "makes a ndarray"),
        ({"orbit": "nowhere.at:All"}, None, None, "cannot be imported"),
        ({"orbit": 3}, None, None, "orbit must be a name"),
        ({"steps": 5, "time_budget": 3.0}, None, None, "give one of them"),
        ({"draws": 5}, None, None, "draws must be even"),
        ({"inducing": 300}, None, None, "at most 40"),
    ],
)
def test_bad_input_is_named(settings, images, labels, message, digits):
    if images is None:
        images, labels = (part[:40] for part in digits[0])
    with pytest.raises((ValueError, TypeError), match=message):
        InvariantClassifier(**{"verbose": False} | settings).fit(images, labels)


def test_images_of_another_shape_are_refused(classifier):
    with pytest.raises(ValueError, match=r"must be \(8, 8, 1\) each"):
        classifier.predict(np.zeros((1, 8, 9)))
