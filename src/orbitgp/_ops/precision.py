"""Evaluating any GPflow kernel in a precision below that of its parameters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

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
    return with_values(kernel, [_cast(value, dtype) for value in values_of(kernel)])


def values_of(kernel: Kernel) -> list[Parameter | tf.Tensor]:
    """Parameters and tensors of a kernel and of those in it, in the order that :func:`with_values` takes."""
    found: list[Parameter | tf.Tensor] = []
    for value in vars(kernel).values():
        if isinstance(value, (Parameter, tf.Tensor)):
            found.append(value)
        else:
            found += [part for inner in _kernels_in(value) for part in values_of(inner)]
    return found


def with_values(kernel: Kernel, values: Sequence[tf.Tensor]) -> Kernel:
    """
    :param values: one for each of :func:`values_of`.
    :return: a view of the kernel with these in their places.
    """
    left = list(values)

    def view_of(kernel: Kernel) -> Kernel:
        view = copy.copy(kernel)
        for name, value in vars(kernel).items():
            if isinstance(value, (Parameter, tf.Tensor)):
                object.__setattr__(view, name, left.pop(0))
            elif isinstance(value, Kernel):
                object.__setattr__(view, name, view_of(value))
            elif _kernels_in(value):
                object.__setattr__(view, name, [view_of(item) for item in value])
        return view

    return view_of(kernel)


def _kernels_in(value: Any) -> list[Kernel]:
    """The kernels in an attribute of a kernel: the attribute itself, or items of its list."""
    if isinstance(value, Kernel):
        return [value]
    return [item for item in value if isinstance(item, Kernel)] if isinstance(value, (list, tuple)) else []


def _cast(value: Parameter | tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(value, dtype) if value.dtype.is_floating else value
