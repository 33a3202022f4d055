"""MNIST, from the files in this repository or from a folder of the user's."""

import os
from pathlib import Path

import numpy as np

from orbitgp.datasets.containers import ImageData, Images
from orbitgp.datasets.idx import Expected, parse_idx, read_verified

FOLDER_VARIABLE = "ORBITGP_MNIST"
FOLDER_IN_REPOSITORY = Path(__file__).resolve().parents[3] / "data" / "mnist"

EXPECTED = {
    "train-images-idx3-ubyte": Expected(47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    "train-labels-idx1-ubyte": Expected(60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    "t10k-images-idx3-ubyte": Expected(7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    "t10k-labels-idx1-ubyte": Expected(10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
}


def mnist(folder: str | os.PathLike[str] | None = None) -> ImageData:
    """Load MNIST: 60,000 training and 10,000 test digits, 28×28×1 in [0, 1], labels 0 … 9.

    The sums of all four files are checked on every load.

    :param folder: where the four files are, each packed (``….gz``) or plain. Unless given, the folder named
        by the environment variable ``ORBITGP_MNIST``, or else ``data/mnist`` of this repository.
    """
    place = _find_folder(folder)
    return ImageData("mnist", _load(place, "train"), _load(place, "t10k"), tuple(range(10)))


def _load(folder: Path, part: str) -> Images:
    # Labels first: they are small, and where one file of a folder is damaged the others often are too.
    labels = _read(folder, f"{part}-labels-idx1-ubyte", axes=1)
    pixels = _read(folder, f"{part}-images-idx3-ubyte", axes=3)
    return Images(pixels[..., None].astype(np.float32) / np.float32(255), labels.astype(np.int64))


def _read(folder: Path, name: str, axes: int) -> np.ndarray:
    candidates = [folder / name, folder / f"{name}.gz"]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz")
    return parse_idx(read_verified(path, EXPECTED[name]), axes, str(path))


def _find_folder(folder: str | os.PathLike[str] | None) -> Path:
    configured = os.environ.get(FOLDER_VARIABLE)
    if folder is not None:
        place, origin = Path(folder), "the folder given"
    elif configured:
        place, origin = Path(configured), f"the environment variable {FOLDER_VARIABLE}"
    else:
        place = FOLDER_IN_REPOSITORY
        origin = f"the repository's own, since no folder is given and {FOLDER_VARIABLE} is not set"
    if not place.is_dir():
        raise FileNotFoundError(f"no folder with MNIST at {place} ({origin})")
    return place
