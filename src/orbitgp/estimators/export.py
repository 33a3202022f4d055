"""A model for a server: TensorFlow's own format, which needs neither GPflow nor this package."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from orbitgp.posteriors import InvariantPosterior


def export(
    posterior: InvariantPosterior,
    answer: Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]],
    shape: tuple[int, int, int],
    folder: Path,
) -> None:
    """
    Writes a SavedModel whose signature ``serving_default`` takes ``images`` [N, H, W, C], float32 in [0, 1].

    :param answer: makes what is returned, by name, from the mean and the variance of f.
    :param shape: (H, W, C)
    :param folder: where it goes; it must not exist.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists already: a SavedModel is written to a new folder")

    @tf.function(input_signature=[tf.TensorSpec([None, *shape], tf.float32, name="images")], autograph=False)
    def predict(images: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.reshape(images, [-1, shape[0] * shape[1] * shape[2]])
        return answer(*posterior.predict_f(rows))

    module = tf.Module()
    module.predict = predict
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as place:  # whole or not at all
        tf.saved_model.save(module, f"{place}/model", signatures={"serving_default": predict})
        os.rename(f"{place}/model", folder)
