from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbitgp import datasets, files
from orbitgp.datasets import ImageData
from orbitgp.files import DamagedFile
from orbitgp_paper.experiments.images import ARRAYS, KINDS, make_dataset, read_dataset, write_dataset

SETTINGS: dict[str, dict[str, Any]] = {
    "mnist": {"kind": "mnist", "train": 70, "test": 30},
    "parity": {"kind": "parity", "alpha": 90, "seed": 2, "train": 40, "test": 20},
    "rotated": {"kind": "rotated", "seed": 2, "train": 40, "test": 20},
}


def assert_same(one: ImageData, other: ImageData) -> None:
    for mine, theirs in ((one.train, other.train), (one.test, other.test)):
        assert mine.images.dtype == theirs.images.dtype == np.float32
        assert mine.images.tobytes() == theirs.images.tobytes()
        np.testing.assert_array_equal(mine.labels, theirs.labels)


# -- making --------------------------------------------------------------------------------------------------------


def test_mnist_is_its_first_images(mnist_data: ImageData) -> None:
    made = make_dataset(SETTINGS["mnist"])
    assert (len(made.train), len(made.test)) == (70, 30)
    assert_same(made, ImageData("mnist", mnist_data.train.take(70), mnist_data.test.take(30)))


def test_parity_is_that_of_the_first_images(mnist_data: ImageData) -> None:
    digits = ImageData("mnist", mnist_data.train.take(40), mnist_data.test.take(20))
    assert_same(make_dataset(SETTINGS["parity"]), datasets.parity(90, 2, digits))
    assert set(make_dataset(SETTINGS["parity"]).train.labels) == {-1, 1}


def test_rotated_takes_sizes_and_seed(mnist_data: ImageData) -> None:
    made = make_dataset(SETTINGS["rotated"])
    assert_same(made, datasets.rotated(2, 40, 20, mnist_data))
    assert not np.array_equal(made.train.images, make_dataset(SETTINGS["rotated"] | {"seed": 3}).train.images)


def test_the_users_own_images_and_folder(tmp_path: Path, small_images: ImageData) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, images=small_images.train.images, labels=small_images.train.labels)
    made = make_dataset({"kind": "images", "path": str(path), "test_fraction": 0.25, "seed": 1})
    assert_same(made, datasets.images(path, 0.25, 1))
    assert (len(made.train), len(made.test)) == (45, 15)
    for kind in ("mnist", "parity"):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            make_dataset(SETTINGS[kind] | {"folder": str(tmp_path / "nowhere")})


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match=r"dataset\.kind must be one of 'mnist', .*, got 'cifar'"):
        make_dataset({"kind": "cifar"})
    assert set(KINDS) == {"mnist", "parity", "rotated", "images"}


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_data_set_comes_back_to_the_bit(tmp_path: Path, kind: str) -> None:
    made = make_dataset(SETTINGS[kind])
    path = tmp_path / "data" / "mine.npz"
    write_dataset(path, made)
    read = read_dataset(path)
    assert_same(read, made)
    assert read.name == "mine"
    stored = files.read_npz(path, ARRAYS)
    assert {name: stored[name].dtype for name in ("train_images", "test_images")} == dict.fromkeys(
        ("train_images", "test_images"), np.dtype(np.uint8 if kind == "mnist" else np.float32)
    )
    first = path.read_bytes()
    write_dataset(path, make_dataset(SETTINGS[kind]))
    assert path.read_bytes() == first


def test_every_byte_is_exact_as_a_float(tmp_path: Path) -> None:
    pixels = (np.arange(256, dtype=np.uint8) / np.float32(255)).reshape(1, 16, 16, 1)
    almost = np.nextafter(pixels, np.float32(0.5))  # no byte any more
    part = datasets.Images(pixels, np.zeros(1, np.int64))
    write_dataset(tmp_path / "a.npz", ImageData("a", part, datasets.Images(almost, np.zeros(1, np.int64))))
    read = read_dataset(tmp_path / "a.npz")
    assert read.train.images.tobytes() == pixels.tobytes()
    assert read.test.images.tobytes() == almost.tobytes()
    stored = files.read_npz(tmp_path / "a.npz")
    assert stored["train_images"].dtype == np.uint8
    assert stored["test_images"].dtype == np.float32


@pytest.fixture
def file(tmp_path: Path, small_images: ImageData) -> Path:
    write_dataset(tmp_path / "small.npz", small_images)
    return tmp_path / "small.npz"


@pytest.mark.parametrize("keep", [0, 10, 1000, -1])
def test_half_a_file_is_named(file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DamagedFile, match=str(file)):
        read_dataset(file)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"train_images": None}, "lacks the arrays train_images"),
        ({"test_labels": None}, "lacks the arrays test_labels"),
        ({"train_images": np.zeros((60, 8, 8), np.uint8)}, r"images must be \[N, H, W, C\], not \[60, 8, 8\]"),
        ({"train_images": np.full((60, 8, 8, 1), 2, np.float32)}, r"images must lie in \[0, 1\]"),
        ({"train_images": np.zeros((60, 8, 8, 1))}, "images must be float32, not float64"),
        ({"train_images": np.zeros((60, 8, 8, 1), np.int16)}, "images must be floating, not int16"),
        ({"train_labels": np.zeros(59, np.int64)}, "there are 60 images but 59 labels"),
        ({"test_labels": np.zeros(30)}, "labels must be int64, not float64"),
        ({"test_images": np.zeros((30, 9, 9, 1), np.uint8)}, "training images are .* but test images"),
    ],
)
def test_what_is_no_data_set_is_named(file: Path, change: dict[str, Any], says: str) -> None:
    arrays = files.read_npz(file) | change
    files.write_npz(file, {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(DamagedFile, match=f"{file} .*{says}"):
        read_dataset(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.npz"):
        read_dataset(tmp_path / "absent.npz")
