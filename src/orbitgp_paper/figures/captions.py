"""What each figure shows, beside what the paper's shows, and the tables that have its numbers."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple


class Caption(NamedTuple):
    """The words around a figure. ``paper`` is empty where the paper has no such figure."""

    title: str
    here: str
    paper: str
    tables: tuple[str, ...] = ()


CAPTIONS = {
    "fig1": Caption(
        "Figure 1: the learned invariance",
        "Draws from the orbit that a model has learned. The images in squares are the originals.",
        "The same: samples of the learned invariance around digits in squares. The method becomes insensitive to the "
        "rotations and shears that are seen in them.",
    ),
    "fig2": Caption(
        "Figure 2: the marginal likelihood finds the symmetry",
        "A symmetric function seen with noise, and the posterior means of a Gaussian process that knows the symmetry "
        "and of one that does not. The paper prints neither function nor points, so both are ours.",
        "The model without the invariance fits the training points better. The invariant one generalises better, and "
        "has the higher marginal likelihood.",
        ("toy", "toy_halves", "toy_rates"),
    ),
    "fig2_bound": Caption(
        "Beside figure 2: the bound stands in for the marginal likelihood",
        "The variational bound of the same two models approaches the exact log marginal likelihood (dotted) as "
        "inducing points are added.",
        "",
        ("toy_bounds",),
    ),
    "fig3": Caption(
        "Figure 3: how much rotation to be invariant to",
        "Odd against even digits that were rotated by up to 90° or 180°. The learned angle from several starts, the "
        "test error and the bound, during training.",
        "The true angles are recovered approximately: 180° is under-estimated, 90° is recovered well. All models with "
        "a learned angle outperform the RBF by a large margin, in error and in bound.",
        ("parity",),
    ),
    "fig4": Caption(
        "Figure 4: MNIST",
        "Test error and bound during training, and the final errors beside the paper's. Thin lines are single seeds.",
        "Every invariant model outperforms the RBF. Affine maps and local deformations perform alike, and rotations "
        "alone are only slightly better than the RBF.",
        ("mnist",),
    ),
    "fig5": Caption(
        "Figure 5: digits rotated by any angle",
        "Test error and bound during training. The images are generated here from a fixed seed. They are not the "
        "public files of that name, so errors compare with the paper's only roughly.",
        "Every invariant model outperforms the RBF by a large margin. The fixed rotation is better than the learned "
        "models, for which the optimiser has difficulty finding a good solution. The bound identifies the best model.",
        ("rotated",),
    ),
    "training": Caption(
        "During training",
        "Test error and bound of each model during training. Thin lines are single seeds.",
        "",
    ),
    "sizes": Caption(
        "Few data: error and probabilities by the number of training images",
        "Digits as they are (mnist), turned by any angle (turned), enlarged or shrunk and shifted (moved), and clothes "
        "(fashion). Means over seeds, with bars of one standard deviation. All seeds have the same training images, "
        "the first ones: bars show what training varies, not what other images would.",
        "",
        ("few_mnist", "few_turned", "few_moved", "few_fashion"),
    ),
    "appendix_a": Caption(
        "Appendix A: insensitivity",
        "How often f strays from itself by more than a threshold L when an image moves along the model's own orbit: "
        "measured, and the bound that the paper's lemma gives.",
        "The lemma alone: the probability of a deviation is bounded. It is not measured.",
        ("insensitivity",),
    ),
    "appendix_b": Caption(
        "Appendix B: estimators",
        "Bias and spread of estimators of products of orbit averages, where the exact value is known. Each image has "
        "draws of its own; the table also has one set for all images, and the cost.",
        "The estimators alone: pairs of different samples are unbiased, and sampling without replacement reduces the "
        "variance. They are not measured.",
        ("estimators",),
    ),
}


def caption_of(name: str) -> Caption:
    """
    :param name: name of a figure.
    :return: its caption; from its module's docstring, if it is not in ``CAPTIONS``.
    """
    if name in CAPTIONS:
        return CAPTIONS[name]
    said = " ".join((import_module(f"orbitgp_paper.figures.{name}").__doc__ or "").split())
    title, _, rest = said.partition(": ")
    return Caption(title.rstrip("."), rest[:1].upper() + rest[1:], "", (name,))
