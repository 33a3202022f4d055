"""
What a cluster does to jobs: each fault hits a training of its own, all in one workflow, which goes on by itself with
the profile as shipped.
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
from slurm.conftest import GPUS
from slurm.site import PROFILE, fill_in, snakemake
from workspaces import Workspace, checkout

TIER = "faults"
UNDISTURBED = "undisturbed"
HIT_AT = 20  # the step from which on a training is hit: there is something to lose by then


class Fault(NamedTuple):
    """What is done to a job, and what Slurm's log has to say of it."""

    strike: Callable[[Cluster, str], object]
    reason: str
    requeued: bool = False  # Slurm starts it again, rather than Snakemake


def preempt(cluster: Cluster, job: str) -> None:
    """A job of higher priority needs all GPUs but those of other jobs, which are safe from it."""
    running = [job for job in cluster.jobs() if job["JobState"] == "RUNNING" and job["JOB_GRES"] == "gpu:1"]
    needed = GPUS - len(running) + 1
    cluster.ask("sbatch", "--partition=urgent", f"--gres=gpu:{needed}", "--output=/dev/null", "--wrap=sleep 3")


FAULTS = {
    "terminated": Fault(
        lambda cluster, job: cluster.ask("scancel", "--signal=TERM", job), "asked to stop by SIGTERM; saved"
    ),
    "cancelled": Fault(lambda cluster, job: cluster.ask("scancel", job), r"JOB \d+ ON \w+ CANCELLED AT \S+ \*"),
    "time_limit": Fault(
        # a limit is in minutes, and these trainings take less
        lambda cluster, job: cluster.ask("scontrol", "update", f"JobId={job}", "EndTime=now"),
        "DUE TO TIME LIMIT",
    ),
    "requeued": Fault(
        lambda cluster, job: cluster.ask("scontrol", "requeue", job), "DUE TO JOB REQUEUE", requeued=True
    ),
    "preempted": Fault(preempt, "DUE TO PREEMPTION", requeued=True),
    # by itself, see victim.py
    "out_of_memory": Fault(lambda cluster, job: None, r"exceeded memory limit .*, being killed"),
}


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
        """The training's own."""
        path = self.results / "logs" / "train" / "mnist" / variant / "seed0.log"
        return path.read_text() if path.exists() else ""

    def slurm_log(self, variant: str) -> str:
        """Of the job that was hit."""
        folder = self.site.folder / ".snakemake" / "slurm_logs" / "rule_train_run" / f"mnist_{variant}_0"
        return (folder / f"{self.jobs(variant)[0]['JobId']}.log").read_text()

    def file(self, variant: str, name: str) -> bytes:
        return (self.results / "runs" / "mnist" / variant / "seed0" / name).read_bytes()

    def slow(self, variant: str) -> Path:
        """While it is there, the training is slow."""
        return self.site.folder / "slow" / variant

    def trains(self, variant: str) -> bool:
        return f"step {HIT_AT} of" in self.log(variant)

    def was_hit(self, variant: str) -> bool:
        first = self.jobs(variant)[0]
        return first["JobState"] != "RUNNING" or first["Restarts"] != "0"

    def strike_all(self, snakemake_runs: Callable[[], bool]) -> None:
        """Each training is hit as soon as it trains; once it was hit it need not be slow any more."""
        waiting, struck = list(FAULTS), []
        while waiting + struck and snakemake_runs():
            for variant in [*filter(self.trains, waiting)]:
                FAULTS[variant].strike(self.cluster, self.jobs(variant)[0]["JobId"])
                waiting.remove(variant)
                struck.append(variant)
            for variant in [*filter(self.was_hit, struck)]:
                self.slow(variant).unlink()
                struck.remove(variant)
            time.sleep(0.5)


