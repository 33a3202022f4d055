"""Evaluating any GPflow kernel in a precision below that of its parameters."""

from __future__ import annotations

import copy

import gpflow
import tensorflow as tf
from gpflow import Parameter
from gpflow.kernels import ArcCosine, Convolutional, Kernel

from orbitgp import checks

PRECISIONS = ("float64", "mixed")
FLOAT64_ONLY = (ArcCosine, Convolutional)  # one guards a root by a number too small for float32, one has constants


def in_precision(kernel: Kernel, dtype: tf.DType) -> Kernel:
    """
    A view of the kernel whose parameters are cast to ``dtype``; gradients flow through the cast to the originals.
    Made anew for each evaluation, since a cast is a value and does not follow its parameter.

    :return: a kernel that takes and returns tensors of ``dtype``; in GPflow's own precision, the kernel itself.
    """
    checks.instance("kernel", kernel, Kernel)
    if not tf.as_dtype(dtype).is_floating:
        raise ValueError(f"dtype must be a floating type, got {tf.as_dtype(dtype).name}")
    if dtype == gpflow.default_float():
        return kernel
    if isinstance(kernel, FLOAT64_ONLY):
        raise TypeError(
            f"{type(kernel).__name__} cannot be evaluated in {tf.as_dtype(dtype).name}; use precision 'float64'"
        )
    view = copy.copy(kernel)
    for name, value in vars(kernel).items():
        if isinstance(value, Parameter):
            object.__setattr__(view, name, tf.cast(value, dtype))
        elif isinstance(value, Kernel):
            object.__setattr__(view, name, in_precision(value, dtype))
        elif isinstance(value, (list, tuple)) and any(isinstance(item, Kernel) for item in value):
            object.__setattr__(view, name, [in_precision(item, dtype) for item in value])
    return view
