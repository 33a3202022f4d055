"""Likelihoods whose bound stays unbiased when the orbit is sampled: GPflow's Gaussian, and the logistic one."""

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
from orbitgp.likelihoods.tilts import IndependentGroups, RecognitionNetwork, Tilt, TiltTable

__all__ = [
    "Batch",
    "IndependentGroups",
    "Moments",
    "PolyaGammaBernoulli",
    "RecognitionNetwork",
    "Sites",
    "Tilt",
    "TiltTable",
    "expected_log_density",
    "polya_gamma_bound",
    "polya_gamma_precision",
    "polya_gamma_sites",
    "quadratic_sites",
    "sites_of",
    "slope",
]
