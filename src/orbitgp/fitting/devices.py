"""The device that TensorFlow runs on."""

from __future__ import annotations

import os

import tensorflow as tf

CPU = "CPU"


def prepare(threads: int) -> str:
    """
    Sets TensorFlow up before its first operation: memory of a GPU is taken as needed, so that several trainings can
    share it, and a CPU is used with ``threads`` threads.

    :return: the device, in words.
    """
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    return describe()


def describe() -> str:
    """The first GPU's name, or the CPU."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return CPU
    return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", gpus[0].name))


def announce(device: str, threads: int, asked: int) -> str:
    """
    :param device: as :func:`prepare` names it.
    :param asked: number of GPUs requested.
    :return: a line that names the device, with a warning if requested GPUs were not found.
    """
    if device != CPU:
        return f"training on {device}"
    said = f"training on the CPU, {threads} thread{'s' * (threads != 1)}"
    if not asked:
        return f"no GPU was found: {said}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    shown = "not set" if visible is None else repr(visible)
    return (
        f"{asked} GPU{'s were' if asked != 1 else ' was'} asked for, but TensorFlow sees none (CUDA_VISIBLE_DEVICES is "
        f"{shown}): {said}, which takes far longer"
    )


def peak_gpu_memory_mb() -> float | None:
    """Peak GPU memory since the process began, in MiB; None without a GPU."""
    if not tf.config.list_physical_devices("GPU"):
        return None
    return round(tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**20, 1)
