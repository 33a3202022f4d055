from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbitgp import datasets, files
from orbitgp.datasets import ImageData
from orbitgp.files import DamagedFile
from orbitgp_paper.experiments.images import dataset_digest, image_counts, make_dataset, read_dataset, write_dataset
from orbitgp_paper.spec import Dataset, parse_dataset

SETTINGS: dict[str, dict[str, Any]] = {
    "mnist": {"kind": "mnist", "train": 70, "test": 30},
    "parity": {"kind": "parity", "alpha": 90, "seed": 2, "train": 40, "test": 20},
    "rotated": {"kind": "rotated", "seed": 2, "train": 40, "test": 20},
    "transformed": {"kind": "transformed", "rotation": 90, "scale": 1.5, "seed": 2, "train": 40, "test": 20},
}


def dataset(kind: str, **changes: Any) -> Dataset:
    return parse_dataset({"name": "mine", **SETTINGS.get(kind, {"kind": kind}), **changes})


def assert_same(one: ImageData, other: ImageData) -> None:
    for mine, theirs in ((one.train, other.train), (one.test, other.test)):
        assert mine.images.dtype == theirs.images.dtype == np.float32
        assert mine.images.tobytes() == theirs.images.tobytes()
        np.testing.assert_array_equal(mine.labels, theirs.labels)


# -- making --------------------------------------------------------------------------------------------------------


def test_mnist_and_what_is_made_of_it(mnist_data: ImageData) -> None:
    first = ImageData("mnist", mnist_data.train.take(70), mnist_data.test.take(30))
    assert_same(make_dataset(dataset("mnist")), first)
    first = ImageData("mnist", mnist_data.train.take(40), mnist_data.test.take(20))
    made = make_dataset(dataset("parity"))
    assert_same(made, datasets.parity(90, 2, first))
    assert set(made.train.labels) == {-1, 1}
    made = make_dataset(dataset("transformed"))
    assert_same(made, datasets.transformed(first, 2, rotation=90, scale=1.5))
    enlarged = dataset("transformed", augment={"copies": 2, "rotation": 15.0})
    train = datasets.enlarged(made.train, 2, 2, rotation=15)
    assert_same(make_dataset(enlarged), ImageData("", train, made.test))
    assert image_counts(enlarged) == (120, 20, 784) and image_counts(dataset("transformed")) == (40, 20, 784)
    made = make_dataset(dataset("rotated"))
    assert_same(made, datasets.rotated(2, 40, 20, mnist_data))
    assert not np.array_equal(made.train.images, make_dataset(dataset("rotated", seed=3)).train.images)


@pytest.fixture
def mine(tmp_path: Path, small_images: ImageData) -> Path:
    path = tmp_path / "mine.npz"
    np.savez(path, images=small_images.train.images, labels=small_images.train.labels)
    return path


