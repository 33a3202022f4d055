"""The images of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbitgp.datasets import ImageData
from orbitgp_paper.experiments.images import make_dataset, read_dataset


def images_of(spec: Mapping[str, Any], file: Path) -> ImageData:
    """
    :param file: the data set, as its rule left it. Results that came with the repository came without it; whoever
        measures them anew gets the images made anew.
    """
    return read_dataset(file) if file.exists() else make_dataset(spec["dataset"])
