"""Working through a batch some rows at a time, so that all draws of the batch never stand in memory together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from gpflow.base import TensorType

from orbitgp import checks

BlockFunction = Callable[..., tuple[tf.Tensor, ...]]


def map_blocks(
    function: BlockFunction, X: TensorType | tuple[TensorType, ...], rows: int, dtypes: Sequence[tf.DType]
) -> tuple[tf.Tensor, ...]:
    """
    :param function: (number of the block, [rows, …], …) → tensors [rows, …], each row on its own.
    :param X: [N, …], or several of these; the last block is filled up with copies of the last row, and what comes of
        the copies is dropped.
    :param dtypes: of the tensors that ``function`` returns.
    :return: tensors [N, …]
    """
    inputs = [tf.convert_to_tensor(tensor) for tensor in (X if isinstance(X, tuple) else (X,))]
    checks.integer("rows", rows, least=1)
    results = tf.map_fn(
        # there is nothing to convert, and AutoGraph would read every function below it anew in each process
        tf.autograph.experimental.do_not_convert(lambda block: function(*block)),
        (tf.range(_count(inputs[0], rows)), *(_cut(tensor, rows) for tensor in inputs)),
        fn_output_signature=tuple(dtypes),
        parallel_iterations=1,
    )
    return tuple(_join(result, inputs[0], rows) for result in results)


def checkpointed(function: Callable[..., tf.Tensor], inputs: tuple[tf.Tensor, ...], rows: int) -> tf.Tensor:
    """
    ``function(*inputs)`` in blocks, keeping nothing but the inputs: the backward pass evaluates each block again.

    :param function: tensors [rows, …] → [rows, …], of the first one's type, each row on its own.
    :param inputs: tensors [N, …], all of which gradients reach; the work for one that nobody asks for falls away
        where TensorFlow compiles a graph.
    """

    @tf.custom_gradient
    def mapped(*inputs: tf.Tensor) -> Any:
        def gradient_of(wanted: int, upstream: tf.Tensor) -> tf.Tensor:
            def backward(number: tf.Tensor, *blocks: tf.Tensor) -> tuple[tf.Tensor]:
                *values, arriving = blocks
                with tf.GradientTape() as tape:
                    tape.watch(values[wanted])
                    result = function(*values)
                return (tape.gradient(result, values[wanted], output_gradients=arriving),)

            return map_blocks(backward, (*inputs, upstream), rows, (inputs[wanted].dtype,))[0]

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return tuple(gradient_of(i, upstream) for i in range(len(inputs)))

        return map_blocks(lambda number, *blocks: (function(*blocks),), inputs, rows, (inputs[0].dtype,))[0], gradient

    return mapped(*inputs)


def _count(X: tf.Tensor, rows: int) -> tf.Tensor:
    return -(-tf.shape(X)[0] // rows)


def _cut(X: tf.Tensor, rows: int) -> tf.Tensor:
    """[N, …] → [blocks, rows, …], filled up with copies of the last row: a function that can take it, can take them."""
    filled = X
    if X.shape[0] is None or X.shape[0] % rows:  # else no copy is made
        missing = _count(X, rows) * rows - tf.shape(X)[0]
        filled = tf.concat([X, tf.repeat(X[-1:], missing, axis=0)], axis=0)
    return tf.reshape(filled, tf.concat([[-1, rows], tf.shape(X)[1:]], axis=0))


def _join(blocks: tf.Tensor, X: tf.Tensor, rows: int) -> tf.Tensor:
    """[blocks, rows, …] → [N, …], as many rows as X has."""
    joined = tf.reshape(blocks, tf.concat([[-1], tf.shape(blocks)[2:]], axis=0))
    return joined if X.shape[0] is not None and X.shape[0] % rows == 0 else joined[: tf.shape(X)[0]]