def test_the_users_own_images_and_folder(mine: Path) -> None:
    own = dataset("images", path=str(mine), test_fraction=0.25, seed=1)
    assert_same(make_dataset(own), datasets.images(mine, 0.25, 1))
    nowhere = {"folder": str(mine.with_name("nowhere"))}
    for kind, more in (("mnist", {}), ("parity", {}), ("transformed", {"source": "fashion_mnist"})):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            make_dataset(dataset(kind, **nowhere, **more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten colour images of 5 × 4 pixels, of two classes."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    for number in range(10):
        path = tmp_path / "photos" / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tf.io.encode_png(rng.integers(0, 256, (5, 4, 3), np.uint8)).numpy())
    return tmp_path / "photos"


@pytest.fixture
def idx_pair(tmp_path: Path) -> tuple[Path, Path]:
    """Ten images of 3 × 2 pixels, and their labels."""
    for name, array in (("images", np.arange(60, dtype=np.uint8).reshape(10, 3, 2)), ("labels", np.arange(10) % 2)):
        head = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
        (tmp_path / f"{name}.idx").write_bytes(head + array.astype(np.uint8).tobytes())
    return tmp_path / "images.idx", tmp_path / "labels.idx"


def test_own_images_may_be_a_folder_or_idx_files(folder: Path, idx_pair: tuple[Path, Path]) -> None:
    pictures = dataset("images", path=str(folder), test_fraction=0.3)
    pair = dataset("images", path=str(idx_pair[0]), labels=str(idx_pair[1]), test_fraction=0.3)
    for settings, shape, classes in ((pictures, (5, 4, 3), ("cat", "dog")), (pair, (3, 2, 1), (0, 1))):
        made = make_dataset(settings)
        assert made.train.shape == shape and made.classes == classes
        assert image_counts(settings) == (len(made.train), len(made.test), np.prod(shape)) == (7, 3, np.prod(shape))
    everything = datasets.read_labelled(folder)
    rows = {(image.tobytes(), label) for image, label in zip(*everything, strict=True)}
    made = make_dataset(pictures)
    names = np.array(made.classes)
    assert rows == {
        (image.tobytes(), label)
        for part in (made.train, made.test)
        for image, label in zip(part.images, names[part.labels], strict=True)
    }


def test_a_digest_stands_for_every_file_and_for_the_folder_it_is_in(folder: Path, idx_pair: tuple[Path, Path]) -> None:
    pictures = dataset("images", path=str(folder))
    found = [dataset_digest(pictures)]
    (folder / ".git").mkdir()
    (folder / ".git" / "index").write_text("not read")
    assert dataset_digest(pictures) == found[0]
    (folder / "dog").rename(folder.with_name("elsewhere"))
    (folder / "dog").symlink_to(folder.with_name("elsewhere"))  # a link is followed, as it is when images are read
    assert dataset_digest(pictures) == found[0]
    (folder / "cat" / "1.png").rename(folder / "dog" / "1.png")  # another class
    found.append(dataset_digest(pictures))
    (folder / "dog" / "1.png").write_bytes((folder / "dog" / "2.png").read_bytes())
    found.append(dataset_digest(pictures))
    pair = dataset("images", path=str(idx_pair[0]), labels=str(idx_pair[1]))
    found.append(dataset_digest(pair))
    idx_pair[1].write_bytes(idx_pair[1].read_bytes()[:-1] + b"\0")
    found.append(dataset_digest(pair))
    assert len(set(found)) == 5


def test_counts_are_those_of_the_images(mine: Path, small_images: ImageData) -> None:
    both = mine.with_name("both.npz")
    with np.load(mine) as arrays:
        np.savez_compressed(both, **arrays, test_images=arrays["images"][:7], test_labels=arrays["labels"][:7])
    given = [dataset("images", path=str(path), test_fraction=0.3) for path in (mine, both)]
    for settings in (*given, dataset("mnist"), dataset("rotated")):
        made = make_dataset(settings)
        assert image_counts(settings) == (len(made.train), len(made.test), made.train.inputs().shape[1])
    mine.write_text("no archive")
    with pytest.raises(ValueError, match=r"mine\.npz: expected an npz file"):
        image_counts(given[0])


def test_a_digest_stands_for_settings_code_and_the_users_file(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = dataset("images", path=str(mine))
    found = [dataset_digest(own), dataset_digest(dataset("rotated")), dataset_digest(dataset("rotated", seed=3))]
    content = mine.read_bytes()
    mine.write_bytes(content)  # another date
    assert dataset_digest(own) == found[0] and len(found[0]) == 16
    mine.write_bytes(content[:-1] + b"x")
    found.append(dataset_digest(own))
    monkeypatch.setattr("orbitgp_paper.sources.digest", lambda module: f"another {module}")
    found.append(dataset_digest(own))
    assert len(set(found)) == 5
    mine.unlink()
    with pytest.raises(FileNotFoundError, match=r"mine\.npz"):
        dataset_digest(own)


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_data_set_comes_back_to_the_bit_and_has_the_same_bytes_each_time(tmp_path: Path, kind: str) -> None:
    for name in ("mine", "again"):
        write_dataset(tmp_path / "data" / f"{name}.npz", made := make_dataset(dataset(kind)))
    read = read_dataset(tmp_path / "data" / "mine.npz")
    assert_same(read, made)
    assert read.name == "mine"
    assert (tmp_path / "data" / "mine.npz").read_bytes() == (tmp_path / "data" / "again.npz").read_bytes()


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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"train_images": None}, "lacks the arrays train_images"),
        ({"train_images": np.full((60, 8, 8, 1), 2, np.float32)}, r"images must lie in \[0, 1\]"),
        ({"train_images": np.zeros((60, 8, 8, 1))}, "images must be float32, not float64"),
        ({"test_images": np.zeros((30, 9, 9, 1), np.uint8)}, "training images are .* but test images"),
    ],
)
def test_what_is_no_data_set_is_named(file: Path, change: dict[str, Any], says: str) -> None:
    arrays = files.read_npz(file) | change
    files.write_npz(file, {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(DamagedFile, match=f"{file} .*{says}"):
        read_dataset(file)
