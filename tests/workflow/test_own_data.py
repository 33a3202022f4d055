"""docs/own-data.md: its example can be planned, and its changes apply and do what it says."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

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
    drawn = {"samples", "figure fig1", "figure training"}
    assert with_images.work(*OWN) == made | drawn | {"dataset mine", "table shapes", "table runs", "table monitor"}


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


def test_a_folder_of_colour_images_and_an_orbit_of_ones_own(own: Workspace):
    results = own.folder / "results" / "own"
    with open(results / "tables" / "shapes.csv", encoding="utf-8") as file:
        rows = {row["variant"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"rotation", "affine"}
    settings = (results / "runs/shapes/rotation/seed0/config.yaml").read_text(encoding="utf-8")
    assert "my_orbits:little" in settings
    learned = json.loads((results / "runs/shapes/rotation/seed0/final.json").read_text())["parameters"]
    [angle] = [value for name, value in learned.items() if name.endswith("alpha")]
    assert 0 < angle < 180 and angle != 10
    with np.load(results / "runs/shapes/rotation/seed0/params.npz") as arrays:
        assert arrays["inducing_variable.Z"].shape == (8, 8 * 6 * 3)


def test_it_has_a_page_and_a_report_and_nothing_of_the_papers(own: Workspace):
    results = own.folder / "results" / "own"
    assert "shapes" in (results / "tables" / "runs.md").read_text(encoding="utf-8")
    assert {"index.html", "tables", "runs"} <= {path.name for path in results.iterdir()}
    assert (results / "figures" / "training.svg").is_file()
    assert (own.folder / "report.html").is_file() and not (results / "claims.md").exists()


def test_edits_of_ones_own_orbit_and_images_train_what_uses_them_again(tmp_path: Path, own: Workspace):
    again = Workspace(shutil.copytree(own.folder, tmp_path / "own", symlinks=True))
    photo = again.folder / "photos" / "flat" / "03.png"
    photo.touch()
    assert again.work(*OWN) == set()
    again.comment("src/my_orbits.py")
    assert {line for line in again.work(*OWN) if line.startswith("train_run")} == {"train_run shapes/rotation/0"}
    shutil.copy(again.folder / "photos" / "upright" / "01.png", photo)
    made = trainings("shapes", ["rotation", "affine"], range(1)) | {"samples", "figure fig1", "figure training"}
    assert again.work(*OWN) == made | {"dataset mine", "table shapes", "table runs", "table monitor"}
    (again.folder / "src" / "my_orbits.py").unlink()
    said = again.dry_run(*OWN, check=False)
    assert "config/own.yaml: experiments.shapes.variants.rotation.orbit.path: Python finds no module my_orbits" in said
