import json
import subprocess
import sys

import numpy as np
import pytest
from estimators.conftest import SMALL

import orbitgp
from orbitgp import InvariantClassifier, InvariantRegressor, orbits
from orbitgp.files import DamagedFile

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


def test_a_saved_model_serves_without_gpflow_and_this_package(classifier, digits, tmp_path):
    new = digits[1][0][:20].astype(np.float32)
    np.save(tmp_path / "new.npy", new)
    classifier.export(tmp_path / "served")
    run(SERVE, tmp_path / "served", tmp_path / "new.npy", tmp_path / "found.npy")
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), classifier.predict_proba(new), rtol=1e-5, atol=1e-9)
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
        ({"image_shape": [100000, 100000, 3]}, DamagedFile, "shapes of a model"),
        ({"classes": [1]}, DamagedFile, "name its classes"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(changes, error, message, saved, tmp_path):
    with pytest.raises(error, match=message):
        orbitgp.load(changed(saved, tmp_path / "other.npz", **changes))


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
