"""Data sets: MNIST, Fashion-MNIST and what is made from them, a two-dimensional toy, and the user's own images.

Everything here is NumPy; nothing reaches for a network, and only PNG and JPEG files, once there are some to decode,
load TensorFlow. What is random is drawn from the seed given and from nothing else.
"""

from orbitgp.datasets.containers import ImageData, Images, PointData, Points, one_hot
from orbitgp.datasets.mnist_files import fashion_mnist, mnist
from orbitgp.datasets.moved_images import enlarged, parity, rotated, transformed
from orbitgp.datasets.own_files import read_images, read_labelled
from orbitgp.datasets.own_images import images
from orbitgp.datasets.rotation import move, rotate
from orbitgp.datasets.symmetric_toy import square_grid, symmetric

__all__ = [
    "ImageData",
    "Images",
    "PointData",
    "Points",
    "enlarged",
    "fashion_mnist",
    "images",
    "mnist",
    "move",
    "one_hot",
    "parity",
    "read_images",
    "read_labelled",
    "rotate",
    "rotated",
    "square_grid",
    "symmetric",
    "transformed",
]
