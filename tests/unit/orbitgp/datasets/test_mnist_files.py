import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orbitgp.datasets import ImageData, fashion_mnist, mnist, mnist_files
from orbitgp.datasets.mnist_files import FASHION, FOLDER_IN_REPOSITORY, FOLDER_OF_DEBIAN, MNIST

EXPECTED = MNIST.expected
SMALL = "t10k-labels-idx1-ubyte"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with all four files, each a link that a test may replace."""
    for name in EXPECTED:
        (tmp_path / f"{name}.gz").symlink_to(FOLDER_IN_REPOSITORY / f"{name}.gz")
    return tmp_path


def test_sizes_range_and_labels(mnist_data: ImageData) -> None:
    assert mnist_data.name == "mnist"
    assert (len(mnist_data.train), len(mnist_data.test)) == (60_000, 10_000)
    assert mnist_data.train.shape == (28, 28, 1)
    assert mnist_data.train.images.max() == 1 and mnist_data.train.images.min() == 0
    assert np.array_equal(mnist_data.train.labels[:10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])
    assert np.array_equal(np.bincount(mnist_data.test.labels)[:3], [980, 1135, 1032])
    assert mnist_data.classes == tuple(range(10))
    ones = mnist_data.train.images[mnist_data.train.labels == 1][..., 0].mean(axis=0)
    rows, columns = ones.sum(axis=1) > 0.5, ones.sum(axis=0) > 0.5
    assert rows.sum() > columns.sum()  # a one is taller than wide, so rows come first


def test_sums_in_code_are_those_beside_the_data() -> None:
    lines = (FOLDER_IN_REPOSITORY / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split() for line in lines)}
    assert {name: sums[name] for name in EXPECTED} == {name: e.sha256 for name, e in EXPECTED.items()}
    for name in EXPECTED:
        packed = (FOLDER_IN_REPOSITORY / f"{name}.gz").read_bytes()
        assert hashlib.sha256(packed).hexdigest() == sums[f"{name}.gz"]


def test_a_folder_of_the_users(folder: Path, mnist_data: ImageData) -> None:
    packed = folder / f"{SMALL}.gz"
    plain = gzip.decompress(packed.read_bytes())
    packed.unlink()
    (folder / SMALL).write_bytes(plain)
    loaded = mnist(folder)
    assert np.array_equal(loaded.test.labels, mnist_data.test.labels)
    assert np.array_equal(loaded.test.images, mnist_data.test.images)


def test_the_folder_given_then_the_variables_then_the_repositorys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("orbitgp.datasets.mnist_files.FOLDER_IN_REPOSITORY", tmp_path / "data" / "mnist")
    monkeypatch.setenv("ORBITGP_MNIST", str(tmp_path / "from-variable"))
    with pytest.raises(FileNotFoundError, match=r"from-argument.*the folder given"):
        mnist(tmp_path / "from-argument")
    with pytest.raises(FileNotFoundError, match=r"from-variable.*environment variable ORBITGP_MNIST"):
        mnist()
    monkeypatch.delenv("ORBITGP_MNIST")
    with pytest.raises(FileNotFoundError, match=r"data/mnist .*repository.*ORBITGP_MNIST is not set"):
        mnist()
    with pytest.raises(FileNotFoundError, match=r"neither train-labels-idx1-ubyte nor train-labels-\S+\.gz"):
        mnist(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><title>403 Forbidden</title>", "looks like an HTML page"),
        (gzip.compress(bytes(60_008)), "not the ones expected"),
    ],
    # named here, because gzip writes the time into its header and every process must find the same tests
    ids=["html", "other"],
)
def test_every_load_checks_the_sums(folder: Path, content: bytes, message: str) -> None:
    path = folder / "train-labels-idx1-ubyte.gz"
    path.unlink()
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        mnist(folder)
    assert str(path) in str(caught.value)
    assert EXPECTED["train-labels-idx1-ubyte"].sha256 in str(caught.value)


def test_fashion_mnist_is_read_as_mnist_is(monkeypatch: pytest.MonkeyPatch, mnist_data: ImageData, tmp_path) -> None:
    """With MNIST's own files in place of clothes, whose sums alone would refuse them."""
    with pytest.raises(ValueError, match="not the ones expected"):
        fashion_mnist(FOLDER_IN_REPOSITORY)
    monkeypatch.setattr(mnist_files, "FOLDER_OF_DEBIAN", tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"fashion_mnist at .*nowhere .*package dataset-fashion-mnist"):
        fashion_mnist()
    monkeypatch.setattr(mnist_files, "FASHION", replace(FASHION, sums=MNIST.sums))
    monkeypatch.setenv("ORBITGP_FASHION_MNIST", str(FOLDER_IN_REPOSITORY))
    loaded = fashion_mnist()
    assert (loaded.name, loaded.classes[9], len(set(loaded.classes))) == ("fashion_mnist", "ankle boot", 10)
    assert np.array_equal(loaded.test.images, mnist_data.test.images)


@pytest.mark.skipif(not FOLDER_OF_DEBIAN.is_dir(), reason="Debian's package dataset-fashion-mnist is not installed")
def test_the_files_of_debians_package() -> None:
    loaded = fashion_mnist()
    assert np.array_equal(np.bincount(loaded.train.labels), [6000] * 10)
    boots = loaded.train.images[loaded.train.labels == 9][..., 0].mean(axis=0)
    assert boots[14:].sum() > 2 * boots[:8].sum()  # the shaft of a boot is narrower than its foot
