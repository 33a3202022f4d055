from types import SimpleNamespace

import pytest
import tensorflow as tf

from orbitgp.fitting import devices


@pytest.fixture
def machine(monkeypatch):
    """Records what is set, on a machine with so many GPUs."""
    seen = []

    def make(gpus):
        there = [SimpleNamespace(name=f"/physical_device:GPU:{i}") for i in range(gpus)]
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: there if kind == "GPU" else [])
        for name in ("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"):
            monkeypatch.setattr(tf.config.threading, name, lambda count, name=name: seen.append((name, count)))
        monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, on: seen.append((gpu.name, on)))
        monkeypatch.setattr(
            tf.config.experimental, "get_device_details", lambda gpu: {"device_name": "Some GPU"} if gpus == 1 else {}
        )
        monkeypatch.setattr(tf.config.experimental, "get_memory_info", lambda gpu: {"peak": 3 * 2**19})
        return seen

    return make


THREADS = [("set_intra_op_parallelism_threads", 3), ("set_inter_op_parallelism_threads", 1)]


def test_without_a_gpu_the_threads_are_set(machine):
    seen = machine(0)
    assert devices.prepare(3) == "CPU"
    assert seen == THREADS
    assert devices.peak_gpu_memory_mb() is None


def test_the_memory_of_every_gpu_is_taken_as_needed(machine):
    seen = machine(2)
    assert devices.prepare(3) == "/physical_device:GPU:0"  # nameless
    assert seen == [*THREADS, ("/physical_device:GPU:0", True), ("/physical_device:GPU:1", True)]
    assert devices.peak_gpu_memory_mb() == 1.5


def test_a_gpu_is_called_by_its_name(machine):
    machine(1)
    assert devices.describe() == "Some GPU"


@pytest.mark.parametrize(
    ("device", "asked", "visible", "said"),
    [
        ("NVIDIA H200", 1, "0", "training on NVIDIA H200"),
        ("CPU", 0, "-1", "no GPU was found: training on the CPU, 2 threads"),
        ("CPU", 1, "0", "1 GPU was asked for, but TensorFlow sees none (CUDA_VISIBLE_DEVICES is '0'): training on the"),
        ("CPU", 2, None, "2 GPUs were asked for, but TensorFlow sees none (CUDA_VISIBLE_DEVICES is not set): training"),
    ],
)
def test_what_is_trained_on_is_said_and_whether_it_was_asked_for(monkeypatch, device, asked, visible, said):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.announce(device, 2, asked).startswith(said)
