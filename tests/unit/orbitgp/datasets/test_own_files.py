import gzip
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbitgp import files
from orbitgp.datasets import image_files, read_images, read_labelled
from orbitgp.datasets.own_files import read_named_images

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 5), np.uint8)
LABELS = np.array([3, 7, 7, 3, 200, 3], np.uint8)
SCALED = PIXELS[..., None].astype(np.float32) / np.float32(255)


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(pixels: np.ndarray, **claims: int) -> bytes:
    """A PNG of [H, W] or [H, W, C], 8 or 16 bits, whose head may claim another height or width."""
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    size = (claims.get("width", width), claims.get("height", height))
    head = struct.pack(">IIBBBBB", *size, 8 * pixels.itemsize, kind, 0, 0, 0)
    rows = b"".join(b"\x00" + row.astype(pixels.dtype.newbyteorder(">")).tobytes() for row in pixels)
    return image_files.PNG_MARK + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg(pixels: np.ndarray) -> bytes:
    import tensorflow as tf

    return tf.io.encode_jpeg(pixels, quality=100).numpy()


def write(folder: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


# -- npz -----------------------------------------------------------------------------------------------------------


def test_npz_with_and_without_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", images=PIXELS, labels=LABELS)
    np.savez(tmp_path / "images.npz", images=PIXELS)
    images, labels = read_labelled(str(tmp_path / "both.npz"))
    assert np.array_equal(images, SCALED)
    assert labels.tolist() == LABELS.tolist()
    for name in ("both.npz", "images.npz"):
        assert np.array_equal(read_images(tmp_path / name), SCALED)
    with pytest.raises(ValueError, match=r"images\.npz: expected an array 'labels'"):
        read_labelled(tmp_path / "images.npz")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", images=PIXELS, labels=np.array([object()] * 6))
    with pytest.raises(ValueError, match=r"mine\.npz: 'labels' must be a plain array"):
        read_labelled(tmp_path / "mine.npz")


# -- idx -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_pair(tmp_path: Path, pack: Any) -> None:
    write(tmp_path, {"images": pack(idx(PIXELS)), "labels": pack(idx(LABELS))})
    images, labels = read_labelled(tmp_path / "images", str(tmp_path / "labels"))
    assert images.dtype == np.float32
    assert np.array_equal(images, SCALED)
    assert (labels.dtype, labels.tolist()) == (np.int64, LABELS.tolist())
    assert np.array_equal(read_images(tmp_path / "images"), SCALED)


def test_idx_with_channels(tmp_path: Path) -> None:
    colours = np.stack([PIXELS, PIXELS // 2, PIXELS // 3], -1)
    assert read_images(write(tmp_path, {"images": idx(colours)}) / "images").shape == (6, 4, 5, 3)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (idx(PIXELS), None, "images: expected an idx file of labels beside this .* but none is given"),
        (idx(PIXELS), idx(LABELS[:5]), "labels: expected a label for each of the 6 images, not 5"),
        (idx(PIXELS), idx(PIXELS), "labels: expected labels, an idx file with 1 axis, but it has 3"),
        (idx(PIXELS), b"3,7,7", "labels: expected labels, an idx file with 1 axis, but found something else"),
        (idx(LABELS), idx(LABELS), r"images: expected images, an idx file with 3 axes .* but it has 1"),
        (idx(PIXELS)[:-1], idx(LABELS), r"images: the header promises \(6, 4, 5\), 120 elements, but 119 follow"),
        (idx(PIXELS) + b"x", idx(LABELS), r"images: the header promises .* 121 follow"),
        (idx(PIXELS)[:10], idx(LABELS), "images: the header needs 16 bytes, but there are only 10"),
        (idx(PIXELS[:0]), idx(LABELS), "images must be .* not empty"),
        (gzip.compress(idx(PIXELS), mtime=0)[:-40], idx(LABELS), "images: it cannot be unpacked"),
    ],
)
def test_refuses_the_idx_files(tmp_path: Path, images: bytes, labels: bytes | None, message: str) -> None:
    write(tmp_path, {"images": images} | ({} if labels is None else {"labels": labels}))
    with pytest.raises(ValueError, match=message):
        read_labelled(tmp_path / "images", None if labels is None else tmp_path / "labels")


def test_an_idx_file_that_promises_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 100)
    write(tmp_path, {"images": gzip.compress(idx(PIXELS))})
    with pytest.raises(ValueError, match="images: its header promises 120 bytes, more than the 100 that are read"):
        read_images(tmp_path / "images")


