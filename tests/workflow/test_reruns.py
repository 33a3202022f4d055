"""An edit reruns what it touches, and nothing else."""

import os
from collections.abc import Callable

import numpy as np
import pytest
import yaml

FOLLOWS_EVERY_RUN = {("table", "runs"), ("claims", "")}


def test_nothing_is_left_to_do(smoke):
    assert "Nothing to be done" in smoke.snakemake("--dry-run").stdout


def test_a_learning_rate_reruns_its_variant_and_what_lies_below(workspace, only: Callable):
    workspace.replace(
        "config/smoke.yaml",
        "rotation: {dataset: mnist, orbit: {kind: rotation, alpha: 10}, label: rotation}",
        "rotation: {dataset: mnist, orbit: {kind: rotation, alpha: 10}, label: rotation, "
        "training: {optimiser: {rates: {orbit: 0.005}}}}",
    )
    planned = workspace.plan()
    assert only(planned) == FOLLOWS_EVERY_RUN | {
        ("train_run", "mnist/rotation/0"),
        ("insensitivity", "rotation"),
        ("table", "mnist"),
        ("table", "insensitivity"),
        ("fig4", ""),
        ("appendix_a", ""),
    }
    # the page of all settings shows the file too
    assert {("settings_page", ""), ("page", "mnist"), ("page", "claims"), ("report_page", "")} <= set(planned)


def test_settings_written_in_another_order_rerun_nothing(workspace):
    path = workspace.folder / "config" / "smoke.yaml"
    turned = dict(reversed(yaml.safe_load(path.read_text()).items()))
    path.write_text("# another comment\n" + yaml.safe_dump(turned, sort_keys=False, allow_unicode=True))
    assert {job.rule for job in workspace.plan()} == {"settings_page", "report_page", "all"}


def test_another_seed_trains_that_seed_only(workspace, only: Callable):
    workspace.replace(
        "config/smoke.yaml", "rotated:    # Fig. 5\n    seeds: [0]", "rotated:    # Fig. 5\n    seeds: [0, 1]"
    )
    variants = ("rbf", "affine", "rotation", "fixed")
    new = {("train_run", f"rotated/{variant}/1") for variant in variants}
    assert only(workspace.plan()) == FOLLOWS_EVERY_RUN | new | {("table", "rotated"), ("fig5", "")}


def test_a_seed_taken_away_is_gone_from_table_and_figure(workspace, only: Callable):
    workspace.replace(
        "config/smoke.yaml",
        "      rbf: {dataset: rotated, orbit: {kind: identity}, label: RBF}\n",
        "",
    )
    assert only(workspace.plan()) == FOLLOWS_EVERY_RUN | {("table", "rotated"), ("fig5", "")}


def test_another_test_set_makes_the_data_and_its_runs_anew(workspace, only: Callable):
    workspace.replace("config/smoke.yaml", "rotated: {kind: rotated, seed: 0,", "rotated: {kind: rotated, seed: 1,")
    planned = only(workspace.plan())
    assert ("dataset", "rotated") in planned
    trained = {job.wildcards for job in planned if job.rule == "train_run"}
    assert trained == {f"rotated/{variant}/0" for variant in ("rbf", "affine", "rotation", "fixed")}


def test_code_that_makes_data_makes_them_and_every_run_anew(workspace):
    workspace.comment("src/orbitgp/datasets/rotation.py")
    planned = [job.rule for job in workspace.plan()]
    assert planned.count("dataset") == 4 and planned.count("train_run") == 16


def test_images_of_ones_own_and_an_experiment_of_ones_own(workspace, only: Callable):
    arrays = np.load(workspace.results / "data" / "mnist.npz")
    own = {"images": arrays["train_images"], "labels": arrays["train_labels"]}
    np.savez(workspace.folder / "mine.npz", **own)
    workspace.replace(
        "config/smoke.yaml",
        "datasets:\n",
        "datasets:\n  mine: {kind: images, path: mine.npz, test_fraction: 0.2, seed: 0}\n",
    )
    workspace.replace(
        "config/smoke.yaml",
        "experiments:\n",
        "experiments:\n  mine:\n    seeds: [0]\n    variants:\n"
        "      rbf: {dataset: mine, orbit: {kind: identity}, label: RBF}\n",
    )
    trained = {("dataset", "mine"), ("train_run", "mine/rbf/0"), ("table", "mine")}
    assert only(workspace.plan()) == FOLLOWS_EVERY_RUN | trained
    workspace.snakemake("--cores", "2", "tables")
    assert not only(workspace.plan())
    np.savez(workspace.folder / "mine.npz", images=255 - own["images"], labels=own["labels"])
    assert only(workspace.plan()) == FOLLOWS_EVERY_RUN | trained


def test_a_measurement_reruns_without_training(workspace, only: Callable):
    workspace.replace("config/smoke.yaml", "digits: 4, draws: 4", "digits: 4, draws: 6")
    assert only(workspace.plan()) == {("samples", ""), ("fig1", "")}


def test_the_library_reruns_every_training(workspace):
    workspace.comment("src/orbitgp/kernels.py")
    planned = workspace.plan()
    assert sum(job.rule == "train_run" for job in planned) == 16
    assert {"toy", "samples", "insensitivity", "estimators", "table", "claims", "fig3"} <= {job.rule for job in planned}
    assert "dataset" not in {job.rule for job in planned}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("src/orbitgp/figures/fig3.py", {"fig3"}),
        ("src/orbitgp/figures/appendix_b.py", {"appendix_b"}),
        ("src/orbitgp/figures/curves.py", {"fig3", "fig4", "fig5"}),
        ("src/orbitgp/analysis/claims.py", {"claims"}),
    ],
)
def test_a_module_reruns_what_it_makes(workspace, only: Callable, module: str, expected: set[str]):
    workspace.comment(module)
    assert {job.rule for job in only(workspace.plan())} == expected


def test_a_claim_reruns_the_verdicts(workspace, only: Callable):
    path = workspace.folder / "config" / "claims.yaml"
    path.write_text(path.read_text() + "\n# a comment\n")
    assert only(workspace.plan()) == {("claims", "")}


def test_a_date_alone_reruns_nothing(workspace):
    for folder in ("src", "config", "workflow"):
        for path in (workspace.folder / folder).rglob("*.*"):
            os.utime(path)
    assert "Nothing to be done" in workspace.snakemake("--dry-run").stdout


def test_images_that_were_deleted_are_made_only_when_needed(workspace):
    (workspace.results / "data" / "mnist.npz").unlink()
    assert "Nothing to be done" in workspace.snakemake("--dry-run").stdout