def configure(site: Workspace) -> None:
    """A size of its own: the same small training for each fault, and the one that may be preempted on lent nodes."""
    settings = yaml.safe_load((site.folder / "config/smoke.yaml").read_text())
    block = {"dataset": "mnist", "orbit": {"kind": "rotation", "alpha": 10}}
    variants = {name: block | {"label": name} for name in (UNDISTURBED, *FAULTS)}
    training = {"optimiser": {"steps": 300}, "evaluation": {"count": 150}}
    settings["tier"] = TIER
    settings["experiments"]["mnist"] = {"seeds": [0], "training": training, "variants": variants}
    settings["samples"]["variant"], settings["insensitivity"]["variants"] = UNDISTURBED, [UNDISTURBED]
    (site.folder / "config" / f"{TIER}.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    shutil.copy(Path(__file__).with_name("victim.py"), site.folder / "workflow/scripts")
    site.replace("workflow/scripts/train.py", "from orbitgp_paper.runs.train import train", "from victim import train")
    lent = "slurm_partition: \"'lent' if wildcards.variant == 'preempted' else 'main'\""
    site.replace(PROFILE, "\n  train_run:\n", f"\n  train_run:\n    {lent}\n")


@pytest.fixture(scope="module")
def victims(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Victims:
    """After all of them were hit, and Snakemake has ended without an error."""
    site = fill_in(checkout(tmp_path_factory.mktemp("faults") / "site"))
    configure(site)
    found = Victims(cluster, site)
    for variant in FAULTS:
        found.slow(variant).parent.mkdir(exist_ok=True)
        found.slow(variant).touch()
    wanted = [f"results/{TIER}/runs/mnist/{variant}/seed0/final.json" for variant in (UNDISTURBED, *FAULTS)]
    with ThreadPoolExecutor(1) as pool:
        workflow = pool.submit(snakemake, cluster, site, *wanted, "--config", f"tier={TIER}")
        try:
            found.strike_all(lambda: not workflow.done())
        finally:
            shutil.rmtree(site.folder / "slow")  # so that Snakemake ends soon, come what may
        workflow.result()
    return found


@pytest.mark.parametrize("variant", FAULTS)
def test_what_was_hit_ends_as_if_nothing_had_happened(victims, variant):
    for name in ("metrics.csv", "params.npz"):
        assert victims.file(variant, name) == victims.file(UNDISTURBED, name), name
    hit, spared = (json.loads(victims.file(name, "final.json")) for name in (variant, UNDISTURBED))
    names = ("variant", "label", "config_digest")
    assert all(hit.pop(name) != spared.pop(name) for name in names)
    for final in (hit, spared):
        del final["files"]["config.yaml"]  # its digest: the names are in there too
    assert hit == spared


@pytest.mark.parametrize("variant", FAULTS)
def test_it_goes_on_from_a_checkpoint_that_it_saved_when_it_was_told_to_stop(victims, variant):
    resumed = re.findall(r"^resumed at step (\d+) of 300$", victims.log(variant), flags=re.M)
    assert len(resumed) == 1 and int(resumed[0]) >= HIT_AT
    assert json.loads(victims.file(variant, "provenance.json"))["resumed"] == 1


@pytest.mark.parametrize("variant", FAULTS)
def test_slurms_log_says_why(victims, variant):
    assert re.search(FAULTS[variant].reason, victims.slurm_log(variant))
    spared = victims.slurm_log(UNDISTURBED)
    assert not any(re.search(fault.reason, spared) for fault in FAULTS.values())


@pytest.mark.parametrize("variant", FAULTS)
def test_a_retry_is_given_more_memory_and_time(victims, variant):
    first, *others = victims.jobs(variant)
    if FAULTS[variant].requeued:
        assert not others and first["Restarts"] == "1"
        return
    (second,) = others
    memory = [int(job["MinMemoryNode"].removesuffix("M")) for job in (first, second)]
    assert memory[1] == 2 * memory[0]
    assert second["TimeLimit"] == "00:20:00"
    assert first["TimeLimit"] == "00:10:00" or variant == "time_limit"  # which is how it was hit


@pytest.mark.parametrize("variant", [UNDISTURBED, *FAULTS])
def test_every_attempt_had_a_gpu(victims, variant):
    for job in victims.jobs(variant):
        assert job["TresPerJob"] == "gres:gpu:1" and job["JOB_GRES"] == "gpu:1"
    assert re.search(r"^CUDA_VISIBLE_DEVICES=[0-7]$", victims.log(variant), flags=re.M)
