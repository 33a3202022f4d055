"""
What a cluster does to jobs: two trainings are hit by three faults each, all in one workflow, which goes on by itself
with the profile as shipped.
"""

import json
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from slurm.cluster import Cluster
from slurm.conftest import GPUS, PROFILE, fill_in, snakemake
from workspaces import Workspace, checkout

TIER, UNDISTURBED = "faults", "undisturbed"
ROWS = 3  # of metrics that an attempt has written when it is hit: there is something to lose by then


class Fault(NamedTuple):
    """What is done to a job, and what Slurm's log has to say of it."""

    strike: Callable[[Cluster, str], object]
    reason: str
    requeued: bool = False  # Slurm starts it again, rather than Snakemake


def preempt(cluster: Cluster, job: str) -> None:
    """A job of higher priority needs all GPUs but those of other jobs, which are safe from it."""
    running = [job for job in cluster.jobs() if job["JobState"] == "RUNNING" and job["JOB_GRES"] == "gpu:1"]
    needed = GPUS - len(running) + 1
    cluster.ask("sbatch", "--partition=urgent", f"--gres=gpu:{needed}", "--output=/dev/null", "--wrap=sleep 1")


TERMINATED = Fault(lambda it, job: it.ask("scancel", "--signal=TERM", job), "asked to stop by SIGTERM; saved")
CANCELLED = Fault(lambda it, job: it.ask("scancel", job), r"JOB \d+ ON \w+ CANCELLED AT \S+ \*")
# a limit is in minutes, and these trainings take less
OVER_TIME = Fault(lambda it, job: it.ask("scontrol", "update", f"JobId={job}", "EndTime=now"), "DUE TO TIME LIMIT")
REQUEUED = Fault(lambda it, job: it.ask("scontrol", "requeue", job), "DUE TO JOB REQUEUE", requeued=True)
PREEMPTED = Fault(preempt, "DUE TO PREEMPTION", requeued=True)
OUT_OF_MEMORY = Fault(lambda it, job: None, r"exceeded memory limit .*, being killed")  # by itself, see victim.py

#: by training, in turn: the profile has Snakemake try again twice
HIT = {"asked": [REQUEUED, TERMINATED, OVER_TIME], "starved": [OUT_OF_MEMORY, PREEMPTED, CANCELLED]}


class Victims:
    """Trainings that are hit, and what is left of them."""

    def __init__(self, cluster: Cluster, site: Workspace) -> None:
        self.cluster, self.site = cluster, site
        self.results = site.folder / "results" / TIER

    def jobs(self, variant: str) -> list[dict[str, str]]:
        """Slurm's, in the order of their submission."""
        comment = f"rule_train_run_wildcards_mnist_{variant}_0"
        mine = [job for job in self.cluster.jobs() if job.get("Comment") == comment]
        return sorted(mine, key=lambda job: int(job["JobId"]))

    def log(self, variant: str) -> str:
        """The training's own: the last attempt's, and the first and last lines of those before."""
        path = self.results / "logs" / "train" / "mnist" / variant / "seed0.log"
        return path.read_text() if path.exists() else ""

    def slurm_log(self, variant: str) -> str:
        """Of all its jobs."""
        folder = self.site.folder / ".snakemake" / "slurm_logs" / "rule_train_run" / f"mnist_{variant}_0"
        return "".join(path.read_text() for path in sorted(folder.glob("*.log")))

    def file(self, variant: str, name: str) -> bytes:
        return (self.results / "runs" / "mnist" / variant / "seed0" / name).read_bytes()

    def strike_all(self, snakemake_runs: Callable[[], bool]) -> None:
        """An attempt is hit as soon as it has its rows; once all faults have hit, the training need not be slow."""
        struck = dict.fromkeys(HIT, 0)
        while struck and snakemake_runs():
            for variant, done in [*struck.items()]:
                log = self.log(variant)
                attempts, now = log.count(" UTC: process "), log.rpartition(" UTC: process ")[2]
                if done == len(HIT[variant]):
                    if attempts > done:
                        (self.site.folder / "slow" / variant).unlink()
                        del struck[variant]
                elif attempts == done + 1 and len(re.findall(r"^step \d+ of", now, flags=re.M)) >= ROWS:
                    HIT[variant][done].strike(self.cluster, self.jobs(variant)[-1]["JobId"])
                    struck[variant] += 1
            time.sleep(0.3)


