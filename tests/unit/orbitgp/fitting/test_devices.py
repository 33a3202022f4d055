from types import SimpleNamespace

import pytest
import tensorflow as tf

from orbitgp.fitting import devices

THREADS = [("set_intra_op_parallelism_threads", 3), ("set_inter_op_parallelism_threads", 1)]
GPUS = [(f"/physical_device:GPU:{i}", True) for i in range(2)]


@pytest.mark.parametrize(
    ("gpus", "details", "device", "peak"),
    [(0, {}, "CPU", None), (1, {"device_name": "Some GPU"}, "Some GPU", 1.5), (2, {}, "/physical_device:GPU:0", 1.5)],
)
def test_threads_are_set_and_the_memory_of_every_gpu_is_taken_as_needed(monkeypatch, gpus, details, device, peak):
    seen, there = [], [SimpleNamespace(name=name) for name, _ in GPUS[:gpus]]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: there if kind == "GPU" else [])
    for name, _ in THREADS:
        monkeypatch.setattr(tf.config.threading, name, lambda count, name=name: seen.append((name, count)))
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, on: seen.append((gpu.name, on)))
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: details)
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", lambda gpu: {"peak": 3 * 2**19})
    assert devices.prepare(3) == device
    assert seen == THREADS + GPUS[:gpus]
    assert devices.peak_gpu_memory_mb() == peak
