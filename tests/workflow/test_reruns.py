"""An edit reruns what it touches, and nothing else."""

import os

import numpy as np
import pytest
import yaml
from workspaces import Workspace

SMOKE = "config/smoke.yaml"
TRAININGS = {"mnist": ("rbf", "rotation", "affine", "local"), "rotated": ("rbf", "affine", "rotation", "fixed")}
FOLLOWS_EVERY_RUN = {"table runs", "claims"}
OF_MNIST = {"table mnist", "table insensitivity", "figure fig4", "figure appendix_a"}


def trainings(experiment: str, seed: int = 0) -> set[str]:
    return {f"train_run {experiment}/{variant}/{seed}" for variant in TRAININGS[experiment]}


EDITS = {
    "a learning rate": (
        SMOKE,
        "orbit: {kind: rotation, alpha: 10}, label: rotation}",
        "orbit: {kind: rotation, alpha: 10}, label: rotation, training: {optimiser: {rates: {orbit: 0.005}}}}",
        FOLLOWS_EVERY_RUN | OF_MNIST | {"train_run mnist/rotation/0", "insensitivity rotation"},
    ),
    "another seed": (
        SMOKE,
        "rotated:    # Fig. 5\n    seeds: [0]",
        "rotated:    # Fig. 5\n    seeds: [0, 1]",
        FOLLOWS_EVERY_RUN | trainings("rotated", seed=1) | {"table rotated", "figure fig5"},
    ),
    "a variant taken away": (
        SMOKE,
        "      rbf: {dataset: rotated, orbit: {kind: identity}, label: RBF}\n",
        "",
        FOLLOWS_EVERY_RUN | {"table rotated", "figure fig5"},
    ),
    "other images": (
        SMOKE,
        "rotated: {kind: rotated, seed: 0,",
        "rotated: {kind: rotated, seed: 1,",
        FOLLOWS_EVERY_RUN | trainings("rotated") | {"dataset rotated", "table rotated", "figure fig5"},
    ),
    "a measurement": (SMOKE, "digits: 4, draws: 4", "digits: 4, draws: 6", {"samples", "figure fig1"}),
    "a claim": ("config/claims.yaml", None, None, {"claims"}),
    "a figure": ("src/orbitgp_paper/figures/fig3.py", None, None, {"figure fig3"}),
    "what several figures share": (
        "src/orbitgp_paper/figures/curves.py",
        None,
        None,
        {f"figure fig{number}" for number in (3, 4, 5)},
    ),
    "verdicts": ("src/orbitgp_paper/analysis/claims.py", None, None, {"claims"}),
}


@pytest.mark.parametrize(("file", "old", "new", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_reruns_exactly_what_it_touches(
    workspace: Workspace, file: str, old: str, new: str, expected: set[str]
):
    workspace.comment(file) if old is None else workspace.replace(file, old, new)
    assert workspace.work() == expected


def test_nothing_is_left_to_do(smoke: Workspace):
    assert "Nothing to be done" in smoke.dry_run()


def test_the_library_reruns_trainings_and_measurements_but_makes_no_images(workspace: Workspace):
    workspace.comment("src/orbitgp/kernels.py")
    planned = [job.rule for job in workspace.plan()]
    assert planned.count("train_run") == 16 and "dataset" not in planned
    assert {"toy", "samples", "insensitivity", "estimators", "table", "claims", "figure"} <= set(planned)


def test_code_that_makes_images_makes_them_and_every_run_anew(workspace: Workspace):
    workspace.comment("src/orbitgp/datasets/rotated_mnist.py")
    planned = [job.rule for job in workspace.plan()]
    assert planned.count("dataset") == 4 and planned.count("train_run") == 16


def test_order_and_dates_alone_rerun_nothing(workspace: Workspace):
    for path in workspace.folder.rglob("*"):
        if path.is_file() and not path.is_relative_to(workspace.results / "runs"):
            os.utime(path)
    assert "Nothing to be done" in workspace.dry_run()
    path = workspace.folder / SMOKE
    turned = dict(reversed(yaml.safe_load(path.read_text()).items()))
    path.write_text("# another comment\n" + yaml.safe_dump(turned, sort_keys=False, allow_unicode=True))
    assert set(workspace.plan()) == {("page", "settings"), ("all", "")}


def test_the_same_images_made_again_retrain_nothing(workspace: Workspace):
    assert workspace.work("--forcerun", "dataset") == {
        f"dataset {name}" for name in ("mnist", "parity90", "parity180", "rotated")
    }
    for path in (workspace.results / "data").iterdir():
        path.unlink()
    assert "Nothing to be done" in workspace.dry_run()
    workspace.snakemake("data", "--cores", "2")
    assert "Nothing to be done" in workspace.dry_run()


def test_images_of_ones_own_and_an_experiment_of_ones_own_without_any_of_the_papers(bare: Workspace):
    rng = np.random.default_rng(0)
    own = {"images": rng.integers(0, 256, (60, 8, 8), dtype=np.uint8), "labels": np.arange(60) % 3}
    np.savez(bare.folder / "mine.npz", **own)
    (bare.folder / "config/own.yaml").write_text(OWN)
    chain = {"dataset mine", "train_run shapes/rbf/0", "table shapes", "table runs", "claims"}
    assert bare.work("--config", "tier=own") == chain
    bare.snakemake("--cores", "2", "--config", "tier=own", "--report-after-run", "--report", "report.html")
    assert "shapes" in (bare.folder / "results/own/tables/runs.md").read_text()
    os.utime(bare.folder / "mine.npz")
    assert "Nothing to be done" in bare.dry_run("--config", "tier=own")
    np.savez(bare.folder / "mine.npz", images=255 - own["images"], labels=own["labels"])
    assert bare.work("--config", "tier=own") == chain


OWN = """
tier: own
datasets:
  mine: {kind: images, path: mine.npz, test_fraction: 0.2, seed: 0}
experiments:
  shapes:
    seeds: [0]
    training:
      inducing: {count: 8}
      compile: false
      optimiser: {steps: 4, batch: 20}
      final_pass: {samples: 4}
      evaluation: {count: 2, samples: 4}
    variants:
      rbf: {dataset: mine, orbit: {kind: identity}, label: RBF}
"""
