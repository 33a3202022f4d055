"""An edit reruns what it touches, and nothing else."""

import os

import pytest
import yaml
from workspaces import Workspace

SMOKE = "config/smoke.yaml"
TRAININGS = {"mnist": ("rbf", "rotation", "affine", "local"), "rotated": ("rbf", "rotation", "fixed")}
FOLLOWS_EVERY_RUN = {"table runs", "table monitor", "claims"}
OF_MNIST = {"table mnist", "table insensitivity", "figure fig4", "figure appendix_a"}


def trainings(experiment: str, seed: int = 0) -> set[str]:
    return {f"train_run {experiment}/{variant}/{seed}" for variant in TRAININGS[experiment]}


EDITS = {
    "a learning rate": (
        "orbit: {kind: rotation, alpha: 10}, label: rotation}",
        "orbit: {kind: rotation, alpha: 10}, label: rotation, training: {optimiser: {rates: {orbit: 0.005}}}}",
        FOLLOWS_EVERY_RUN | OF_MNIST | {"train_run mnist/rotation/0", "insensitivity rotation"},
    ),
    "another seed": (
        "rotated:    # Fig. 5\n    seeds: [0]",
        "rotated:    # Fig. 5\n    seeds: [0, 1]",
        FOLLOWS_EVERY_RUN | trainings("rotated", seed=1) | {"table rotated", "figure fig5"},
    ),
    "a variant taken away": (
        "      rbf: {dataset: rotated, orbit: {kind: identity}, label: RBF}\n",
        "",
        FOLLOWS_EVERY_RUN | {"table rotated", "figure fig5"},
    ),
    "other images": (
        "rotated: {kind: rotated, seed: 0,",
        "rotated: {kind: rotated, seed: 1,",
        FOLLOWS_EVERY_RUN | trainings("rotated") | {"dataset rotated", "table rotated", "figure fig5"},
    ),
    "a measurement": ("digits: 4, draws: 4", "digits: 4, draws: 6", {"samples", "figure fig1"}),
}
COMMENTS = {
    "config/claims.yaml": {"claims"},
    "src/orbitgp_paper/analysis/claims.py": {"claims"},
    "src/orbitgp_paper/figures/fig3.py": {"figure fig3"},
    "src/orbitgp_paper/figures/curves.py": {f"figure fig{number}" for number in (3, 4, 5)},
}


@pytest.mark.parametrize(("old", "new", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_reruns_exactly_what_it_touches(workspace: Workspace, old: str, new: str, expected: set[str]):
    workspace.replace(SMOKE, old, new)
    assert workspace.work() == expected


@pytest.mark.parametrize(("file", "expected"), COMMENTS.items())
def test_another_line_of_code_too(workspace: Workspace, file: str, expected: set[str]):
    workspace.comment(file)
    assert workspace.work() == expected


@pytest.mark.parametrize(("file", "images"), [("kernels.py", 0), ("datasets/moved_images.py", 4)])
def test_the_library_reruns_trainings_and_measurements_and_makes_images_where_it_must(workspace, file, images):
    workspace.comment(f"src/orbitgp/{file}")
    planned = [job.rule for job in workspace.plan()]
    assert planned.count("train_run") == 10 and planned.count("dataset") == images
    measured = {"toy", "samples", "insensitivity", "estimators", "costs"}
    assert measured | {"table", "claims", "figure"} <= set(planned)


def test_order_and_dates_alone_rerun_nothing(workspace: Workspace):
    assert "Nothing to be done" in workspace.dry_run()
    for path in workspace.folder.rglob("*"):
        if path.is_file() and not path.is_relative_to(workspace.results / "runs"):
            os.utime(path)
    assert "Nothing to be done" in workspace.dry_run()
    path = workspace.folder / SMOKE
    turned = dict(reversed(yaml.safe_load(path.read_text()).items()))
    path.write_text("# another comment\n" + yaml.safe_dump(turned, sort_keys=False, allow_unicode=True))
    assert set(workspace.plan()) == {("page", ""), ("all", "")}


def test_the_same_images_made_again_retrain_nothing(workspace: Workspace):
    assert workspace.work("--forcerun", "dataset") == {
        f"dataset {name}" for name in ("mnist", "parity90", "parity180", "rotated")
    }
    for path in (workspace.results / "data").iterdir():
        path.unlink()
    assert "Nothing to be done" in workspace.dry_run()
    workspace.snakemake("data", "--cores", "2")
    assert "Nothing to be done" in workspace.dry_run()
