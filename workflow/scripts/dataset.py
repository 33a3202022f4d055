"""Makes a data set's images."""

from __future__ import annotations

import json
from pathlib import Path

from arguments import parse

from orbitgp_paper.experiments.images import make_dataset, write_dataset
from orbitgp_paper.spec import parse_dataset


def main() -> None:
    """Writes the .npz."""
    given = parse(__doc__, settings=json.loads, output=Path)
    write_dataset(given.output, make_dataset(parse_dataset(given.settings)))


if __name__ == "__main__":
    main()
