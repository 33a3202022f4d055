"""Orbits: the distributions p(x_a | x) of transformed inputs that a model is made insensitive to."""

from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.orbits.composed import Composed
from orbitgp.orbits.deformation import LocalDeformation
from orbitgp.orbits.discrete import Identity, Permutation, RightAngles
from orbitgp.orbits.image import (
    Affine,
    ImageOrbit,
    InterpretableAffine,
    QuantisedRotation,
    Rotation,
    Scaling,
    Translation,
)
from orbitgp.orbits.noise import GaussianNoise
from orbitgp.orbits.patches import Patches
from orbitgp.orbits.sampling import SAMPLERS

__all__ = [
    "SAMPLERS",
    "Affine",
    "Composed",
    "FiniteOrbit",
    "GaussianNoise",
    "Identity",
    "ImageOrbit",
    "InterpretableAffine",
    "LocalDeformation",
    "Orbit",
    "Patches",
    "Permutation",
    "QuantisedRotation",
    "RightAngles",
    "Rotation",
    "Scaling",
    "Translation",
]
