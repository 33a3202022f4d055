"""
Likelihoods whose bound stays unbiased when the orbit is sampled: GPflow's Gaussian, the logistic one of two classes,
and three of several classes.
"""

from orbitgp.likelihoods.classes import ClassLikelihood
from orbitgp.likelihoods.dirichlet import DirichletLabels
from orbitgp.likelihoods.logistic_softmax import LogisticSoftmax, logistic_softmax_sites
from orbitgp.likelihoods.one_hot import OneHotGaussian
from orbitgp.likelihoods.polya_gamma import (
    PolyaGammaBernoulli,
    polya_gamma_bound,
    polya_gamma_precision,
    polya_gamma_sites,
)
from orbitgp.likelihoods.sites import (
    Batch,
    Moments,
    Sites,
    expected_log_density,
    quadratic_sites,
    sites_of,
    slope,
)
from orbitgp.likelihoods.softmax import Softmax, softmax_bound, softmax_sites
from orbitgp.likelihoods.tilts import IndependentGroups, RecognitionNetwork, Tilt, TiltTable

__all__ = [
    "Batch",
    "ClassLikelihood",
    "DirichletLabels",
    "IndependentGroups",
    "LogisticSoftmax",
    "Moments",
    "OneHotGaussian",
    "PolyaGammaBernoulli",
    "RecognitionNetwork",
    "Sites",
    "Softmax",
    "Tilt",
    "TiltTable",
    "expected_log_density",
    "logistic_softmax_sites",
    "polya_gamma_bound",
    "polya_gamma_precision",
    "polya_gamma_sites",
    "quadratic_sites",
    "sites_of",
    "slope",
    "softmax_bound",
    "softmax_sites",
]
