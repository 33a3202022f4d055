"""config/own.yaml through Slurm: images and an orbit of the user's own, and the results of a local run."""

from pathlib import Path

from slurm.cluster import Cluster
from slurm.conftest import digests, fill_in, snakemake
from workspaces import Workspace, with_photos


def test_results_are_those_of_a_local_run_byte_for_byte(cluster: Cluster, own: Workspace, tmp_path: Path):
    site = fill_in(with_photos(tmp_path / "site"))
    snakemake(cluster, site, "--config", "tier=own")
    here, there = (digests(workspace.folder / "results" / "own") for workspace in (own, site))
    trained = {f"runs/shapes/{variant}/seed0/params.npz" for variant in ("rotation", "affine")}
    assert {*trained, "tables/shapes.csv"} <= set(there)
    assert [name for name in sorted(here | there) if here.get(name) != there.get(name)] == []
    jobs = [job["Comment"] for job in cluster.jobs() if job["WorkDir"] == str(site.folder)]
    assert sum(name.startswith("rule_train_run_") for name in jobs) == 2
