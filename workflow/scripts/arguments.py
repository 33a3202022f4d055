"""What the scripts have in common: each takes paths and settings as options, and can be run by hand."""

from __future__ import annotations

import argparse
from typing import Any


def parse(description: str | None, **options: Any) -> argparse.Namespace:
    """
    :param description: the script's docstring.
    :param options: options by name, with their types; ``[type]`` makes a list of all positional arguments.
    """
    parser = argparse.ArgumentParser(description=description)
    for name, kind in options.items():
        if isinstance(kind, list):
            parser.add_argument(name, type=kind[0], nargs="*")
        else:
            parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args()
