"""``python -m orbitgp``: the command ``orbitgp``, where it is not installed."""

import sys

from orbitgp.cli import main

sys.exit(main())
