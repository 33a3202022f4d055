import gzip
import hashlib
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from orbitgp.datasets.idx import Expected, parse_idx, read_verified


def idx_bytes(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def expected_of(content: bytes) -> Expected:
    return Expected(len(content), hashlib.sha256(content).hexdigest())


CONTENT = idx_bytes(np.random.default_rng(0).integers(0, 256, 5000, np.uint8))
EXPECTED = expected_of(CONTENT)


def complaint(path: Path, content: bytes) -> str:
    """Write a file that is not the one expected and return what the error says of it."""
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_verified(path, EXPECTED)
    text = str(caught.value)
    assert str(path) in text and EXPECTED.sha256 in text
    return text


@given(hnp.arrays(np.uint8, hnp.array_shapes(max_dims=4, max_side=5)))
def test_parse_returns_the_array(array: np.ndarray) -> None:
    assert np.array_equal(parse_idx(idx_bytes(array), array.ndim, "file"), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "file: an idx file of bytes starts with 00000802, not $"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 0]), "starts with 00000802, not 00000801"),
        (bytes([0, 0, 13, 2]) + bytes(8), "starts with 00000802, not 00000d02"),
        (bytes([0, 0, 8, 2, 0, 0]), "the header needs 12 bytes, but there are only 6"),
        (bytes([0, 0, 8, 2]) + struct.pack(">2I", 2, 3) + bytes(5), r"promises \(2, 3\), 6 elements, but 5"),
        (bytes([0, 0, 8, 2]) + struct.pack(">2I", 2, 3) + bytes(7), r"promises \(2, 3\), 6 elements, but 7"),
        (
            bytes([0, 0, 8, 2]) + struct.pack(">2I", 2**32 - 1, 2**32 - 1),
            "18446744065119617025 elements, but 0",
        ),
    ],
)
def test_parse_refuses(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_idx(content, 2, "file")


@given(st.binary(max_size=40))
def test_parse_never_fails_otherwise(content: bytes) -> None:
    try:
        parse_idx(bytes([0, 0, 8, 2]) + content, 2, "file")
    except ValueError as error:
        assert str(error).startswith("file: ")


@pytest.mark.parametrize("name", ["file", "file.gz"])
@pytest.mark.parametrize("level", [None, 9])
def test_plain_and_packed_whatever_the_name(tmp_path: Path, name: str, level: int | None) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENT if level is None else gzip.compress(CONTENT, level))
    assert read_verified(path, EXPECTED) == CONTENT


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (CONTENT[:100] + bytes([CONTENT[100] ^ 1]) + CONTENT[101:], "its bytes are not the ones expected"),
        (CONTENT[:-1], f"too short, {len(CONTENT) - 1} bytes where {len(CONTENT)} were expected"),
        (b"", "too short, 0 bytes"),
        (CONTENT + b"\0", f"longer than the {len(CONTENT)} bytes"),
        (b"<!DOCTYPE html><html>", "looks like an HTML page"),
        (b"\n <html><body>403", "looks like an HTML page"),
    ],
    ids=["flipped", "short", "empty", "long", "page", "page after a space"],
)
def test_other_bytes_plain_or_packed_are_told(tmp_path: Path, content: bytes, says: str) -> None:
    for form in (content, gzip.compress(content)):
        text = complaint(tmp_path / "file.gz", form)
        assert says in text
        assert hashlib.sha256(content).hexdigest() in text


def test_damage_to_the_packing(tmp_path: Path) -> None:
    cut = gzip.compress(CONTENT)[:-20]
    text = complaint(tmp_path / "file.gz", cut)
    assert "cannot be unpacked" in text and hashlib.sha256(cut).hexdigest() in text
    packed = gzip.compress(CONTENT)
    for place in (3, 12, len(packed) - 6, len(packed) - 8):  # the header, the compressed part, length and check sum
        damaged = bytearray(packed)
        damaged[place] ^= 0xFF
        assert "file.gz: it" in complaint(tmp_path / "file.gz", bytes(damaged))


def test_a_bomb_is_not_expanded(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(1 << 26), 9)
    tracemalloc.start()
    try:
        text = complaint(tmp_path / "file.gz", bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "longer than" in text
    assert peak < 1 << 21
