"""Long chains of small operations on many pixels, as one loop over the pixels, some images at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import tensorflow as tf

from orbitgp.blocks import checkpointed

WORTHWHILE = 2**18  # pixels: with fewer, the compiler takes longer than it saves
TOGETHER = 2**20  # pixels: few enough that what stands between the operations is small beside the result

_compiled = partial(tf.function, jit_compile=True, autograph=False)


class Fused:
    """
    A function compiled by XLA where that pays, forward and backward each on its own. Nothing but its arguments is kept
    for the gradient, which evaluates it again: what lies between would set the peak of a training step's memory.
    """

    def __init__(self, function: Callable[..., tf.Tensor]) -> None:
        """
        :param function: tensors [N, …] → [N, …], of the first one's type, each row on its own, with a gradient for each
            of them. It is compiled once for each set of shapes.
        """
        self._function, self._forward, self._backward = function, _compiled(function), _compiled(self._gradient)
        self._run = tf.custom_gradient(self._forward_with_gradient)

    def __call__(self, inputs: tuple[tf.Tensor, ...], pixels: Sequence[int | None]) -> tf.Tensor:
        """
        :param inputs: what the function takes.
        :param pixels: [N, …], the shape of what it works on, as far as it is known.
        """
        known = [side for side in pixels if side is not None]
        few = len(known) == len(pixels) and math.prod(known) <= WORTHWHILE
        if few or tf.config.list_logical_devices("GPU"):  # there the model compiles this and more, all rows at once
            return self._function(*inputs)
        rows = max(1, TOGETHER // math.prod(side or 1 for side in pixels[1:]))
        if pixels[0] is None or pixels[0] <= rows:  # of unknown size, a few rows would be filled up to a whole block
            return self._run(*inputs)
        return checkpointed(self._run, inputs, rows)

    def _gradient(self, wanted: int, inputs: tuple[tf.Tensor, ...], upstream: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(inputs[wanted])
            result = self._function(*inputs)
        return tape.gradient(result, inputs[wanted], output_gradients=upstream)

    def _forward_with_gradient(self, *inputs: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple[tf.Tensor, ...]]]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            # one for each argument: where TensorFlow has a graph, those that nobody asks for fall away
            return tuple(self._backward(i, inputs, upstream) for i in range(len(inputs)))

        return self._forward(*inputs), gradient
