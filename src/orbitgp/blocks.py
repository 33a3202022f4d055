"""Working through a batch some rows at a time, so that all draws of the batch never stand in memory together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from gpflow.base import TensorType

from orbitgp import checks

BlockFunction = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, ...]]


def map_blocks(function: BlockFunction, X: TensorType, rows: int, dtypes: Sequence[tf.DType]) -> tuple[tf.Tensor, ...]:
    """
    :param function: (number of the block, [rows, D]) → tensors [rows, …], each row on its own.
    :param X: [N, D]; the last block is filled up with copies of the last row, and what comes of these is dropped.
    :param dtypes: of the tensors that ``function`` returns.
    :return: tensors [N, …]
    """
    X = tf.convert_to_tensor(X)
    checks.integer("rows", rows, least=1)
    results = tf.map_fn(
        lambda block: function(*block),
        (tf.range(_count(X, rows)), _cut(X, rows)),
        fn_output_signature=tuple(dtypes),
        parallel_iterations=1,
    )
    return tuple(_join(result, tf.shape(X)[0]) for result in results)


def map_blocks_lean(
    function: BlockFunction, X: TensorType, rows: int, dtypes: Sequence[tf.DType]
) -> tuple[tf.Tensor, ...]:
    """
    :func:`map_blocks` that keeps nothing for the gradient: the backward pass evaluates each block again. Gradients
    reach the variables that ``function`` reads, and stop at X and at any tensor that ``function`` takes from outside:
    it must compute what it needs from variables itself.
    """
    checks.integer("rows", rows, least=1)

    @tf.custom_gradient
    def mapped(X: tf.Tensor) -> Any:
        def gradient(*upstream: tf.Tensor, variables: Sequence[tf.Variable] = ()) -> Any:
            cut, arriving = _cut(X, rows), [_cut_gradient(tensor, rows) for tensor in upstream]

            def add_block(number: tf.Tensor, *sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(variables)
                    results = function(number, cut[number])
                found = tape.gradient(
                    results,
                    variables,
                    output_gradients=[tensor[number] for tensor in arriving],
                    unconnected_gradients=tf.UnconnectedGradients.ZERO,
                )
                return (
                    number + 1,
                    *(total + tf.convert_to_tensor(new) for total, new in zip(sums, found, strict=True)),
                )

            zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
            count = _count(X, rows)
            _, *sums = tf.while_loop(
                lambda number, *_: number < count, add_block, (tf.constant(0), *zeros), parallel_iterations=1
            )
            return None, sums

        return map_blocks(function, X, rows, dtypes), gradient

    results: tuple[tf.Tensor, ...] = mapped(tf.stop_gradient(tf.convert_to_tensor(X)))
    return results


def _count(X: tf.Tensor, rows: int) -> tf.Tensor:
    return -(-tf.shape(X)[0] // rows)


def _cut(X: tf.Tensor, rows: int) -> tf.Tensor:
    """[N, …] → [blocks, rows, …], filled up with copies of the last row: a function that can take it, can take them."""
    missing = _count(X, rows) * rows - tf.shape(X)[0]
    filled = tf.concat([X, tf.repeat(X[-1:], missing, axis=0)], axis=0)
    return tf.reshape(filled, tf.concat([[-1, rows], tf.shape(X)[1:]], axis=0))


def _cut_gradient(upstream: tf.Tensor, rows: int) -> tf.Tensor:
    """[N, …] → [blocks, rows, …], filled up with zeros: nothing flows back from the copies."""
    missing = _count(upstream, rows) * rows - tf.shape(upstream)[0]
    padding = [[0, missing], *[[0, 0]] * (len(upstream.shape) - 1)]
    return tf.reshape(tf.pad(upstream, padding), tf.concat([[-1, rows], tf.shape(upstream)[1:]], axis=0))


def _join(blocks: tf.Tensor, N: tf.Tensor) -> tf.Tensor:
    """[blocks, rows, …] → [N, …]"""
    return tf.reshape(blocks, tf.concat([[-1], tf.shape(blocks)[2:]], axis=0))[:N]