def test_labels_only_go_with_idx(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", images=PIXELS, labels=LABELS)
    with pytest.raises(ValueError, match=r"mine\.npz: a file of labels, .* but this is an npz file"):
        read_labelled(tmp_path / "mine.npz", tmp_path / "labels")
    write(tmp_path, {"images": idx(PIXELS)})
    with pytest.raises(FileNotFoundError, match="nowhere: no such file"):
        read_labelled(tmp_path / "images", tmp_path / "nowhere")


# -- folders -------------------------------------------------------------------------------------------------------


def test_one_folder_a_class(tmp_path: Path) -> None:
    """Names decide the order, hidden files are skipped, and names of files say nothing of their format."""
    write(
        tmp_path,
        {
            "dog/2.png": png(PIXELS[3]),
            "dog/1.jpg": png(PIXELS[2]),
            "cat/b": png(PIXELS[1]),
            "cat/a.PNG": png(PIXELS[0]),
            "cat/.DS_Store": b"hidden",
            ".git/config": b"hidden",
        },
    )
    images, labels = read_labelled(tmp_path)
    assert np.array_equal(images, SCALED[:4])
    assert labels.tolist() == ["cat", "cat", "dog", "dog"]
    images, names = read_named_images(tmp_path)
    assert np.array_equal(images, SCALED[:4])
    assert names == ["cat/a.PNG", "cat/b", "dog/1.jpg", "dog/2.png"]


def test_a_folder_of_images_and_a_single_one(tmp_path: Path) -> None:
    write(tmp_path, {"b.png": png(PIXELS[1]), "a.png": png(PIXELS[0]), ".hidden": b""})
    assert np.array_equal(read_images(tmp_path), SCALED[:2])
    assert read_named_images(tmp_path)[1] == ["a.png", "b.png"]
    assert np.array_equal(read_images(tmp_path / "b.png"), SCALED[1:2])
    with pytest.raises(ValueError, match="expected one sub-folder for each class, but there is none"):
        read_labelled(tmp_path)
    with pytest.raises(ValueError, match=r"a\.png: expected images with labels, but this is a single image"):
        read_labelled(tmp_path / "a.png")


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_png_of_every_kind(tmp_path: Path, channels: int, dtype: type) -> None:
    pixels = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (3, 2, channels), dtype, endpoint=True)
    write(tmp_path, {"a.png": png(pixels)})
    expected = pixels.astype(np.float32) / np.float32(np.iinfo(dtype).max)
    assert np.array_equal(read_images(tmp_path)[0], expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg(tmp_path: Path, channels: int) -> None:
    pixels = np.full((7, 9, channels), 100, np.uint8)
    comment = b"\xff\xfe\x00\x06note"  # a segment before the frame, and bytes that only fill
    content = jpeg(pixels)
    write(tmp_path, {"a.jpg": content, "b.jpg": content[:2] + comment + b"\xff\xff" + content[2:]})
    assert image_files.image_size(tmp_path / "b.jpg") == (7, 9)
    images = read_images(tmp_path)
    assert images.shape == (2, 7, 9, channels)
    np.testing.assert_allclose(images, 100 / 255, atol=0.02)


TINY = png(PIXELS[0])


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"a/1.png": TINY, "b/1.png": png(PIXELS[0].T)}, r"b/1\.png: expected 4 × 5 .*a/1\.png has, not 5 × 4"),
        (
            {"a/1.png": TINY, "b/1.png": png(np.stack([PIXELS[0]] * 3, -1)), "b/2.png": png(PIXELS[0].T)},
            r"b/2\.png: expected 4 × 5",
        ),
        (
            {"a/1.png": TINY, "b/1.png": png(np.stack([PIXELS[0]] * 3, -1))},
            r"b/1\.png: expected 1 channel, as .*a/1\.png has, not 3 channels",
        ),
        ({"a/1.png": TINY, "a/notes.txt": b"x", "b/1.png": TINY}, r"a: expected PNG or JPEG .* but found notes\.txt"),
        ({"a/1.png": TINY, **{f"b/{k}": b"" for k in range(5)}}, "b: expected .* but found 0, 1, 2 and 2 more"),
        ({"a/1.png": TINY, "a/deeper/1.png": TINY}, "a: expected PNG or JPEG images only, but found deeper"),
        ({"a/1.png": TINY, "1.png": TINY}, r"expected nothing beside its sub-folders of images, but found 1\.png"),
        ({"a/.hidden": TINY}, "a: expected PNG or JPEG images, but it has none"),
        ({"a/1.png": TINY[:40]}, r"1\.png: a damaged image, which cannot be decoded"),
        ({"a/1.png": TINY[:20]}, r"1\.png: a damaged image, as its head does not say its size"),
        ({"a/1.png": png(PIXELS[0], width=0)}, r"1\.png: a damaged image, as its head does not say its size"),
        ({"a/1.jpg": b"\xff\xd8\xff\xe0\x00"}, r"1\.jpg: a damaged image, as its head does not say its size"),
        ({"a/1.jpg": b"\xff\xd8\xff\xe0\x00\x00\xff\xff"}, r"1\.jpg: a damaged image, as its head"),
        ({"a/1.jpg": b"\xff\xd8\xff\xd0\xff\xc0\x00\x0b\x08"}, r"1\.jpg: a damaged image, as its head"),
        (
            {"a/1.png": png(PIXELS[0], height=9000, width=9000)},
            r"1\.png: 9000 × 9000 pixels are more than the 16,777,216",
        ),
    ],
)
def test_refuses_the_folder(tmp_path: Path, contents: dict[str, bytes], message: str) -> None:
    write(tmp_path, contents)
    with pytest.raises(ValueError, match=message):
        read_labelled(tmp_path)


def test_all_images_together_must_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 100)
    write(tmp_path, {"1.png": TINY, "2.png": TINY})
    with pytest.raises(ValueError, match="its 2 images would take 160 bytes, more than the 100 that are read"):
        read_images(tmp_path)


# -- anything else -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x00\x00\x0d\x03", gzip.compress(b"hello", mtime=0), b"\x1f\x8bno gzip"]
)
def test_something_else(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, {"mine": content})
    for read in (read_images, read_labelled):
        with pytest.raises(
            ValueError, match="mine: expected an npz file, an idx file, a PNG or JPEG image, or a folder"
        ):
            read(tmp_path / "mine")
        with pytest.raises(FileNotFoundError, match="nowhere: no such file or folder"):
            read(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty: expected PNG or JPEG images, but it has none"):
        read_images(tmp_path / "empty")


def test_no_tensorflow_but_for_png_and_jpeg(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", images=PIXELS, labels=LABELS)
    code = "import sys, orbitgp; orbitgp.datasets.read_labelled(sys.argv[1]); assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "mine.npz")], check=True)
