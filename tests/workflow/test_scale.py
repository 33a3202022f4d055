"""Thousands of trainings are planned within a minute."""

import re
import resource

SEEDS = 100
SECONDS = 60  # of a processor: a clock on the wall would measure what else the machine does


def used() -> float:
    """Seconds of processors that child processes of this one have had."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_a_hundred_seeds_of_everything_are_planned_within_a_minute(bare):
    paper = (bare.folder / "config/paper.yaml").read_text()
    many = paper.replace("tier: paper", "tier: many").replace("seeds: [0, 1, 2]", f"seeds: {[*range(SEEDS)]}")
    (bare.folder / "config/many.yaml").write_text(many)
    before = used()
    said = bare.snakemake("--dry-run", "--quiet", "rules", "--config", "tier=many", "runs=build").stdout
    took = used() - before
    counted = dict(re.findall(r"^(\w+) +(\d+)$", said, flags=re.M))
    variants = len(re.findall(r"label:", paper))
    assert int(counted["train_run"]) == SEEDS * variants >= 1800
    assert took < SECONDS
