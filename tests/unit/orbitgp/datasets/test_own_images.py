import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbitgp.datasets import images
from orbitgp.datasets.own_images import count_images

PIXELS = np.random.default_rng(0).integers(0, 256, (10, 4, 5), np.uint8)
FLOATS = PIXELS / 255
LABELS = np.arange(10) % 2


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "mine.npz"
    np.savez_compressed(path, **{"images": PIXELS, "labels": LABELS, **arrays})
    return path


@pytest.fixture
def two_folders(tmp_path: Path) -> Path:
    """Five images to train on and three to test with, of two classes, in colour; a file and a hidden one beside."""
    import tensorflow as tf

    colours = np.stack([PIXELS] * 3, axis=-1)
    for number, name in enumerate(["train/cat", "train/dog", "train/cat", "train/dog", "train/dog", *["test/dog"] * 3]):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / f"{number}.png").write_bytes(tf.io.encode_png(colours[number]).numpy())
    (tmp_path / "README.md").write_text("ours")
    (tmp_path / ".hidden").write_text("not read")
    return tmp_path


def test_folders_train_and_test(two_folders: Path) -> None:
    data = images(two_folders)
    assert data.classes == ("cat", "dog")
    assert data.train.labels.tolist() == [0, 0, 1, 1, 1] and data.test.labels.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(data.test.images[..., 2], PIXELS[5:8] / np.float32(255))
    assert count_images(two_folders) == (5, 3, 4 * 5 * 3)


def test_a_class_that_only_the_test_folder_has(two_folders: Path) -> None:
    (two_folders / "test" / "dog").rename(two_folders / "test" / "cow")
    with pytest.raises(ValueError, match="every label of the test set must be one of the training labels"):
        images(two_folders)


def test_classes_may_be_called_train_and_test(two_folders: Path) -> None:
    for number, file in enumerate(sorted(two_folders.glob("*/*/*.png"))):
        file.rename(file.parents[1] / f"{number}.png")
    for folder in two_folders.glob("*/*/"):
        folder.rmdir()
    (two_folders / "README.md").unlink()
    assert images(two_folders, test_fraction=0.25).classes == ("test", "train")


@pytest.mark.parametrize(
    ("dtype", "channels"), [(np.uint8, None), (np.uint8, 3), (np.float16, None), (np.float32, 1), (np.float64, 3)]
)
def test_every_form_of_pixels(tmp_path: Path, dtype: type, channels: int | None) -> None:
    pixels = PIXELS if channels is None else np.stack([PIXELS] * channels, axis=-1)
    scaled = pixels if dtype is np.uint8 else (pixels / 255).astype(dtype)
    data = images(str(save(tmp_path, images=scaled, test_images=scaled[:2], test_labels=LABELS[:2])))
    assert data.name == "mine"
    assert data.train.shape == (4, 5, channels or 1)
    np.testing.assert_allclose(data.train.images.reshape(pixels.shape), pixels / 255, atol=1e-3)
    assert np.array_equal(data.train.labels, LABELS)
    assert (len(data.train), len(data.test)) == (10, 2)


@pytest.mark.parametrize(
    ("names", "dtype"),
    [((0, 1), np.uint8), ((-1, 1), np.int16), ((3, 2**62), np.int64), ((1, 300), np.uint64), (("cat", "dog"), None)],
)
def test_labels_count_from_zero_and_classes_keep_their_names(tmp_path: Path, names: tuple, dtype: Any) -> None:
    labels = np.array(names, dtype)[1 - LABELS]
    data = images(save(tmp_path, labels=labels, test_images=PIXELS[:1], test_labels=labels[:1]))
    assert data.classes == names
    assert data.train.labels.dtype == np.int64
    assert [data.classes[k] for k in data.train.labels] == labels.tolist()
    assert data.test.labels.tolist() == [1]


