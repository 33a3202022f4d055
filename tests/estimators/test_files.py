import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from estimators.conftest import SMALL
from sklearn.exceptions import NotFittedError

import orbitgp
from orbitgp import InvariantClassifier, InvariantRegressor, orbits
from orbitgp.estimators import storage
from orbitgp.files import DamagedFile

ROOT = Path(__file__).parents[2]

PREDICT = """
import sys
import numpy as np, tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[4]))
import orbitgp
np.save(sys.argv[3], orbitgp.load(sys.argv[1]).predict_proba(np.load(sys.argv[2])))
"""

SERVE = """
import sys
sys.modules.update(gpflow=None, orbitgp=None, tensorflow_probability=None)
import numpy as np, tensorflow as tf
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
images = tf.constant(np.load(sys.argv[2])[..., None], tf.float32)
np.save(sys.argv[3], served(images=images)["probabilities"])
"""


@pytest.fixture(scope="module")
def saved(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "digits.orbitgp"
    classifier.save(path)
    return path


def run(code, *arguments):
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True, capture_output=True)


def changed(path, target, **changes):
    """A copy with another manifest or other arrays."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    manifest = json.loads(str(arrays["manifest"]))
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value
        else:
            manifest[name] = value
    np.savez(target, **arrays | {"manifest": np.array(json.dumps(manifest))})
    return target.with_suffix(".npz") if target.suffix != ".npz" else target


def test_a_file_predicts_the_same_bytes_here_and_elsewhere(saved, classifier, digits, tmp_path):
    new = digits[1][0]
    expected = classifier.predict_proba(new)
    loaded = InvariantClassifier.load(saved)
    np.testing.assert_array_equal(loaded.predict_proba(new), expected)
    assert loaded.describe() == classifier.describe() and loaded.get_params() == classifier.get_params()
    np.save(tmp_path / "new.npy", new)
    for threads in (1, 2):
        run(PREDICT, saved, tmp_path / "new.npy", tmp_path / "found.npy", threads)
        np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected)


def test_a_large_model_predicts_the_same_bytes_with_any_number_of_threads(mnist_data, tmp_path):
    """TensorFlow shares large products among its threads, and sums in an order that depends on their number."""
    images, model = mnist_data.test.take(300).images, ROOT / "results" / "paper" / "models" / "affine.orbitgp"
    np.save(tmp_path / "new.npy", images)
    expected = orbitgp.load(model).predict_proba(images)
    for threads in (1, 4):
        run(PREDICT, model, tmp_path / "new.npy", tmp_path / "found.npy", threads)
        np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected)


def test_a_saved_model_serves_without_gpflow_and_this_package(classifier, digits, tmp_path):
    new = digits[1][0][:20].astype(np.float32)
    np.save(tmp_path / "new.npy", new)
    classifier.export(tmp_path / "served")
    run(SERVE, tmp_path / "served", tmp_path / "new.npy", tmp_path / "found.npy")
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), classifier.predict_proba(new), rtol=1e-5, atol=1e-9)
    served = tf.saved_model.load(tmp_path / "served").signatures
    as_bytes = np.round(255 * new).astype(np.uint8)[..., None]
    found = served["bytes"](images=tf.constant(as_bytes))["probabilities"]
    np.testing.assert_allclose(found, classifier.predict_proba(as_bytes), rtol=1e-5, atol=1e-9)
    with pytest.raises(tf.errors.InvalidArgumentError, match="images must lie in"):
        served["serving_default"](images=tf.constant(as_bytes, tf.float32))
    with pytest.raises(FileExistsError, match="served exists already"):
        classifier.export(tmp_path / "served")


def test_an_orbit_of_ones_own_is_passed_again(digits, tmp_path):
    images, labels = (part[:60] for part in digits[0])
    settings = SMALL | {"steps": 3, "inducing": 10}
    model = InvariantClassifier(orbits.Rotation, **settings).fit(images, labels)
    model.save(tmp_path / "own.orbitgp")
    with pytest.raises(ValueError, match="pass it again, as orbit="):
        orbitgp.load(tmp_path / "own.orbitgp")
    loaded = orbitgp.load(tmp_path / "own.orbitgp", orbit=orbits.Rotation)
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))
    with pytest.raises(DamagedFile, match="does not have the parameters"):
        orbitgp.load(tmp_path / "own.orbitgp", orbit="affine")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"version": 99}, ValueError, "newer orbitgp"),
        ({"format": "another"}, DamagedFile, "not a file of an orbitgp model"),
        ({"q_mu": np.zeros((2, 2))}, DamagedFile, "not those that its manifest"),
        ({"sizes": 3}, DamagedFile, "sizes in its manifest"),
        ({"orbit": "os:system"}, DamagedFile, "an unknown orbit"),
        ({"estimator": "Thief"}, DamagedFile, "an unknown estimator"),
        ({"image_shape": [100000, 100000, 3]}, DamagedFile, "inducing points have 64 values"),
        ({"image_shape": [8, 8]}, DamagedFile, "whole model"),
        ({"image_shape": ["8", "8", "1"]}, DamagedFile, "image_shape must be an integer"),
        ({"classes": [1]}, DamagedFile, "name its classes"),
        ({"classes": [["a"], ["b", "c"]]}, DamagedFile, "name its classes"),
        ({"classes": ["a"] * 10}, DamagedFile, "name its classes"),
        ({"classes": ["a", "b", "c"]}, DamagedFile, "10 outputs, for 3 classes"),
        ({"version": 0}, DamagedFile, "not a file of an orbitgp model"),
        ({"version": True}, DamagedFile, "not a file of an orbitgp model"),
        ({"versions": None}, DamagedFile, "versions in its manifest"),
        ({"sizes": {"inducing": 40}}, DamagedFile, "whole model"),
        ({"images": -5}, DamagedFile, "num_data"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(changes, error, message, saved, tmp_path):
    with pytest.raises(error, match=message):
        orbitgp.load(changed(saved, tmp_path / "other.npz", **changes))


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("seed", "x", "seed must be an integer"),
        ("likelihood", "zap", "likelihood must be one of"),
        ("likelihood", [1], "likelihood must be one of"),
        ("likelihood", "logistic", "outputs, for"),
        ("components", "x", "a component must be"),
        ("zap", 1, "its settings are"),
    ],
)
def test_settings_of_no_estimator_are_refused(setting, value, message, saved, tmp_path):
    with np.load(saved) as archive:
        settings = json.loads(str(archive["manifest"]))["settings"] | {setting: value}
    with pytest.raises(DamagedFile, match=message):
        orbitgp.load(changed(saved, tmp_path / "other.npz", settings=settings))


@pytest.mark.parametrize("mean", [np.array(1.0), np.zeros((40, 3)), None])
def test_arrays_of_another_model_are_refused_with_right_sums_too(mean, saved, tmp_path):
    with np.load(saved) as archive:
        arrays = {name: archive[name] for name in archive.files}
    manifest = json.loads(str(arrays.pop("manifest")))
    arrays = {name: array for name, array in arrays.items() if name != "q_mu"} | (
        {} if mean is None else {"q_mu": mean}
    )
    manifest["sums"] = {name: storage._sum(array) for name, array in arrays.items()}
    np.savez(tmp_path / "other.npz", **arrays, manifest=np.array(json.dumps(manifest)))
    with pytest.raises(DamagedFile, match="whole model"):
        orbitgp.load(tmp_path / "other.npz")


def test_a_model_that_was_not_fitted_has_no_file(tmp_path):
    with pytest.raises(NotFittedError):
        InvariantClassifier().save(tmp_path / "none.orbitgp")


def test_files_of_other_kinds_are_refused(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        orbitgp.load(tmp_path / "none.orbitgp")
    (tmp_path / "half").write_bytes(saved.read_bytes()[:-1000])
    np.savez(tmp_path / "images.npz", images=np.zeros(3))
    np.savez(tmp_path / "pickled.npz", manifest=np.array([{}], object))
    for name in ("half", "images.npz", "pickled.npz"):
        with pytest.raises(DamagedFile, match=name):
            orbitgp.load(tmp_path / name)
    with pytest.raises(ValueError, match="holds an InvariantClassifier"):
        InvariantRegressor.load(saved)
