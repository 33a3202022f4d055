"""What is asked of a driver, with programs in its place that say what it would."""

import os

import pytest

from orbitgp_paper import machine
from orbitgp_paper.machine import Gpu, find_gpu, multi_process_service, trainings_at_a_time


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes programs, and nothing else is on the path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def make(name, text):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
        return tmp_path

    return make


def test_the_first_gpu_is_found_unless_it_is_hidden_or_the_driver_does_not_answer(programs, monkeypatch):
    assert find_gpu() is None
    programs("nvidia-smi", 'echo "NVIDIA H200, 143000"; echo "NVIDIA T4, 15000"')
    assert find_gpu() == Gpu("NVIDIA H200", 143_000)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert find_gpu() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    for text in ("echo 'No devices were found'", "echo 'NVIDIA H200, [N/A]'", "exit 9"):
        programs("nvidia-smi", text)
        assert find_gpu() is None


def test_as_many_share_it_as_memory_and_cores_allow(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**25}[name])  # 128 GiB
    large, small = Gpu("large", 143_000), Gpu("small", 15_000)
    assert trainings_at_a_time(large, shared=True) == machine.MOST
    assert trainings_at_a_time(large, shared=False) == 1
    assert trainings_at_a_time(small, shared=True) == 15_000 // machine.GPU_MEMORY
    assert trainings_at_a_time(Gpu("full", 100), shared=True) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert trainings_at_a_time(large, shared=True) == 2


def test_the_service_is_started_and_stopped_and_where_it_may_not_be_that_is_said(programs):
    with multi_process_service() as runs:
        assert not runs
    folder = programs("nvidia-cuda-mps-control", 'read line; echo "$1 $line $CUDA_MPS_PIPE_DIRECTORY" >> "$0.log"')
    with multi_process_service() as runs:
        assert runs
        place = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert (folder / "nvidia-cuda-mps-control.log").read_text() == f"-d  {place}\n quit {place}\n"
    programs("nvidia-cuda-mps-control", "exit 1")
    with multi_process_service() as runs:
        assert not runs
