"""Export of a model to TensorFlow's SavedModel, which needs neither GPflow nor this package."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf
from gpflow.likelihoods import Likelihood

from orbitgp.posteriors import InvariantPosterior

OUTSIDE = "images must lie in [0, 1]; bytes, from 0 to 255, go to the signature 'bytes'"


def export(
    posterior: InvariantPosterior,
    likelihood: Likelihood,
    answer: Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]],
    shape: tuple[int, int, int],
    folder: Path,
) -> None:
    """
    Writes a SavedModel. Its signature ``serving_default`` takes ``images`` [N, H, W, C], float32 in [0, 1]; ``bytes``
    takes uint8.

    :param likelihood: exported too, since ``answer`` may use it.
    :param answer: makes what is returned, by name, from the mean and the variance of f, each [N, P].
    :param shape: (H, W, C) of the images.
    :param folder: a new folder to write to; it must not exist.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists already: a SavedModel is written to a new folder")

    @tf.function(input_signature=[tf.TensorSpec([None, *shape], tf.float32, name="images")], autograph=False)
    def predict(images: tf.Tensor) -> dict[str, tf.Tensor]:
        inside = tf.reduce_all((images >= 0) & (images <= 1))  # false for NaN too
        with tf.control_dependencies([tf.debugging.Assert(inside, [OUTSIDE])]):
            rows = tf.reshape(images, [-1, shape[0] * shape[1] * shape[2]])
        return answer(*posterior.predict_f(rows))

    @tf.function(input_signature=[tf.TensorSpec([None, *shape], tf.uint8, name="images")], autograph=False)
    def predict_bytes(images: tf.Tensor) -> dict[str, tf.Tensor]:
        return predict(tf.cast(images, tf.float32) / 255)

    module = tf.Module()
    module.predict, module.parts = predict, [posterior, likelihood]  # these have the variables
    module.predict_bytes, signatures = predict_bytes, {"serving_default": predict, "bytes": predict_bytes}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as place:  # whole or not at all
        tf.saved_model.save(module, f"{place}/model", signatures=signatures)
        os.rename(f"{place}/model", folder)
