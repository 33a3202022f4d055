"""Hostile and silly configurations, given to Snakemake itself; tests/unit/orbitgp_paper/test_config.py has the rest."""

import shutil
from pathlib import Path

import pytest
from workspaces import Workspace

pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")

RBF = "      rbf: {dataset: mnist,"
#: what is replaced in the smoke size's file, what stands there then, and the complaint
EDITS = (
    (RBF, "      ../../x/rbf: {dataset: mnist,", "mnist.variants.../../x/rbf = '../../x/rbf'"),
    (RBF, "      '{seed}': {dataset: mnist,", "mnist.variants.{seed} = '{seed}' must match"),
    ("kernel: {variance: 0.02,", "kernel: {variance: .nan,", "training.kernel.variance = nan must be a finite number"),
    ("precision: mixed", "precison: mixed", "(did you mean precision?)"),
    ("tier: smoke\n", "tier: !!python/object/apply:os.mkdir [sprung]\n", "is not YAML: could not determine"),
    ("tier: smoke\n", "tier: smoke\ntier: smoke\n", "the key 'tier' stands a second time"),
    ("mnist: {kind: mnist,", "mnist: {kind: mnist, folder: gone,", "datasets.mnist.folder = 'gone' is not there"),
)
TIERS = ("smok", "../../etc/passwd", "../smoke", "smoke/../smoke", "{tier}", "!!python/name:os.mkdir")
KNOWN = "ablation, beyond, checks, cifar10, own, paper, quick, smoke, sums, why"
#: what is given on the command line, how the complaint begins, and how it goes on
GIVEN = (
    *((f"tier={tier}", "tier is ", f"; config has {KNOWN}") for tier in TIERS),
    ("steps=5", "--config steps=5 ", "is not known. Allowed: tier (the name of a file in config); runs"),
    ("runs=both", "--config runs='both' ", "must be archive or build"),
    ("tensorboard=maybe", "--config tensorboard='maybe' ", "must be true or false"),
)


def everything(folder: Path) -> set[Path]:
    """All files but Snakemake's own records and what Python compiles."""
    return {path for path in folder.rglob("*") if not {".snakemake", "__pycache__"} & {*path.parts}}


def test_they_are_refused_in_one_line_before_anything_starts(bare: Workspace) -> None:
    # were names of sizes followed as ways, two of them would lead to a whole configuration
    file = bare.folder / "config" / "smoke.yaml"
    shutil.copy(file, bare.folder)
    (bare.folder / "config" / "smoke").mkdir()
    good, before, answers = file.read_text(encoding="utf-8"), everything(bare.folder.parent), []
    for old, new, complaint in EDITS:
        bare.replace("config/smoke.yaml", old, new)
        answers.append(("config/smoke.yaml", complaint, bare.dry_run(check=False)))
        file.write_text(good, encoding="utf-8")
    for given, beginning, complaint in GIVEN:
        answers.append((beginning, complaint, bare.dry_run("data", "--config", given, check=False)))
    for beginning, complaint, said in answers:
        (line,) = [line for line in said.splitlines() if line.startswith(beginning)]
        assert complaint in line and len(line) < 700
        assert "Traceback" not in said and "rule " not in said
    assert everything(bare.folder.parent) == before
