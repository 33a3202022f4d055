import numpy as np
import pytest

from orbitgp.datasets import ImageData, Images, enlarged, move, parity, rotate, rotated, transformed


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


def test_parity_of_mnist(mnist_data: ImageData) -> None:
    small = ImageData("small", mnist_data.train.take(300), mnist_data.test.take(200))
    data = parity(90, seed=1, data=small)
    assert data.name == "parity90" and data.classes == (-1, 1)
    again, other = (parity(90, seed, small).train.images for seed in (1, 2))
    assert np.array_equal(data.train.images, again) and not np.array_equal(data.train.images, other)
    assert np.abs(parity(0.01, 0, small).train.images - small.train.images).mean() < 1e-4
    assert (len(data.train), len(data.test)) == (300, 200)
    for part, original in ((data.train, small.train), (data.test, small.test)):
        assert np.array_equal(part.labels == 1, original.labels % 2 == 1)
        assert np.array_equal(part.labels == -1, original.labels % 2 == 0)
        assert part.labels.dtype == np.int64


@pytest.mark.parametrize("alpha", [5.0, 180])
def test_angles_fill_their_range(alpha: float, source: ImageData, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    def recorded(images: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        seen.append(degrees)
        return rotate(images, degrees)

    monkeypatch.setattr("orbitgp.datasets.moved_images.rotate", recorded)
    parity(alpha, 0, source)
    rotated(0, 50, 50, source)
    train, test, *whole = seen
    for angles in (train, test):
        assert -alpha <= angles.min() < -0.8 * alpha and 0.8 * alpha < angles.max() <= alpha
    assert not np.array_equal(train[:40], test)  # streams of their own
    for angles in whole:
        assert 0 <= angles.min() < 40 and 320 < angles.max() < 360


def test_rotated_parts_are_disjoint_and_keep_their_labels(source: ImageData) -> None:
    data = rotated(seed=4, train=30, test=70, data=source)
    assert data.name == "rotated" and data.classes == source.classes
    assert not np.array_equal(data.train.labels, rotated(5, 30, 70, source).train.labels)
    train, test = identity_of(data.train), identity_of(data.test)
    assert sorted([*train, *test]) == list(range(100))
    assert np.array_equal(data.train.labels, train % 10)
    assert np.array_equal(data.test.labels, test % 10)


def test_either_rotated_part_stays_when_the_other_grows(source: ImageData) -> None:
    few, many = rotated(4, 10, 20, source), rotated(4, 50, 20, source)  # the same seed, the same bits
    assert np.array_equal(few.test.images, many.test.images)
    assert np.array_equal(few.train.images, many.train.images[:10])


def test_each_image_is_moved_within_the_limits(source: ImageData, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("orbitgp.datasets.moved_images.move", lambda *given: seen.append(given) or move(*given))
    data = transformed(source, 3, rotation=90, scale=2, translation=0.25)
    assert data.name == "source_transformed" and np.array_equal(data.test.labels, source.test.labels)
    (_, angles, zooms, shifts), (_, of_test, *_) = seen
    for values, limit in ((angles, 90), (np.log(zooms), np.log(2)), (shifts / 3, 0.25)):
        assert -limit <= values.min() < -0.8 * limit and 0.8 * limit < values.max() <= limit
    assert len(np.unique(shifts)) == 120 and not np.array_equal(angles[:40], of_test)
    fewer = ImageData("source", source.train.take(10), source.test)
    np.testing.assert_array_equal(
        transformed(fewer, 3, rotation=90, scale=2, translation=0.25).train.images, data.train.images[:10]
    )
    np.testing.assert_array_equal(transformed(source, 3).train.images, source.train.images)


def test_copies_follow_the_images_and_are_moved_each_in_its_own_way(source: ImageData) -> None:
    data, alone = source.train, enlarged(source.train, 1, 5, rotation=90)
    more = enlarged(data, 3, 5, rotation=90)
    N = len(data)
    assert len(more) == 4 * N and np.array_equal(more.labels, np.tile(data.labels, 4))
    np.testing.assert_array_equal(more.images[:N], data.images)
    np.testing.assert_array_equal(more.images[: 2 * N], alone.images)
    copies = more.images[N:].reshape(3, N, -1)
    assert len(np.unique(copies, axis=0)) == 3 and not np.array_equal(copies[0], data.images.reshape(N, -1))
    np.testing.assert_array_equal(enlarged(data, 2, 5).images, np.tile(data.images, (3, 1, 1, 1)))
    with pytest.raises(ValueError, match="copies must be an integer of at least 1"):
        enlarged(data, 0, 5)
