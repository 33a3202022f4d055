"""docs/own-data.md: its example can be planned, and its changes apply and do what it says."""

import re
import subprocess

import numpy as np
import pytest
from workspaces import ROOT, Workspace

from orbitgp_paper.analysis.claims import read_claims

PAGE = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
CHANGES = re.findall(r"^### (.*?)\n.*?```diff\n(.*?)```", PAGE, flags=re.M | re.S)
OWN = ("--config", "tier=own")


@pytest.fixture
def with_images(bare: Workspace) -> Workspace:
    """A checkout with a file of images where config/own.yaml looks for it."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (200, 8, 8), dtype=np.uint8)
    np.savez(bare.folder / "my_images.npz", images=images, labels=np.arange(200) % 3)
    return bare


def trainings(experiment: str, variants: list[str], seeds: range) -> set[str]:
    return {f"train_run {experiment}/{variant}/{seed}" for variant in variants for seed in seeds}


def test_the_example_is_three_orbits_from_three_seeds_and_nothing_of_the_papers(with_images: Workspace):
    made = trainings("shapes", ["rbf", "rotation", "affine"], range(3))
    assert with_images.work(*OWN) == made | {"dataset mine", "table shapes", "table runs", "table monitor"}


def test_images_that_are_not_there_are_named(bare: Workspace):
    assert "datasets.mine.path = 'my_images.npz' is not there" in bare.dry_run(*OWN, check=False)


def test_changes_of_the_page_apply_and_add_what_it_says(with_images: Workspace):
    adds = {
        "A variant": trainings("shapes", ["fixed"], range(3)),
        "An experiment": trainings("few_points", ["affine"], range(1)) | {"table few_points"},
        "A figure": {"figure shapes"},
        "A claim": {"claims"},
    }
    assert [name for name, _ in CHANGES] == list(adds)
    before = with_images.work(*OWN)
    for name, change in CHANGES:
        subprocess.run(["git", "apply", "-"], cwd=with_images.folder, input=change, text=True, check=True)
        after = with_images.work(*OWN)
        assert after - before == adds[name], name
        assert before <= after
        before = after
    [claim] = read_claims(with_images.folder / "my_claims.yaml")
    assert claim["id"] == "shapes_affine_helps"
