"""Hostile and silly configurations, given to Snakemake itself; tests/unit/orbitgp_paper/test_config.py has the rest."""

import shutil
from pathlib import Path

import pytest
from workspaces import Workspace

#: what is replaced in the smoke size's file, what stands there then, and the complaint
EDITS = (
    (
        "      rbf: {dataset: mnist,",
        "      ../../x/rbf: {dataset: mnist,",
        "mnist.variants.../../x/rbf = '../../x/rbf'",
    ),
    ("      rbf: {dataset: mnist,", "      '{seed}': {dataset: mnist,", "mnist.variants.{seed} = '{seed}' must match"),
    ("kernel: {variance: 0.02,", "kernel: {variance: .nan,", "training.kernel.variance = nan must be a finite number"),
    ("precision: mixed", "precison: mixed", "(did you mean precision?)"),
    ("tier: smoke\n", "tier: !!python/object/apply:os.mkdir [sprung]\n", "is not YAML: could not determine"),
    ("tier: smoke\n", "tier: smoke\ntier: smoke\n", "the key 'tier' stands a second time"),
)
TIERS = ("../../etc/passwd", "../smoke", "smoke/../smoke", "{tier}", "!!python/name:os.mkdir")


def everything(folder: Path) -> set[Path]:
    """All files but Snakemake's own records and what Python compiles."""
    return {path for path in folder.rglob("*") if not {".snakemake", "__pycache__"} & {*path.parts}}


def test_they_are_refused_in_one_line_before_anything_starts(bare: Workspace) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    before, file = everything(bare.folder.parent), bare.folder / "config" / "smoke.yaml"
    good = file.read_text(encoding="utf-8")
    for old, new, complaint in EDITS:
        bare.replace("config/smoke.yaml", old, new)
        said = bare.dry_run(check=False)
        (line,) = [line for line in said.splitlines() if line.startswith("config/smoke.yaml")]
        assert complaint in line and len(line) < 700
        assert "Traceback" not in said and "rule " not in said
        file.write_text(good, encoding="utf-8")
    assert everything(bare.folder.parent) == before


def test_a_tier_is_the_name_of_a_file_in_config(bare: Workspace) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    # were names followed as ways, two of them would lead to a whole configuration
    shutil.copy(bare.folder / "config" / "smoke.yaml", bare.folder)
    (bare.folder / "config" / "smoke").mkdir()
    before = everything(bare.folder.parent)
    for tier in TIERS:
        said = bare.dry_run("data", "--config", f"tier={tier}", check=False)
        assert [line for line in said.splitlines() if line.startswith("tier is ") and "; config has " in line], said
        assert "Traceback" not in said
    assert everything(bare.folder.parent) == before
