import hashlib
import subprocess
import sys
import time

import numpy as np
import pytest

from orbitgp.datasets import ImageData, Images, parity, rotate, rotated

DIGEST_CODE = """
import hashlib, sys
import numpy as np
from orbitgp.datasets import ImageData, Images, parity, rotated

def tiny(count):
    pixels = np.linspace(0, 1, count * 30, dtype=np.float32).reshape(count, 5, 6, 1)
    return Images(pixels, np.arange(count) % 10)

source = ImageData("tiny", tiny(40), tiny(20))
sums = []
for data in (parity(90, 3, source), rotated(3, 20, 30, source)):
    for part in (data.train, data.test):
        sums.append(hashlib.sha256(part.images.tobytes() + part.labels.tobytes()).hexdigest())
"""


def digests_here() -> list[str]:
    names: dict[str, list[str]] = {}
    exec(DIGEST_CODE, names)
    return names["sums"]


def distinct(count: int, first: int = 0) -> Images:
    """Images that differ in their centre pixel alone, which a rotation leaves where it is."""
    pixels = np.zeros((count, 3, 3, 1), np.float32)
    pixels[:, 1, 1, 0] = np.arange(first + 1, first + count + 1) / 1000
    return Images(pixels, (first + np.arange(count)) % 10)


def identity_of(part: Images) -> np.ndarray:
    return np.rint(part.images[:, 1, 1, 0] * 1000).astype(int) - 1


@pytest.fixture(scope="module")
def source() -> ImageData:
    return ImageData("source", distinct(60), distinct(40, first=60))


def test_the_same_bits_in_another_process() -> None:
    code = DIGEST_CODE + "\nsys.stdout.write(' '.join(sums))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.split() == digests_here() == digests_here()
    assert len(set(digests_here())) == 4


def test_parity_of_mnist(mnist_data: ImageData) -> None:
    small = ImageData("small", mnist_data.train.take(300), mnist_data.test.take(200))
    data = parity(90, seed=1, data=small)
    assert data.name == "parity90"
    assert (len(data.train), len(data.test)) == (300, 200)
    for part, original in ((data.train, small.train), (data.test, small.test)):
        assert np.array_equal(part.labels == 1, original.labels % 2 == 1)
        assert np.array_equal(part.labels == -1, original.labels % 2 == 0)
        assert part.labels.dtype == np.int64


@pytest.mark.parametrize("alpha", [5.0, 90, 180])
def test_parity_angles_fill_their_range(alpha: float, source: ImageData, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    def recorded(images: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        seen.append(degrees)
        return rotate(images, degrees)

    monkeypatch.setattr("orbitgp.datasets.rotated_mnist.rotate", recorded)
    parity(alpha, 0, source)
    train, test = seen
    for angles in seen:
        assert -alpha <= angles.min() < -0.8 * alpha and 0.8 * alpha < angles.max() <= alpha
    assert not np.array_equal(train[:40], test)  # streams of their own


def test_parity_with_a_small_angle_changes_little(mnist_data: ImageData) -> None:
    small = ImageData("small", mnist_data.train.take(50), mnist_data.test.take(50))
    change = {alpha: np.abs(parity(alpha, 0, small).train.images - small.train.images).mean() for alpha in (0.01, 90)}
    assert change[0.01] < 1e-4 < 0.02 < change[90]


def test_rotated_parts_are_disjoint_and_keep_their_labels(source: ImageData) -> None:
    data = rotated(seed=4, train=30, test=70, data=source)
    assert data.name == "rotated"
    train, test = identity_of(data.train), identity_of(data.test)
    assert sorted([*train, *test]) == list(range(100))
    assert np.array_equal(data.train.labels, train % 10)
    assert np.array_equal(data.test.labels, test % 10)


def test_either_rotated_part_stays_when_the_other_grows(source: ImageData) -> None:
    few, many = rotated(4, 10, 20, source), rotated(4, 50, 20, source)
    assert np.array_equal(few.test.images, many.test.images)
    assert np.array_equal(few.train.images, many.train.images[:10])


def test_rotated_angles_fill_the_circle(source: ImageData, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    monkeypatch.setattr(
        "orbitgp.datasets.rotated_mnist.rotate", lambda images, degrees: (seen.append(degrees), images)[1]
    )
    rotated(0, 50, 50, source)
    for angles in seen:
        assert 0 <= angles.min() < 40 and 320 < angles.max() < 360


@pytest.mark.parametrize("make", [lambda seed, data: parity(90, seed, data), lambda s, d: rotated(s, 50, 50, d)])
def test_seeds_differ(make, mnist_data: ImageData) -> None:  # type: ignore[no-untyped-def]
    small = ImageData("small", mnist_data.train.take(50), mnist_data.test.take(50))
    sums = {hashlib.sha256(make(seed, small).train.images.tobytes()).hexdigest() for seed in (0, 1, 2, 2**70)}
    assert len(sums) == 4


def test_rotated_at_full_size_is_quick() -> None:
    start = time.process_time()
    data = rotated(seed=0)
    assert time.process_time() - start < 20  # of work: the wall clock also counts what else the machine does
    assert (len(data.train), len(data.test)) == (12_000, 50_000)
    assert np.bincount(data.train.labels).min() > 900


@pytest.mark.parametrize(
    ("alpha", "seed", "message"),
    [
        (0, 0, "alpha_degrees must be above 0"),
        (-1, 0, "alpha_degrees must be"),
        (180.5, 0, "alpha_degrees must be .*180"),
        (float("nan"), 0, "alpha_degrees must be"),
        (True, 0, "alpha_degrees must be"),
        ("90", 0, "alpha_degrees must be"),
        (90, -1, "seed must be an integer of at least 0.*-1"),
        (90, 0.0, "seed must be an integer"),
        (90, False, "seed must be an integer"),
    ],
)
def test_parity_refuses(alpha: float, seed: int, message: str, source: ImageData) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        parity(alpha, seed, source)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed must be an integer"),
        ({"seed": None}, "seed must be an integer"),
        ({"train": 0}, "train must be an integer of at least 1.*0"),
        ({"train": True}, "train must be an integer"),
        ({"test": -5}, "test must be an integer of at least 1.*-5"),
        ({"test": 2.5}, "test must be an integer"),
        ({"train": 31, "test": 70}, r"train \+ test must be at most 100, the images there are, not 101"),
        ({"data": "mnist"}, "data must be a"),
    ],
)
def test_rotated_refuses(arguments: dict[str, object], message: str, source: ImageData) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        rotated(**{"seed": 0, "train": 10, "test": 10, "data": source, **arguments})  # type: ignore[arg-type]
