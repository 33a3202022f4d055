"""The GPU of this machine: whether there is one, how many trainings share it, and CUDA's Multi-Process Service."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: trainings at a time: eight keep an H200 busy, and two more stand in for those that start or end
MOST = 10

#: MB that a training may take of the GPU's memory and of the machine's (`provenance.json` has what each took)
GPU_MEMORY, MEMORY = 7000, 3500


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver describes it."""

    name: str
    free_mb: int


def may_have_gpu() -> bool:
    """Whether NVIDIA's driver is installed, and CUDA_VISIBLE_DEVICES does not hide all GPUs."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1") and shutil.which("nvidia-smi") is not None


def find_gpu() -> Gpu | None:
    """The first visible GPU, if there is one."""
    if not may_have_gpu():
        return None
    query = ["nvidia-smi", "--query-gpu=name,memory.free", "--format=csv,noheader,nounits"]
    found = subprocess.run(query, capture_output=True, text=True, check=False)
    name, _, free = (found.stdout.splitlines() or [""])[0].rpartition(",")
    return Gpu(name.strip(), int(free)) if found.returncode == 0 and free.strip().isdigit() else None


def trainings_at_a_time(gpu: Gpu, shared: bool) -> int:
    """
    Number of trainings to run side by side.

    :param shared: whether the Multi-Process Service runs; without it trainings take turns, and several gain nothing.
    """
    if not shared:
        return 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(1, min(MOST, len(os.sched_getaffinity(0)), gpu.free_mb // GPU_MEMORY, memory // MEMORY))


@contextmanager
def multi_process_service() -> Iterator[bool]:
    """
    Starts and stops CUDA's Multi-Process Service, which lets several processes use a GPU side by side.

    :return: whether it runs; it needs the driver's program and the permission to use it.
    """
    program = "nvidia-cuda-mps-control"
    if shutil.which(program) is None:
        yield False
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        places = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
        os.environ.update(places)
        nowhere = subprocess.DEVNULL  # not captured: the daemon would hold the other end of the pipe
        started = subprocess.run([program, "-d"], stdin=nowhere, stdout=nowhere, stderr=nowhere, check=False)
        try:
            yield started.returncode == 0
        finally:
            if started.returncode == 0:
                subprocess.run([program], input=b"quit", stdout=nowhere, stderr=nowhere, check=False)
            for place in places:
                del os.environ[place]
