"""Orbits by name or import path, as estimators, the command and configurations take them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gpflow.utilities import deepcopy

from orbitgp import orbits
from orbitgp.orbits import Orbit

Shape = tuple[int, int, int]  #: (H, W, C)

#: where each starts: near the identity, so that the bound has to pay for what it widens
NAMED: dict[str, Callable[[Shape], Orbit]] = {
    "none": lambda shape: orbits.Identity(),
    "rotation": lambda shape: orbits.Rotation(shape, alpha=10.0),
    "translation": orbits.Translation,
    "scale": orbits.Scaling,
    "affine": orbits.Affine,
    "affine_parts": orbits.InterpretableAffine,
    "local": orbits.LocalDeformation,
}


def make_orbit(orbit: Any, shape: Shape, **settings: Any) -> Orbit:
    """
    :param orbit: a name of :data:`NAMED`, ``"package.module:Class"``, a class or function that makes an orbit from the
        shape, or an orbit.
    :param shape: (H, W, C) of the images.
    :param settings: what else the class or function is given, by name.
    """
    if isinstance(orbit, Orbit):
        return deepcopy(orbit)  # training changes it, and what the user passed stays as it was
    try:
        made = _maker(orbit)(shape, **settings)
    except TypeError as error:  # the arguments do not fit
        raise ValueError(
            f"orbit = {orbit!r} cannot be made of shape {shape} and settings {settings}: {error}"
        ) from error
    if not isinstance(made, Orbit):
        raise ValueError(f"orbit = {orbit!r} makes a {type(made).__name__}, not an orbitgp.orbits.Orbit")
    return made


def _maker(orbit: Any) -> Callable[[Shape], Any]:
    if isinstance(orbit, str):
        if orbit in NAMED:
            return NAMED[orbit]
        module, colon, name = orbit.partition(":")
        if not colon:
            raise ValueError(f"orbit = {orbit!r} must be one of {', '.join(NAMED)}, or package.module:Class")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"orbit = {orbit!r} cannot be imported: {error}") from error
    if callable(orbit):
        return orbit
    raise ValueError(
        f"orbit must be a name, an orbit, or a class or function that makes one of (H, W, C), got {orbit!r}"
    )
