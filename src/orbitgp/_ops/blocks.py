"""Functions applied to a batch some rows at a time, so that its draws are never in memory all at once."""

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
    :param function: (number of the block, [rows, …], …) → tensors [rows, …], each row on its own. The last block has
        the rows that are left.
    :param X: [N, …], N ≥ 1, or several of these.
    :param dtypes: of the tensors that ``function`` returns.
    :return: tensors [N, …]
    """
    inputs = [tf.convert_to_tensor(tensor) for tensor in (X if isinstance(X, tuple) else (X,))]
    checks.integer("rows", rows, least=1)
    if inputs[0].shape[0] is not None and inputs[0].shape[0] <= rows:
        return function(tf.constant(0), *inputs)
    count = -(-tf.shape(inputs[0])[0] // rows)

    def one(number: tf.Tensor, *found: tf.TensorArray) -> tuple[Any, ...]:
        results = function(number, *(tensor[number * rows : (number + 1) * rows] for tensor in inputs))
        return number + 1, *(array.write(number, part) for array, part in zip(found, results, strict=True))

    empty = (tf.TensorArray(dtype, count, infer_shape=False, element_shape=None) for dtype in dtypes)
    _, *found = tf.while_loop(
        lambda number, *_: number < count,
        # there is nothing to convert, and AutoGraph would read every function below it anew in each process
        tf.autograph.experimental.do_not_convert(one),
        (tf.constant(0), *empty),
        parallel_iterations=1,
    )
    return tuple(array.concat() for array in found)


def checkpointed(function: Callable[..., tf.Tensor], inputs: tuple[tf.Tensor, ...], rows: int) -> tf.Tensor:
    """
    ``function(*inputs)`` in blocks, keeping nothing but the inputs: the backward pass evaluates each block again. All
    blocks have one size, so that XLA compiles once: the last is filled up with copies of the last row, whose results
    are dropped.

    :param function: tensors [rows, …] → [rows, …], of the first one's type, each row on its own.
    :param inputs: tensors [N, …]. All have gradients; in a graph, those that are not used cost nothing.
    """

    def in_whole_blocks(function: BlockFunction, inputs: tuple[tf.Tensor, ...], dtype: tf.DType) -> tf.Tensor:
        N = tf.shape(inputs[0])[0]
        filled = tuple(tf.concat([X, tf.repeat(X[-1:], -N % rows, axis=0)], axis=0) for X in inputs)
        return map_blocks(function, filled, rows, (dtype,))[0][:N]

    @tf.custom_gradient
    def mapped(*inputs: tf.Tensor) -> Any:
        def gradient_of(wanted: int, upstream: tf.Tensor) -> tf.Tensor:
            def backward(number: tf.Tensor, *blocks: tf.Tensor) -> tuple[tf.Tensor]:
                *values, arriving = blocks
                with tf.GradientTape() as tape:
                    tape.watch(values[wanted])
                    result = function(*values)
                return (tape.gradient(result, values[wanted], output_gradients=arriving),)

            return in_whole_blocks(backward, (*inputs, upstream), inputs[wanted].dtype)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return tuple(gradient_of(i, upstream) for i in range(len(inputs)))

        return in_whole_blocks(lambda number, *blocks: (function(*blocks),), inputs, inputs[0].dtype), gradient

    return mapped(*inputs)


def recomputed(
    function: BlockFunction, X: tf.Tensor, shared: Sequence[tf.Tensor], rows: int, dtypes: Sequence[tf.DType]
) -> tuple[tf.Tensor, ...]:
    """
    ``function(X, *shared)``, some rows of X at a time, keeping nothing but the arguments: the backward pass
    evaluates each block again. All blocks have one size, as XLA wants it; the last is filled up with zeros.

    :param function: (X [rows, …], shared tensors) → tensors [rows, …], each row on its own.
    :param X: [N, …]
    :param shared: what all rows depend on. Gradients reach X and these, and nothing else.
    :param rows: largest number of rows at a time.
    :param dtypes: of the tensors that ``function`` returns.
    :return: tensors [N, …]
    """
    if X.shape[0] is not None and X.shape[0] <= rows:
        return function(X, *shared)
    # plain numbers where they are known: XLA wants to know how long a loop's results are
    N = tf.shape(X)[0] if X.shape[0] is None else X.shape[0]
    count = -(-N // rows)
    size = -(-N // count)

    def blocks(tensor: tf.Tensor) -> tf.Tensor:
        """[N, …] → [count, size, …]"""
        ends = [[0, count * size - N], *([0, 0] for _ in tensor.shape[1:])]
        return tf.reshape(tf.pad(tensor, ends), tf.concat([[count, size], tf.shape(tensor)[1:]], axis=0))

    def joined(stacked: tf.Tensor) -> tf.Tensor:
        """[count, size, …] → [N, …]"""
        return tf.reshape(stacked, tf.concat([[count * size], tf.shape(stacked)[2:]], axis=0))[:N]

    def looped(body: Callable[[tf.Tensor], Any], dtypes: Sequence[tf.DType], sums: Sequence[tf.Tensor]) -> Any:
        """``body``: number of a block → tensors to stack, and tensors to add up."""

        def one(number: tf.Tensor, arrays: Any, totals: Any) -> tuple[Any, ...]:
            parts, terms = body(number)
            arrays = [array.write(number, part) for array, part in zip(arrays, parts, strict=True)]
            return number + 1, arrays, [total + term for total, term in zip(totals, terms, strict=True)]

        _, arrays, totals = tf.while_loop(
            lambda number, *_: number < count,
            tf.autograph.experimental.do_not_convert(one),
            (tf.constant(0), [tf.TensorArray(dtype, count) for dtype in dtypes], list(sums)),
            parallel_iterations=1,
        )
        return [joined(array.stack()) for array in arrays], totals

    @tf.custom_gradient
    def mapped(X: tf.Tensor, *shared: tf.Tensor) -> Any:
        by_block = blocks(X)

        def forward(number: tf.Tensor) -> tuple[Any, Any]:
            return function(by_block[number], *shared), ()

        def gradient(*upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            arriving = [blocks(tensor) for tensor in upstream]

            def backward(number: tf.Tensor) -> tuple[Any, Any]:
                inputs = [by_block[number], *shared]
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(inputs)
                    results = function(*inputs)
                found = tape.gradient(
                    results, inputs, [part[number] for part in arriving], tf.UnconnectedGradients.ZERO
                )
                return found[:1], found[1:]

            (of_X,), of_shared = looped(backward, [X.dtype], [tf.zeros_like(tensor) for tensor in shared])
            return of_X, *of_shared

        found, _ = looped(forward, dtypes, ())
        return tuple(found), gradient

    return mapped(X, *shared)
