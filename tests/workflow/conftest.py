"""Nothing here without Snakemake."""

import pytest

pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
