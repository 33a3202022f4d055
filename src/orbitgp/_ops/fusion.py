"""Fuses long chains of small operations on many pixels into one loop over the pixels, some images at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import tensorflow as tf

from orbitgp._ops.blocks import checkpointed

WORTHWHILE = 2**18  # pixels: with fewer, the compiler takes longer than it saves
TOGETHER = 2**20  # pixels at a time: few enough that intermediate results are small beside the result

_compiled = partial(tf.function, jit_compile=True, autograph=False)


class Fused:
    """
    A function compiled by XLA where that pays, forward and backward each on its own. Nothing but its arguments is kept
    for the gradient, which evaluates it again: intermediate results would set the peak of a training step's memory.
    """

    def __init__(self, function: Callable[..., tf.Tensor]) -> None:
        """
        :param function: tensors [N, …] → [N, …], of the first one's type, each row on its own, with a gradient for each
            of them. It is compiled once for each set of shapes.
        """
        self._function = function
        self._plain = _keeping_arguments(function, self._gradient)
        self._fused = _keeping_arguments(_compiled(function), _compiled(self._gradient))

    def __call__(self, inputs: tuple[tf.Tensor, ...], pixels: Sequence[int | None]) -> tf.Tensor:
        """
        :param inputs: what the function takes.
        :param pixels: [N, …], the shape of what it works on, as far as it is known.
        """
        known = [side for side in pixels if side is not None]
        if len(known) == len(pixels) and math.prod(known) <= WORTHWHILE:
            return self._function(*inputs)
        if tf.config.list_logical_devices("GPU"):  # there the model compiles this and more, all rows at once
            return self._plain(*inputs)
        rows = max(1, TOGETHER // math.prod(side or 1 for side in pixels[1:]))
        if pixels[0] is None or pixels[0] <= rows:  # of unknown size, a few rows would be filled up to a whole block
            return self._fused(*inputs)
        blocks = -(-pixels[0] // rows)
        return checkpointed(self._fused, inputs, -(-pixels[0] // blocks))  # all of a size: the last one is filled up

    def _gradient(self, wanted: int, inputs: tuple[tf.Tensor, ...], upstream: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(inputs[wanted])
            result = self._function(*inputs)
        return tape.gradient(result, inputs[wanted], output_gradients=upstream)


def _keeping_arguments(
    forward: Callable[..., tf.Tensor], backward: Callable[..., tf.Tensor]
) -> Callable[..., tf.Tensor]:
    """
    :param backward: (which argument, all of them, upstream) → the derivative by that argument.
    """

    @tf.custom_gradient
    def run(*inputs: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple[tf.Tensor, ...]]]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            # one for each argument: in a graph, those that are not used cost nothing
            return tuple(backward(i, inputs, upstream) for i in range(len(inputs)))

        return forward(*inputs), gradient

    return run
