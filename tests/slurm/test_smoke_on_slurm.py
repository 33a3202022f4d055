"""The smoke size through Slurm: the shipped profile, the shipped workflow, and the results of a local run."""

import pytest
from slurm.cluster import Cluster
from slurm.conftest import digests, fill_in, snakemake
from workspaces import Workspace, checkout


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The smoke size, made on the cluster."""
    filled = fill_in(checkout(tmp_path_factory.mktemp("smoke") / "site"))
    snakemake(cluster, filled)
    return filled


@pytest.fixture(scope="module")
def jobs(cluster: Cluster, site: Workspace) -> dict[str, dict[str, str]]:
    """What Slurm knows of the jobs, by what the plugin says they are."""
    mine = [job for job in cluster.jobs() if job["WorkDir"] == str(site.folder)]
    return {job["Comment"]: job for job in mine}


def test_results_are_those_of_a_local_run_byte_for_byte(cluster, smoke, site):
    here, there = digests(smoke.results), digests(site.results)
    runs = sorted(name for name in there if name.startswith("runs/") and name.endswith("/seed0/params.npz"))
    assert len(runs) == 10 and {"claims.csv", "tables/mnist.csv", "figures/fig4.pdf"} <= set(there)
    assert [name for name in sorted(here | there) if here.get(name) != there.get(name)] == []


def test_each_training_asked_for_one_gpu_and_got_it(cluster, jobs):
    with_gpu = {name for name in jobs if name.startswith(("rule_train_run_", "rule_insensitivity_"))}
    assert len(with_gpu) == 10 + 2
    for name, job in jobs.items():
        devices = cluster.devices()[job["JobId"]]
        if name in with_gpu:
            assert job["TresPerJob"] == "gres:gpu:1" and job["JOB_GRES"] == "gpu:1", name  # asked for; given
            assert devices <= set("01234567") and len(devices) == 1, name
        else:
            assert job["JOB_GRES"] == "(null)" and devices <= {"", "-1"}, name


def test_short_jobs_share_one_of_slurms(jobs):
    others = {name for name in jobs if not name.startswith(("rule_train_run_", "rule_insensitivity_"))}
    assert others == {"rule_data_dataset", "rule_measure_costs_estimators_toy_toy_draws", "rule_samples"}
    assert all(job["JobState"] == "COMPLETED" and job["Restarts"] == "0" for job in jobs.values())
