"""Arguments that are refused, and named in the error. What each check refuses is in test_checks.py."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from gpflow import kernels

from orbitgp.datasets import (
    ImageData,
    Images,
    PointData,
    Points,
    one_hot,
    parity,
    rotate,
    rotated,
    square_grid,
    symmetric,
    transformed,
)
from orbitgp.inducing import place
from orbitgp.insensitivity import insensitivity
from orbitgp.kernels import Invariant, orbit_Kfu
from orbitgp.likelihoods import PolyaGammaBernoulli, RecognitionNetwork, TiltTable
from orbitgp.models import InvariantSVGP
from orbitgp.optimizers.recipe import NaturalRate, Recipe
from orbitgp.orbits import (
    Affine,
    Composed,
    GaussianNoise,
    Identity,
    InterpretableAffine,
    LocalDeformation,
    Permutation,
    QuantisedRotation,
    RightAngles,
    Rotation,
)
from orbitgp.orbits.sampling import uniforms
from orbitgp.schemes import (
    FullOrbit,
    Groups,
    WithoutReplacement,
    all_pairs,
    distinct_pairs,
    independent_pairs,
    paper_scheme,
    variance_of_average,
)

RBF, X, SEED, S = kernels.SquaredExponential(), np.arange(12.0).reshape(6, 2), [0, 0], (4, 4)
RATES = dict.fromkeys(("inducing", "kernel", "likelihood", "orbit"), 0.1)
PIXELS, LABELS = np.zeros((2, 3, 3, 1), np.float32), np.zeros(2, np.int64)
DATA = ImageData("two", Images(PIXELS, LABELS), Images(PIXELS, LABELS))
WIDE = Images(PIXELS.repeat(2, axis=2), LABELS)
SWAP = [[0, 1], [1, 0]]
X11, X12, X13 = (np.zeros((1, D)) for D in (1, 2, 3))


def model(kernel=None, **settings):
    kernel = Invariant(RBF, GaussianNoise(2)) if kernel is None else kernel
    return InvariantSVGP(
        **{"kernel": kernel, "likelihood": gpflow.likelihoods.Gaussian(), "inducing_variable": X[:2]} | settings
    )


def insensitive(of=None, thresholds=(1.0,), **settings):
    return insensitivity(model() if of is None else of, X, thresholds, **settings)


def placed(kernel=None, inputs=X, count=2, **settings):
    return place(Invariant(RBF, Permutation(SWAP)) if kernel is None else kernel, inputs, count, **settings)


CASES = [
    # orbits
    (lambda: Composed([]), "orbits must name at least one orbit, got none"),
    (lambda: Composed([Identity(), "rotation"]), r"orbits\[1\] must be an Orbit, got str"),
    (lambda: Composed(Identity()), "orbits must .*Identity"),  # one orbit without its list
    (lambda: LocalDeformation(S, deformation=-0.1), r"deformation must be a finite number in \[0, inf\], got -0.1"),
    (lambda: LocalDeformation(S, generators=[0.1] * 5), r"generators must have shape \(6,\), got \(5,\)"),
    (lambda: LocalDeformation(S, generators=[0.1] * 5 + [-0.2]), r"generators must not be negative, got \[.*-0.2\]"),
    (lambda: LocalDeformation(S, mode="affine"), "mode must be one of 'warp', 'tangent', got 'affine'"),
    (lambda: LocalDeformation(S, field_width=0.0), r"field_width must be a finite number in \[0.001, inf\], got 0.0"),
    (lambda: Permutation([[0.0, 1.0]]), r"tables must be integers of shape \[P, D\], got float64 of shape \(1, 2\)"),
    (lambda: Permutation([[0, 1], [1, 1]]), r"tables must be a permutation of 0 … 1; row 1 is \[1 1\]"),
    (lambda: Permutation([[-1, 0]]), r"tables must be a permutation of 0 … 1; row 0 is \[-1  0\]"),
    (lambda: Permutation([[0, 1], [0]]), "tables must have rows of one length"),
    (lambda: Permutation(np.zeros((0, 3), int)), "tables must be a permutation of 0 … 2; there are no rows"),
    (lambda: RightAngles((4, 5)), r"square.* got shape \(4, 5\)"),
    (lambda: Rotation(S, alpha=180.5), r"alpha must be a finite number in \[0, 180\], got 180.5"),
    (lambda: QuantisedRotation(S, 0), "order must be an integer of at least 1, got 0"),
    (lambda: Affine((1, 5)), r"shape\[0\] must be an integer of at least 2, got 1"),
    (lambda: Affine(S, upper=[1, 0, 0, 0, np.inf, 0]), r"upper must be finite, got \[.*inf"),
    (lambda: InterpretableAffine(S, lower=np.zeros(6)), r"lower must have shape \(7,\), got \(6,\)"),
    (lambda: GaussianNoise(0), "input_dim must be an integer of at least 1, got 0"),
    (lambda: GaussianNoise(2, 0.0), "scale must be more than 0"),
    (lambda: GaussianNoise(2, -0.1), r"scale must be a finite number in \[0, inf\], got -0.1"),
    (lambda: Permutation(SWAP).sample_without_replacement(X, 3, SEED), "count must be .* 1 and at most 2, got 3"),
    (lambda: uniforms(2, 2, 2, 21201, SEED), "at most 21200 dimensions, got 21201; use sampler 'iid'"),
    (lambda: uniforms(2, 2, 2, 2, SEED, "latin"), "sampler must be one of 'sobol', 'iid', got 'latin'"),
    (lambda: uniforms(2, 2, 2, 2, [1, 2, 3]), r"seed must have shape \[2\], not \[3\]"),
    # kernels and schemes
    (lambda: Invariant("rbf", Identity()), "base must be a Kernel, got str"),
    (lambda: Invariant(kernels.Linear(), kernels.Linear()), "orbit must be an Orbit, got Linear"),
    (lambda: Invariant(kernels.White(), Identity()), "base must not contain White"),
    (lambda: Invariant(RBF + kernels.White(), Identity()), "base must not contain White"),
    (lambda: orbit_Kfu(GaussianNoise(2), RBF, X12, X13), r"(?s)Argument: X\b.*Actual: *\[1, 2\]"),
    (lambda: orbit_Kfu(Permutation(SWAP), RBF, X13, X13), r"X has 3 columns, the .* 2"),
    (lambda: FullOrbit().check(Rotation(S)), "FullOrbit needs a finite orbit, Rotation is not"),
    (lambda: WithoutReplacement(2).check(GaussianNoise(2)), "WithoutReplacement needs a finite orbit"),
    (lambda: WithoutReplacement(5).check(RightAngles(S)), "count .* at most 4, got 5"),
    (lambda: WithoutReplacement(1).check(RightAngles(S)), "count .* at least 2 .*, got 1"),
    (lambda: WithoutReplacement(0), "count must be an integer of at least 1, got 0"),
    (lambda: Groups(groups=1), "groups must be an integer of at least 2, got 1"),
    (lambda: Groups(sampler="halton"), "sampler must be one of 'sobol', 'iid', got 'halton'"),
    (lambda: Groups().draw_for_prediction(Identity(), X, 0, SEED), "samples .* 1, got 0"),
    (lambda: paper_scheme(1), "samples .* at least 2, got 1"),
    (lambda: independent_pairs(1), "groups must be an integer of at least 2, got 1"),
    (lambda: distinct_pairs(4, 1), "count must be .* at least 2 and at most 4, got 1"),
    (lambda: variance_of_average(np.zeros((1, 4, 4)), 3, all_pairs(2)), "groups .*3"),
    # models and likelihoods
    (lambda: model(RBF), "kernel must be an Invariant"),
    (lambda: model(likelihood=3), "likelihood"),
    (lambda: model(q_mu=np.zeros((3, 1))), r"q_mu must have the shape \(2, 1\)"),
    (lambda: model(q_sqrt=np.zeros((2, 2, 2)), covariance="shared"), r"q_sqrt must have the shape \(1, 2, 2\)"),
    (lambda: model(num_latent_gps=0), "num_latent_gps"),
    (lambda: model(num_data=-1), "num_data"),
    (lambda: model(scheme=FullOrbit()), "FullOrbit needs a finite orbit, GaussianNoise"),
    (lambda: model(scheme="sobol"), "scheme"),
    (lambda: model(covariance="diagonal"), "'shared', 'per_output'"),
    (lambda: model(precision="float16"), "precision"),
    (lambda: model(Invariant(kernels.ArcCosine(), GaussianNoise(2)), precision="mixed"), "ArcCosine cannot be .*32"),
    (lambda: model(jitter=-1.0), "jitter"),
    (lambda: model(block=0), "block"),
    (lambda: model(block=5, compiled=True), "compiled=True needs the whole batch.* leave out block"),
    (lambda: model(prediction_samples=0), "prediction_samples"),
    (lambda: model().predict_f(X, samples=0), "samples"),
    (lambda: model().predict_y(X, full_cov=True), "full covariance"),
    (lambda: model().predict_log_density((X, X[:, :1]), full_cov=True), "full covariance"),
    (lambda: PolyaGammaBernoulli("network"), "tilt must be a Tilt, got str"),
    (lambda: RecognitionNetwork(0), "input_dim"),
    (lambda: RecognitionNetwork(3, hidden=(4, 0)), r"hidden\[1\]"),
    (lambda: TiltTable(0), "num_data"),
    (lambda: insensitive(3), "model must be an InvariantSVGP"),
    (lambda: insensitive(view="both"), "view must be one of 'prior', 'posterior'"),
    (lambda: insensitive(thresholds=[]), "thresholds"),
    (lambda: insensitive(thresholds=[0.0]), "thresholds"),
    (lambda: insensitive(samples=0), "samples"),
    # inducing points
    (lambda: placed(RBF), "kernel must be an? Invariant, got SquaredExponential"),
    (lambda: placed(method="best"), "method must be one of .*, got 'best'"),
    (lambda: placed(count=7), "count must be .* at most 6, got 7"),
    (lambda: placed(count=5, candidates=4), "count must be .* at most 4, got 5"),
    (lambda: placed(inputs=X[0]), r"X must be a matrix .*, got shape \(2,\)"),
    (lambda: placed(inputs=X * np.nan), "X must be finite"),
    # optimisers and what lies below
    (lambda: Recipe("sgd"), "kind must be one of 'natural', 'adam', got 'sgd'"),
    (lambda: Recipe(steps=0), "steps must be an integer of at least 1, got 0"),
    (lambda: Recipe(batches="sorted"), "batches must be one of 'drawn', 'shuffled', 'hard', got 'sorted'"),
    (lambda: Recipe(inducing_scale="column"), "inducing_scale must be one of 'element', 'row', got 'column'"),
    (lambda: Recipe(warmup=-0.1), "warmup must be .*, got -0.1"),
    (lambda: Recipe("adam", rates=RATES), "rates must be set for .*variational, got inducing"),
    (lambda: Recipe(rates={"kernel": 0.1}), "rates must be set for .*, got kernel"),
    (lambda: Recipe(rates=RATES | {"orbit": -1.0}), r"rates\['orbit'\] must be .*, got -1.0"),
    (lambda: NaturalRate(0.1, 0.2), r"natural.last must be .* 0.1\], got 0.2"),
    (lambda: NaturalRate(scale="mean"), "natural.scale must be one of 'ceiling', 'precision', got 'mean'"),
    # data
    (lambda: Images([[0.0]], LABELS), "images must be an array .* not list"),
    (lambda: Images(PIXELS.astype(np.float64), LABELS), "images must be float32, not float64"),
    (lambda: Images(PIXELS[..., 0], LABELS), r"images must be \[N, H, W, C\], not \[2, 3, 3\]"),
    (lambda: Images(PIXELS[:0], LABELS[:0]), "images must not be empty"),
    (lambda: Images(PIXELS + 1.5, LABELS), r"images must lie in \[0, 1\], but they span \[1.5, 1.5\]"),
    (lambda: Images(PIXELS * np.float32("nan"), LABELS), r"images must lie in \[0, 1\], but they span \[nan"),
    (lambda: Images(PIXELS, LABELS.astype(np.int32)), "labels must be int64, not int32"),
    (lambda: Images(PIXELS, np.zeros(3, np.int64)), "2 images but 3 labels"),
    (lambda: Images(PIXELS, LABELS).inputs(np.int64), "dtype must be a floating type"),
    (lambda: Images(PIXELS, LABELS).take(0), "count must be an integer of at least 1 and at most 2"),
    (lambda: Images(PIXELS, LABELS).take([2]), "indices must lie in 0 … 1, not 2"),
    (lambda: Images(PIXELS, LABELS).take([-1]), "indices must lie in 0 … 1, not -1"),
    (lambda: Images(PIXELS, LABELS).take([True, False]), "indices must be integers"),
    (lambda: Images(PIXELS, LABELS).take(np.zeros(0, int)), "must not be empty"),
    (lambda: Points(X13.astype(np.float32), X11), "X must be float64, not float32"),
    (lambda: Points(X13, X11[0]), r"Y must be \[N, 1\], not \[1\]"),
    (lambda: Points(X13, np.zeros((3, 1))), r"Y must be \[1, 1\] for this X, not \[3, 1\]"),
    (lambda: Points(X13 + np.inf, X11), "X must be finite"),
    (lambda: Points(X13, X11 * np.nan), "Y must be finite"),
    (lambda: PointData("two", Points(X12, X11), Points(X13, X11)), "two: training inputs have 2 .* but test inputs 3"),
    (lambda: ImageData("two", DATA.train, WIDE), r"two: training images are \(3, 3, 1\) but test images \(3, 6, 1\)"),
    (lambda: one_hot([0, 3], 3), "labels must lie in 0 … 2, not 3"),
    (lambda: one_hot([0.0, 1.0], 3), "labels must be integers"),
    (lambda: rotate(PIXELS[..., 0], [0, 0]), r"images must be \[N, H, W, C\], not \[2, 3, 3\]"),
    (lambda: rotate(PIXELS + 255, [0, 0]), r"images must lie in \[0, 1\]"),
    (lambda: rotate(PIXELS, [0]), r"degrees must be \[2\], one for each image, not \[1\]"),
    (lambda: rotate(PIXELS, [0, np.nan]), "degrees must be finite"),
    (lambda: transformed(DATA, 0, rotation=190), "rotation must be .*180"),
    (lambda: transformed(DATA, 0, scale=0.5), "scale must be .*1"),
    (lambda: transformed(DATA, 0, translation=0.6), "translation must be .*0.5"),
    (lambda: parity(0, 0, DATA), "alpha_degrees must be above 0"),
    (lambda: parity(180.5, 0, DATA), "alpha_degrees must be .*180"),
    (lambda: parity(90, -1, DATA), "seed must be an integer of at least 0.*-1"),
    (lambda: rotated(-1, 1, 1, DATA), "seed must be an integer"),
    (lambda: rotated(0, 0, 1, DATA), "train must be an integer of at least 1.*0"),
    (lambda: rotated(0, 1, -5, DATA), "test must be an integer of at least 1.*-5"),
    (lambda: rotated(0, 2, 3, DATA), r"train \+ test must be at most 4, the images there are, not 5"),
    (lambda: rotated(0, 1, 1, "mnist"), "data must be a"),
    (lambda: symmetric(0, train=0), "train must be an integer of at least 1"),
    (lambda: symmetric(0, test=1), "test must be an integer of at least 2"),
    (lambda: symmetric(0, noise=float("nan")), "noise must be"),
    (lambda: square_grid(1), "side must be an integer of at least 2"),
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_bad_arguments_are_named(call, message):
    with pytest.raises((ValueError, TypeError, ShapeMismatchError, tf.errors.InvalidArgumentError), match=message):
        call()
