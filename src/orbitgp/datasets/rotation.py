"""Rotation, zoom and shift of images, each by numbers of its own."""

import numpy as np
import numpy.typing as npt

from orbitgp.datasets.containers import check_pixels

# Pixels handled at a time: the temporaries then stay within a core's cache, whatever the size of the images.
PIXELS_PER_CHUNK = 1 << 17


def rotate(images: npt.NDArray[np.floating], degrees: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Rotate each image about the centre of its pixel grid, counter-clockwise as one looks at it.

    The pixel at row i, column j takes its value from the place that the rotation by θ carries there. With
    u = i − (H − 1)/2 and v = j − (W − 1)/2 that place is

        (u cos θ + v sin θ,  v cos θ − u sin θ)

    seen from the centre again; between pixels the value is bilinear and outside the image it is zero. So 0°
    returns the image itself and 90° what ``np.rot90`` does (of a square image).

    :param images: [N, H, W, C], floating, in [0, 1].
    :param degrees: [N] angles, finite.
    :return: [N, H, W, C] float32 in [0, 1].
    """
    return move(images, degrees, np.ones(len(images)), np.zeros((len(images), 2)))


def move(
    images: npt.NDArray[np.floating], degrees: npt.ArrayLike, zoom: npt.ArrayLike, shift: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """Rotate each image as :func:`rotate` does, enlarge it about its centre, and then shift it.

    :param images: [N, H, W, C], floating, in [0, 1].
    :param degrees: [N] angles, finite.
    :param zoom: [N] factors above 0: at 2 everything is twice as large.
    :param shift: [N, 2] pixels, downwards and to the right.
    :return: [N, H, W, C] float32 in [0, 1].
    """
    check_pixels("images", images)
    angles = np.deg2rad(_finite("degrees", degrees, (len(images),)))
    factors, shifts = _finite("zoom", zoom, (len(images),)), _finite("shift", shift, (len(images), 2))
    if np.any(factors <= 0):
        raise ValueError(f"zoom must be above 0, but holds {factors.min():g}")
    result = np.empty(images.shape, np.float32)
    step = max(1, PIXELS_PER_CHUNK // (images.shape[1] * images.shape[2]))
    for start in range(0, len(images), step):
        part = slice(start, start + step)
        result[part] = _move_chunk(images[part].astype(np.float32), angles[part], factors[part], shifts[part])
    return result


def _finite(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must be {list(shape)}, one for each image, not {list(array.shape)}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, but hold NaN or infinity")
    return array


def _move_chunk(
    images: npt.NDArray[np.float32],
    angles: npt.NDArray[np.float64],
    zoom: npt.NDArray[np.float64],
    shift: npt.NDArray[np.float64],
) -> npt.NDArray[np.float32]:
    """Move [n, H, W, C] by [n] radians, [n] factors and [n, 2] pixels, all at once."""
    count, height, width, channels = images.shape
    u = np.arange(height)[:, None] - (height - 1) / 2 - shift[:, :1, None]  # [n, H, 1]
    v = np.arange(width)[None, :] - (width - 1) / 2 - shift[:, 1:, None]  # [n, 1, W]
    cos, sin = (part(angles)[:, None, None] / zoom[:, None, None] for part in (np.cos, np.sin))
    row, row_share = _cell(cos * u + sin * v + (height - 1) / 2, height)  # [n, H, W] each
    column, column_share = _cell(cos * v - sin * u + (width - 1) / 2, width)

    # One ring of zeros serves every place outside the image; with it no neighbour needs a test of its own.
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0))).reshape(-1, channels)
    stride = width + 2
    first = np.arange(count)[:, None, None] * ((height + 2) * stride)
    corner = first + (row + 1) * stride + (column + 1)  # [n, H, W]: flat place of the upper left neighbour

    def along_row(places: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        left, right = padded[places], padded[places + 1]
        left += column_share[..., None] * (right - left)
        return left

    upper, lower = along_row(corner), along_row(corner + stride)
    upper += row_share[..., None] * (lower - upper)
    return np.clip(upper, 0, 1, out=upper)  # rounding may step over the edge by one unit in the last place


def _cell(place: npt.NDArray[np.float64], size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the pixel before each place along one axis, −1 … size − 1, and the share of the pixel after it.

    Places further out than the ring of zeros are moved onto the ring.
    """
    place = np.clip(place, -1, size)
    before = np.minimum(np.floor(place), size - 1)
    return before.astype(np.int64), (place - before).astype(np.float32)
