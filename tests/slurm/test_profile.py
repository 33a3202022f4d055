"""What the shipped profiles ask for, as far as a plan shows it: no cluster is needed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("profile", ["profiles/kubernetes", "profiles/local-gpu", "profiles/slurm"])
def test_trainings_ask_for_one_gpu_each_where_snakemake_itself_sees_none(bare, profile):
    said = bare.dry_run("--workflow-profile", profile)
    asked = re.findall(r"^ *(?:local)?rule (\w+):$.*?\bgpu=(\d+)", said, flags=re.M | re.S)
    assert len(asked) == int(re.findall(r"^total +(\d+)$", said, flags=re.M)[-1])
    assert {rule for rule, gpus in asked if gpus != "0"} == {"train_run", "insensitivity"}
    assert {gpus for _, gpus in asked} == {"0", "1"}


def test_retries_are_asked_for_in_profiles_only():
    for path in [ROOT / "Snakefile", *ROOT.glob("workflow/rules/*.smk")]:
        assert not re.search(r"^ *retries:", path.read_text(), flags=re.M), path
    assert re.search(r"^retries: [1-9]", (ROOT / "profiles/slurm/config.yaml").read_text(), flags=re.M)
