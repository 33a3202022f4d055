"""Evaluating any GPflow kernel in a precision below that of its parameters."""

from __future__ import annotations

import copy

import tensorflow as tf
from gpflow import Parameter
from gpflow.kernels import Kernel

PRECISIONS = ("float64", "mixed")


def in_precision(kernel: Kernel, dtype: tf.DType) -> Kernel:
    """
    A view of the kernel whose parameters are cast to ``dtype``; gradients flow through the cast to the originals.
    Made anew for each evaluation, since a cast is a value and does not follow its parameter.

    :return: a kernel that takes and returns tensors of ``dtype``.
    """
    view = copy.copy(kernel)
    for name, value in vars(kernel).items():
        if isinstance(value, Parameter):
            object.__setattr__(view, name, tf.cast(value, dtype))
        elif isinstance(value, Kernel):
            object.__setattr__(view, name, in_precision(value, dtype))
        elif isinstance(value, (list, tuple)) and any(isinstance(item, Kernel) for item in value):
            object.__setattr__(view, name, [in_precision(item, dtype) for item in value])
    return view
