"""Many trainings are planned in less than three hundredths of a second each."""

import re
import resource

SEEDS = 40
SECONDS = 0.03  # of a processor, for each training: a clock on the wall would measure what else the machine does


def used() -> float:
    """Seconds of processors that child processes of this one have had."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_forty_seeds_of_everything_are_planned_in_time(bare):
    paper = (bare.folder / "config/paper.yaml").read_text()
    many = paper.replace("tier: paper", "tier: many").replace("seeds: [0, 1, 2]", f"seeds: {[*range(SEEDS)]}")
    (bare.folder / "config/many.yaml").write_text(many)
    before = used()
    said = bare.snakemake("--dry-run", "--quiet", "rules", "--config", "tier=many", "runs=build").stdout
    took = used() - before
    counted = dict(re.findall(r"^(\w+) +(\d+)$", said, flags=re.M))
    variants = len(re.findall(r"label:", paper))
    trainings = int(counted["train_run"])
    assert trainings == SEEDS * variants >= 700
    assert took < SECONDS * trainings
