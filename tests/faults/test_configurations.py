"""Hostile and silly configurations, given to Snakemake itself; tests/test_configuration.py has the rest of them."""

import shutil
from pathlib import Path

import pytest
from workspaces import Workspace

LAUGHS = "l0: &l0 lol\n" + "".join(f"l{i}: &l{i} [{', '.join(10 * [f'*l{i - 1}'])}]\n" for i in range(1, 10))

#: by what they are: an edit of the smoke size's file, as what is replaced and what stands there then; the complaint
EDITS = {
    "a way out": ("      rbf: {dataset: mnist,", "      ../../x/rbf: {dataset: mnist,", "has the key '../../x/rbf'"),
    "a wildcard": ("      rbf: {dataset: mnist,", "      '{seed}': {dataset: mnist,", "has the key '{seed}'"),
    "no number": ("kernel: {variance: 0.02,", "kernel: {variance: .nan,", "training.kernel.variance is nan"),
    "negative": ("    batch: 50\n", "    batch: -50\n", "training.optimiser.batch = -50 must be"),
    "huge": ("    batch: 50\n", f"    batch: {10**30}\n", "training.optimiser.batch = 1000000000000000"),
    "unknown": ("precision: mixed", "precison: mixed", "(did you mean precision?)"),
    "code": ("tier: smoke\n", "tier: !!python/object/apply:os.mkdir [sprung]\n", "is not YAML: could not determine"),
    "laughs": ("tier: smoke\n", f"tier: smoke\n{LAUGHS}", "there are more than 100,000 values"),
    "twice": ("tier: smoke\n", "tier: smoke\ntier: smoke\n", "the key 'tier' stands a second time in line 3"),
}


def everything(folder: Path) -> set[Path]:
    """All files but Snakemake's own records and what Python compiles."""
    return {path for path in folder.rglob("*") if not {".snakemake", "__pycache__"} & {*path.parts}}


@pytest.mark.parametrize("kind", EDITS)
def test_it_is_refused_in_one_line_before_anything_starts(bare: Workspace, kind: str) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    old, new, complaint = EDITS[kind]
    bare.replace("config/smoke.yaml", old, new)
    before = everything(bare.folder.parent)
    done = bare.snakemake("--cores", "1", check=False)
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("config/smoke.yaml")]
    assert complaint in line and len(line) < 600
    assert "Traceback" not in done.stdout
    assert everything(bare.folder.parent) == before


@pytest.mark.parametrize("tier", ["../../etc/passwd", "../smoke", "smoke/../smoke", "{tier}", "!!python/name:os.mkdir"])
def test_a_tier_is_the_name_of_a_file_in_config(bare: Workspace, tier: str) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    # were names followed as ways, two of them would lead to a whole configuration
    shutil.copy(bare.folder / "config" / "smoke.yaml", bare.folder)
    (bare.folder / "config" / "smoke").mkdir()
    before = everything(bare.folder.parent)
    done = bare.snakemake("data", "--cores", "1", "--config", f"tier={tier}", check=False)
    assert done.returncode != 0
    assert [line for line in done.stdout.splitlines() if line.startswith("tier is ") and "; config has " in line]
    assert "Traceback" not in done.stdout
    assert everything(bare.folder.parent) == before
