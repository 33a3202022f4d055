"""Data sets made by moving the images of another one."""

import numpy as np

from orbitgp import checks
from orbitgp.datasets.containers import SIGNS, ImageData, Images
from orbitgp.datasets.mnist_files import mnist
from orbitgp.datasets.random_streams import stream
from orbitgp.datasets.rotation import move, rotate


def parity(alpha_degrees: float, seed: int, data: ImageData | None = None) -> ImageData:
    """Odd against even digits, each rotated once by an angle from U(−α, α): the paper's first experiment.

    :param alpha_degrees: α, in (0, 180].
    :param seed: fixes the angles.
    :param data: digits to start from; MNIST unless given.
    :return: as many images as in ``data``, labels +1 (odd) and −1 (even).
    """
    alpha = checks.number("alpha_degrees", alpha_degrees, least=0, most=180)
    if alpha == 0:
        raise ValueError("alpha_degrees must be above 0, got 0: without rotations there is no angle to learn")
    seed = checks.integer("seed", seed, least=0)
    data = mnist() if data is None else checks.instance("data", data, ImageData)

    def turned(part: Images, purpose: str) -> Images:
        angles = stream(f"parity/{purpose}", seed).uniform(-alpha, alpha, len(part))
        return Images(rotate(part.images, angles), np.where(part.labels % 2 == 1, 1, -1))

    return ImageData(f"parity{alpha:g}", turned(data.train, "train"), turned(data.test, "test"), SIGNS)


def rotated(seed: int, train: int = 12_000, test: int = 50_000, data: ImageData | None = None) -> ImageData:
    """Digits, each rotated by an angle from U[0°, 360°).

    The sizes are those of the public rotated MNIST, but the images are generated here, from all of MNIST, and
    are not the public files: error rates on the two compare only roughly.

    :param seed: fixes which image goes where, and the angles.
    :param train: number of training images.
    :param test: number of test images; no digit is in both.
    :param data: digits to start from, its two parts pooled; MNIST unless given.
    :return: labels as in ``data``, 0 … 9.
    """
    seed = checks.integer("seed", seed, least=0)
    train = checks.integer("train", train, least=1)
    test = checks.integer("test", test, least=1)
    data = mnist() if data is None else checks.instance("data", data, ImageData)
    images = np.concatenate([data.train.images, data.test.images])
    labels = np.concatenate([data.train.labels, data.test.labels])
    if train + test > len(images):
        raise ValueError(f"train + test must be at most {len(images)}, the images there are, not {train + test}")
    # Training images come from one end of the order and test images from the other, so that either set stays
    # as it is when the other grows.
    order = stream("rotated/order", seed).permutation(len(images))

    def turned(chosen: np.ndarray, purpose: str) -> Images:
        angles = stream(f"rotated/{purpose}", seed).uniform(0, 360, len(chosen))
        return Images(rotate(images[chosen], angles), labels[chosen])

    return ImageData("rotated", turned(order[:train], "train"), turned(order[-test:], "test"), data.classes)


def transformed(
    data: ImageData, seed: int, rotation: float = 0.0, scale: float = 1.0, translation: float = 0.0
) -> ImageData:
    """Images that are each moved once at random: rotated, then enlarged or shrunk, then shifted.

    :param data: what to start from.
    :param seed: fixes all random numbers; an image's are the same however many images there are.
    :param rotation: the largest angle in degrees, 0 to 180; angles are from U(−rotation, rotation).
    :param scale: the largest factor, 1 to 4; logarithms of factors are from U(−log scale, log scale).
    :param translation: the largest shift along either axis as a share of the image's side, 0 to 0.5, uniform too.
    :return: as many images as in ``data``, with their labels.
    """
    seed = checks.integer("seed", seed, least=0)
    moved = {
        name: _moved(part, stream(f"transformed/{name}", seed), rotation, scale, translation)
        for name, part in (("train", data.train), ("test", data.test))
    }
    return ImageData(f"{data.name}_transformed", moved["train"], moved["test"], data.classes)


def enlarged(
    data: Images, copies: int, seed: int, rotation: float = 0.0, scale: float = 1.0, translation: float = 0.0
) -> Images:
    """Images, followed by copies that are moved at random: data augmentation ahead of training.

    :param data: what to start from.
    :param copies: of each image, at least one.
    :param seed: fixes all random numbers.
    :param rotation: with ``scale`` and ``translation``, as of :func:`transformed`.
    :return: 1 + ``copies`` times as many images, with their labels.
    """
    copies = checks.integer("copies", copies, least=1)
    seed = checks.integer("seed", seed, least=0)
    parts = [data]
    for number in range(copies):
        parts.append(_moved(data, stream(f"enlarged/{number}", seed), rotation, scale, translation))
    return Images(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("images", "labels")))


def _moved(data: Images, rng: np.random.Generator, rotation: float, scale: float, translation: float) -> Images:
    """Each image moved once at random."""
    rotation = checks.number("rotation", rotation, least=0, most=180)
    scale = checks.number("scale", scale, least=1, most=4)
    translation = checks.number("translation", translation, least=0, most=0.5)
    angle, zoom, *shift = rng.uniform(-1, 1, (len(data), 4)).T
    pixels = translation * np.stack(shift, axis=1) * data.shape[:2]
    return Images(move(data.images, rotation * angle, scale**zoom, pixels), data.labels)
