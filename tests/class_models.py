"""Small models of three classes, for tests of their likelihoods and of their trainings."""

import gpflow
import numpy as np

from orbitgp import orbits
from orbitgp.inducing import BasePoints
from orbitgp.kernels import Invariant
from orbitgp.likelihoods import (
    DirichletLabels,
    IndependentGroups,
    LogisticSoftmax,
    RecognitionNetwork,
    Softmax,
    TiltTable,
)
from orbitgp.models import InvariantSVGP
from orbitgp.schemes import FullOrbit

N, D, K, M, WHOLE = 12, 9, 3, 6, 20
TILTED = {"softmax": Softmax, "logistic_softmax": LogisticSoftmax}


def likelihood_of(kind, tilt="groups", classes=K):
    if kind == "dirichlet":
        return DirichletLabels(classes)
    outputs, real = TILTED[kind].local_numbers(classes)
    if tilt == "network":
        return TILTED[kind](classes, RecognitionNetwork(D, (5,), outputs, labels=classes, real=real))
    return TILTED[kind](classes, TiltTable(WHOLE, outputs, real=real) if tilt == "table" else IndependentGroups())


def make_model(likelihood, orbit=None, scheme=None, **settings):
    rng = np.random.default_rng(1)
    model = InvariantSVGP(
        Invariant(gpflow.kernels.SquaredExponential(1.3, 2.0), orbits.RightAngles((3, 3)) if orbit is None else orbit),
        likelihood,
        BasePoints(rng.normal(size=(M, D))),
        num_latent_gps=K,
        scheme=FullOrbit() if scheme is None else scheme,
        **{"num_data": WHOLE, "covariance": "per_output", "jitter": 1e-6} | settings,
    )
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    model.q_sqrt.assign(0.2 * np.tril(rng.normal(size=model.q_sqrt.shape)) + 0.6 * np.eye(M))
    return model


def labelled(count=N):
    """Inputs [count, D], and one-hot labels of a function that right angles leave alone."""
    X = np.random.default_rng(0).normal(size=(count, D))
    return X, np.eye(K)[np.digitize(X.sum(1), [-1.0, 1.0])]
