"""A disk that is full, or that cannot be written to: a clear line, and what was there before stays."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.trainings import Training
from workspaces import Workspace

from orbitgp import files


@pytest.fixture
def mounted() -> Iterator[Callable[..., Path]]:
    """Mounts a small file system of memory."""
    made: list[Path] = []

    def mount(place: Path, options: str) -> Path:
        place.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"a small disk needs root and the right to mount: {done.stderr.strip()}")
        made.append(place)
        return place

    yield mount
    for place in made:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Leaves not a byte."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass
    assert os.statvfs(disk).f_bavail == 0
    return filler


def everything_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


FULL_AT_THE_END = """
from pathlib import Path
from orbitgp_paper.runs import train as run
write = run._Training.write
def full(self, folder):
    Path("{disk}/go").touch()
    while not Path("{disk}/filler").exists() or Path("{disk}/go").exists():
        pass
    write(self, folder)
run._Training.write = full
"""


@pytest.mark.parametrize("when", ["while it trains", "when it writes its results"])
def test_full(
    make_training: Callable[[Path], Training],
    undisturbed: Training,
    small_spec: Callable[..., dict[str, Any]],
    mounted: Callable[..., Path],
    tmp_path: Path,
    when: str,
) -> None:
    disk = mounted(tmp_path / "disk", "size=2m")
    training = make_training(disk)
    spec, training.spec = training.spec, small_spec(jitter=1e-5)
    assert training.run() == 0, training.told()  # from other settings, and what is to come takes its place
    earlier = everything_in(training.folder)
    assert len(earlier) == 6
    training.spec = spec

    if when == "while it trains":
        child = training.start()
        assert training.wait_for(child, lambda: "step 100 of 400" in training.logged()), training.told()
        filler = fill(disk)
    else:
        child = training.start(FULL_AT_THE_END.format(disk=disk))
        assert training.wait_for(child, lambda: (disk / "go").exists()), training.told()
        filler = fill(disk)
        (disk / "go").unlink()
    assert child.wait() == 1, training.told()

    said = training.said.read_text()  # on the full disk too, and as whole as it could be
    assert "No space left on device" in said or "No space left on device" in training.logged()
    assert everything_in(training.folder) == earlier
    kept = sorted(training.checkpoints.glob("*/checkpoint-*.npz"))
    assert len(kept) == 2
    for path in kept:
        files.read_npz(path)
    rows = (kept[0].parent / "metrics.csv").read_bytes()
    assert rows.endswith(b"\n") and undisturbed.results()["metrics.csv"].startswith(rows)

    filler.unlink()
    assert training.run() == 0, training.told()
    assert "resumed at step " in training.logged()
    assert training.results() == undisturbed.results()


def test_results_that_cannot_be_written_to(bare: Workspace, mounted: Callable[..., Path]) -> None:
    pytest.importorskip("snakemake", reason="Snakemake needs Python 3.11 or newer")
    mounted(bare.folder / "results", "size=1m,ro")
    done = bare.snakemake("results/smoke/data/mnist.npz", "--cores", "1", check=False)
    assert done.returncode == 1
    assert "Read-only file system: 'results/smoke'" in done.stdout
    assert "Traceback" not in done.stdout
