"""config/why.yaml: all of it can be planned, and a small part of it can be made, to its picture and table."""

import pandas as pd
import yaml
from workspaces import ROOT, Workspace

from orbitgp_paper.config import load

KEPT = ("adam_sigmoid_shared_90_from_60", "natural_fold_own_180_from_60")


def test_every_recipe_is_planned_and_nothing_else_is_measured(bare: Workspace):
    jobs = bare.plan("--config", "tier=why", "runs=build")
    assert {job.wildcards for job in jobs if job.rule == "figure"} == {"fig4", "fig5", "recipes", "training"}
    assert {job.rule for job in jobs} == {"dataset", "train_run", "table", "figure", "page", "all"}
    cells = {job.wildcards.split("/")[1] for job in jobs if job.wildcards.startswith("recipes/")}
    recipes = [f"{o}_{t}_{d}" for o in ("adam", "natural") for t in ("fold", "sigmoid") for d in ("own", "shared")]
    assert cells == {f"{recipe}_{true}_from_60" for recipe in recipes for true in (90, 180)} | {
        f"{recipe}_90_from_{start}"
        for recipe in recipes[:4]
        for start in (20, 150)  # Adam's
    }


def test_a_variant_is_what_its_name_says():
    config = load("why", ROOT / "config")
    for run in config.all_runs():
        if run.experiment == "recipes":
            spec = config.spec(run)
            optimiser, transform, draws, true, _, start = run.variant.split("_")
            assert (spec.optimiser.kind, spec.orbit.transform) == (optimiser, transform)
            assert spec.scheme.shared == (draws == "shared")
            assert (spec.dataset.alpha, spec.orbit.alpha) == (float(true), float(start))


def test_a_small_part_ends_in_picture_and_table(bare: Workspace):
    config = load("why", ROOT / "config")
    small = {"training": {"optimiser": {"steps": 2, "batch": 20}}}
    variants = dict.fromkeys(config.experiments["recipes"].variants) | dict.fromkeys(KEPT, small)
    recipes = {"training": {"likelihood": {"hidden": [8]}}, "variants": variants}
    experiments = {**dict.fromkeys(config.experiments), "recipes": recipes}
    training = {"compile": False, "inducing": {"count": 5}, "final_pass": {"samples": 4}}
    training["evaluation"] = {"count": 1, "samples": 4}
    content = {"tier": "mini", "base": "why", "runs": "build", "training": training, "experiments": experiments}
    content["datasets"] = {name: {"train": 100, "test": 40} for name in config.datasets}
    (bare.folder / "config" / "mini.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    bare.snakemake("--cores", "2", "--config", "tier=mini")
    made = bare.folder / "results" / "mini"
    assert (made / "figures" / "recipes.png").stat().st_size > 1000
    table = pd.read_csv(made / "tables" / "recipes.csv").set_index("variant")
    assert set(table.index) == set(KEPT) and table["elbo_mean"].notna().all()
    assert list(table.loc[list(KEPT), "alpha_true"]) == [90.0, 180.0]
    assert list(table.loc[list(KEPT), "start"].round(6)) == [60.0, 60.0]
