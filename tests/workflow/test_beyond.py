"""config/beyond.yaml and sums.yaml: all can be planned, and a small part can be made, to its picture and tables."""

import pytest
import yaml
from workspaces import ROOT, Workspace

from orbitgp_paper.config import load
from orbitgp_paper.runs.reading import read_runs

KEPT = ("rbf_312", "learned_312", "more_312")


@pytest.mark.parametrize(("tier", "figures"), [("beyond", {"sizes"}), ("sums", {"training"})])
def test_every_model_is_planned_and_nothing_else_is_measured(bare: Workspace, tier: str, figures: set[str]):
    jobs = bare.plan("--config", f"tier={tier}", "runs=build")
    assert {job.wildcards for job in jobs if job.rule == "figure"} == figures
    assert {job.rule for job in jobs} - {"figure"} == {"dataset", "train_run", "table", "page", "all"}
    trained = [job for job in jobs if job.rule == "train_run"]
    assert len(trained) == len(load(tier, ROOT / "config").all_runs())


def test_a_small_part_ends_in_picture_and_tables(bare: Workspace):
    config = load("beyond", ROOT / "config")
    sizes = {"inducing": {"count": 5}, "optimiser": {"steps": 2, "batch": 20}, "evaluation": {"count": 1, "samples": 4}}
    small = {"training": sizes}
    variants = dict.fromkeys(config.experiments["few_mnist"].variants) | dict.fromkeys(KEPT, small)
    few = {"seeds": [0], "variants": variants}
    training = {"compile": False, "final_pass": {"samples": 4, "refit": False}}
    content = {"tier": "mini", "base": "beyond", "runs": "build", "training": training}
    content["experiments"] = {**dict.fromkeys(config.experiments), "few_mnist": few}
    content["datasets"] = {name: {"train": 30, "test": 20} for name in config.datasets}
    (bare.folder / "config" / "mini.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    bare.snakemake("--cores", "2", "--config", "tier=mini")
    made = bare.folder / "results" / "mini"
    assert (made / "figures" / "sizes.png").stat().st_size > 1000
    finals = read_runs(sorted((made / "runs" / "few_mnist").glob("*/seed0"))).finals.set_index("variant")
    assert set(finals.index) == set(KEPT) and set(finals["originals"]) == {30}
    assert finals["train_size"].to_dict() == {"rbf_312": 30, "learned_312": 30, "more_312": 330}
    assert finals["test_class_nll"].notna().all() and finals["test_calibration_error"].notna().all()