def test_split_is_disjoint_complete_and_seeded(tmp_path: Path) -> None:
    path = save(tmp_path)
    data = images(path, test_fraction=0.3, seed=1)
    assert (len(data.train), len(data.test)) == (7, 3)
    found = np.concatenate([data.train.images, data.test.images])[..., 0] * 255
    place = np.array([int(np.abs(PIXELS - image).sum((1, 2)).argmin()) for image in found])
    assert sorted(place) == list(range(10))
    assert np.array_equal(np.concatenate([data.train.labels, data.test.labels]), LABELS[place])
    assert np.array_equal(images(path, 0.3, 1).test.images, data.test.images)
    assert not np.array_equal(images(path, 0.3, 2).test.images, data.test.images)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": PIXELS.astype(np.int64)}, "'images' must be uint8 or floating, not int64"),
        ({"images": PIXELS.astype(np.float32)}, r"'images' are floating and must lie in \[0, 1\].*span \[0, 249\]"),
        ({"images": FLOATS - 0.5}, r"must lie in \[0, 1\], but they span \[-0.5"),
        ({"images": np.where(PIXELS > 200, np.nan, FLOATS)}, "'images' must be finite"),
        ({"images": PIXELS[0]}, r"'images' must be \[N, H, W\] or \[N, H, W, C\].*not \[4, 5\]"),
        ({"images": PIXELS[:0]}, r"not empty, not \[0, 4, 5\]"),
        ({"images": np.array([object()] * 10)}, "'images' must be a plain array of numbers.*allow_pickle"),
        ({"labels": LABELS.astype(float)}, r"'labels' must be integers or words \[N\], not float64 \[10\]"),
        ({"labels": LABELS > 0}, "'labels' must be integers or words .* not bool"),
        ({"labels": LABELS[:, None]}, r"'labels' must be integers or words \[N\], not int64 \[10, 1\]"),
        ({"labels": LABELS.astype(np.uint64) + np.uint64(2**63)}, "'labels' must be 64-bit integers"),
        ({"labels": LABELS[:9]}, "'labels' must have one label for each of the 10 images in 'images', not 9"),
        ({"labels": np.full(10, 7)}, "at least two classes, but all training labels are 7"),
        ({"test_images": PIXELS, "test_labels": LABELS + 1}, r"must be one of the training labels, \[0, 1\]"),
        ({"test_images": PIXELS, "test_labels": LABELS.astype(str)}, "must be one of the training labels"),
        ({"test_images": PIXELS}, "expected an array 'test_labels'"),
        ({"test_labels": LABELS}, "expected an array 'test_images'"),
        ({"test_images": PIXELS[:, :3], "test_labels": LABELS}, r"test images must be \(4, 5, 1\).*\(3, 5, 1\)"),
        ({"images": PIXELS[:1], "labels": LABELS[:1]}, "test_fraction 0.2 of 1 leaves 1 to train and 0 to test"),
    ],
)
def test_refuses_the_file(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    path = save(tmp_path, **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        images(path)
    assert str(path) in str(caught.value)


def test_missing_file_and_missing_array(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        images(tmp_path / "nowhere.npz")
    np.savez(tmp_path / "mine.npz", pictures=PIXELS, labels=LABELS)
    with pytest.raises(ValueError, match=r"expected an array 'images', but found only \['labels', 'pictures'\]"):
        images(tmp_path / "mine.npz")


def test_not_an_npz(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    with path.open("wb") as file:
        np.save(file, PIXELS)
    with pytest.raises(ValueError, match="expected an npz file"):
        images(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images", "not an array")
        archive.writestr("labels.npy", "nor this")
    with pytest.raises(ValueError, match="'images' must be an array, but is a file of another kind"):
        images(path)


def test_a_damaged_array(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, images=PIXELS, labels=LABELS)
    content = bytearray(path.read_bytes())
    content[content.find(PIXELS.tobytes()) + 7] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mine\.npz: 'images' must be a plain array of numbers; reading it"):
        images(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"test_fraction": 1.1}, "test_fraction must be"),
        ({"test_fraction": 0}, "leaves 10 to train and 0 to test"),
        ({"test_fraction": 1}, "leaves 0 to train and 10 to test"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_refuses_the_argument(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        images(save(tmp_path), **arguments)


def test_another_folder_beside_train_and_test_is_named(two_folders: Path) -> None:
    (two_folders / "val").mkdir()
    with pytest.raises(ValueError, match="expected no folder beside 'train' and 'test', but found val"):
        images(two_folders)