def configure(site: Workspace) -> None:
    """A size of its own: the same small training for all, and the one that may be preempted on lent nodes."""
    block = {"dataset": "mnist", "orbit": {"kind": "rotation", "alpha": 10}}
    block["training"] = {"optimiser": {"steps": 200}, "evaluation": {"count": 100}}
    variants = {name: block | {"label": name} for name in (UNDISTURBED, *HIT)}
    settings = {"tier": TIER, "base": "smoke", "experiments": {"mnist": {"variants": variants}}}
    (site.folder / "config" / f"{TIER}.yaml").write_text(yaml.safe_dump(settings))
    shutil.copy(Path(__file__).with_name("victim.py"), site.folder / "workflow/scripts")
    site.replace("workflow/scripts/train.py", "from orbitgp_paper.runs.train import train", "from victim import train")
    lent = "slurm_partition: \"'lent' if wildcards.variant == 'starved' else 'main'\""
    site.replace(PROFILE, "\n  train_run:\n", f"\n  train_run:\n    {lent}\n")
    for name in (*(f"slow/{variant}" for variant in HIT), "greedy/starved"):
        (site.folder / name).parent.mkdir(exist_ok=True)
        (site.folder / name).touch()


@pytest.fixture(scope="module")
def victims(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Victims:
    """After all of them were hit, and Snakemake has ended without an error."""
    site = fill_in(checkout(tmp_path_factory.mktemp("faults") / "site"))
    configure(site)
    found = Victims(cluster, site)
    wanted = [f"results/{TIER}/runs/mnist/{variant}/seed0/final.json" for variant in (UNDISTURBED, *HIT)]
    with ThreadPoolExecutor(1) as pool:
        workflow = pool.submit(snakemake, cluster, site, *wanted, "--config", f"tier={TIER}")
        try:
            found.strike_all(lambda: not workflow.done())
        finally:
            shutil.rmtree(site.folder / "slow")  # so that Snakemake ends soon, come what may
        workflow.result()
    return found


@pytest.mark.parametrize("variant", HIT)
def test_what_was_hit_ends_as_if_nothing_had_happened(victims, variant):
    for name in ("metrics.csv", "params.npz"):
        assert victims.file(variant, name) == victims.file(UNDISTURBED, name), name
    hit, spared = (json.loads(victims.file(name, "final.json")) for name in (variant, UNDISTURBED))
    assert all(hit.pop(name) != spared.pop(name) for name in ("variant", "label", "config_digest"))
    for final in (hit, spared):
        del final["files"]["config.yaml"]  # its digest: the names are in there too
    assert hit == spared


@pytest.mark.parametrize("variant", HIT)
def test_it_goes_on_from_a_checkpoint_that_it_saved_when_it_was_told_to_stop(victims, variant):
    assert json.loads(victims.file(variant, "provenance.json"))["resumed"] == len(HIT[variant])
    saved = [int(step) for step in re.findall(r"^=== stopped: .* saved at step (\d+);", victims.log(variant), re.M)]
    assert len(saved) == len([fault for fault in HIT[variant] if fault != OUT_OF_MEMORY])
    assert saved == sorted({*saved}) and f"\nresumed at step {saved[-1]} of 200\n" in victims.log(variant)


@pytest.mark.parametrize("variant", HIT)
def test_slurms_log_says_why(victims, variant):
    for fault in HIT[variant]:
        assert re.search(fault.reason, victims.slurm_log(variant)), fault
        assert not re.search(fault.reason, victims.slurm_log(UNDISTURBED)), fault


@pytest.mark.parametrize("variant", HIT)
def test_a_retry_is_given_more_memory_and_time(victims, variant):
    jobs = victims.jobs(variant)
    assert len(jobs) == 3 and sum(int(job["Restarts"]) for job in jobs) == 1  # Slurm's own, of what it requeued
    memory = [int(job["MinMemoryNode"].removesuffix("M")) for job in jobs]
    assert memory == [memory[0], 2 * memory[0], 3 * memory[0]]
    limits = [job["TimeLimit"] for job in jobs if job["JobState"] != "TIMEOUT"]  # which is how one was hit
    assert set(limits) <= {"00:10:00", "00:20:00", "00:30:00"} and len(set(limits)) == len(limits) >= 2


@pytest.mark.parametrize("variant", [UNDISTURBED, *HIT])
def test_every_attempt_had_a_gpu(victims, variant):
    for job in victims.jobs(variant):
        assert job["TresPerJob"] == "gres:gpu:1" and job["JOB_GRES"] == "gpu:1"
    assert re.search(r"^CUDA_VISIBLE_DEVICES=[0-7]$", victims.log(variant), flags=re.M)
