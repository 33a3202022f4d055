"""MNIST and Fashion-MNIST, each from four idx files of the same names."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from orbitgp.datasets.containers import ImageData, Images
from orbitgp.datasets.idx import Expected, parse_idx, read_verified

FOLDER_IN_REPOSITORY = Path(__file__).resolve().parents[3] / "data" / "mnist"
FOLDER_OF_DEBIAN = Path("/usr/share/datasets/fashion-mnist")

#: number of bytes of each of the four files, unpacked
SIZES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}


@dataclass(frozen=True)
class Source:
    """A data set of four files, and where they are."""

    name: str
    variable: str  #: the environment variable that may name their folder
    place: str  #: what their usual folder is called, for errors
    sums: tuple[str, ...]  #: SHA-256 of each file, unpacked, in the order of SIZES
    classes: tuple[int | str, ...]

    @property
    def expected(self) -> dict[str, Expected]:
        """What each file must be."""
        return {name: Expected(size, sum_) for (name, size), sum_ in zip(SIZES.items(), self.sums, strict=True)}


MNIST = Source(
    "mnist",
    "ORBITGP_MNIST",
    "the repository's own",
    (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    tuple(range(10)),
)
FASHION = Source(
    "fashion_mnist",
    "ORBITGP_FASHION_MNIST",
    "that of Debian's package dataset-fashion-mnist",
    (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"),
)


def mnist(folder: str | os.PathLike[str] | None = None) -> ImageData:
    """Load MNIST: 60,000 training and 10,000 test digits, 28×28×1 in [0, 1], labels 0 … 9.

    The sums of all four files are checked on every load.

    :param folder: where the four files are, each packed (``….gz``) or plain. Unless given, the folder named
        by the environment variable ``ORBITGP_MNIST``, or else ``data/mnist`` of this repository.
    """
    return _load(MNIST, _find_folder(MNIST, folder, FOLDER_IN_REPOSITORY))


def fashion_mnist(folder: str | os.PathLike[str] | None = None) -> ImageData:
    """Load Fashion-MNIST: 60,000 training and 10,000 test images of clothes, 28×28×1 in [0, 1].

    The files (Zalando Research, MIT licence) are not part of this repository. Their sums are checked on every load.

    :param folder: where the four files are, each packed (``….gz``) or plain. Unless given, the folder named by the
        environment variable ``ORBITGP_FASHION_MNIST``, or else that of Debian's package ``dataset-fashion-mnist``.
    """
    return _load(FASHION, _find_folder(FASHION, folder, FOLDER_OF_DEBIAN))


def _load(source: Source, folder: Path) -> ImageData:
    return ImageData(source.name, _part(source, folder, "train"), _part(source, folder, "t10k"), source.classes)


def _part(source: Source, folder: Path, part: str) -> Images:
    # Labels first: they are small, and where one file of a folder is damaged the others often are too.
    labels = _read(source, folder, f"{part}-labels-idx1-ubyte", axes=1)
    pixels = _read(source, folder, f"{part}-images-idx3-ubyte", axes=3)
    return Images(pixels[..., None].astype(np.float32) / np.float32(255), labels.astype(np.int64))


def _read(source: Source, folder: Path, name: str, axes: int) -> np.ndarray:
    candidates = [folder / name, folder / f"{name}.gz"]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz")
    return parse_idx(read_verified(path, source.expected[name]), axes, str(path))


def _find_folder(source: Source, folder: str | os.PathLike[str] | None, usual: Path) -> Path:
    configured = os.environ.get(source.variable)
    if folder is not None:
        place, origin = Path(folder), "the folder given"
    elif configured:
        place, origin = Path(configured), f"the environment variable {source.variable}"
    else:
        place = usual
        origin = f"{source.place}, since no folder is given and {source.variable} is not set"
    if not place.is_dir():
        raise FileNotFoundError(f"no folder with {source.name} at {place} ({origin})")
    return place
