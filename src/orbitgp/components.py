"""Sums of processes by a few numbers: the whole image, and patches of several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gpflow
import numpy as np
from gpflow.kernels import Kernel, SquaredExponential, Sum

from orbitgp import checks
from orbitgp.kernels import Invariant
from orbitgp.orbits import Patches


@dataclass(frozen=True)
class Component:
    """One process of a sum, of the whole image or of its patches, with a squared exponential kernel."""

    inducing: int  #: M_c
    patch: int | None = None  #: pixels along a side of its patches; None for the whole image
    stride: int = 1  #: pixels between patches
    location: bool = True  #: whether the kernel knows where a patch lies
    variance: float | None = None  #: of g_c, at the start; None for that of the model
    lengthscale: float | None = None  #: in pixel values, likewise; None for that of the model, less in a patch

    def __post_init__(self) -> None:
        checks.integer("inducing", self.inducing, least=1)
        checks.integer("stride", self.stride, least=1)
        for name in ("variance", "lengthscale"):
            if (value := getattr(self, name)) is not None:
                checks.number(name, value, least=1e-9)
        if self.patch is None and (self.stride, self.location) != (1, True):
            raise ValueError("stride and location are those of patches: name patch, their size, or leave them out")

    @classmethod
    def make(cls, content: Component | Mapping[str, Any]) -> Component:
        """From a mapping with some of the fields, or as it is."""
        if isinstance(content, cls):
            return content
        if not isinstance(content, Mapping):
            raise TypeError(f"a component must be a mapping such as {{'patch': 5, 'inducing': 100}}, got {content!r}")
        known = [field.name for field in fields(cls)]
        unknown = [key for key in content if key not in known]
        if unknown or "inducing" not in content:
            raise ValueError(f"a component has inducing and may have {', '.join(known[1:])}; got {dict(content)}")
        return cls(**content)

    def kernel(self, shape: tuple[int, int, int], variance: float, lengthscale: float) -> Kernel:
        """
        :param shape: (H, W, C) of the images.
        :param variance: and
        :param lengthscale: of a kernel of whole images, where the component does not say its own. Distances between
            patches are smaller, as the root of their numbers of pixels.
        """
        variance = variance if self.variance is None else self.variance
        if self.patch is None:
            return SquaredExponential(variance, lengthscale if self.lengthscale is None else self.lengthscale)
        patches = Patches(shape, self.patch, self.stride, self.location)
        if self.lengthscale is None:
            lengthscale *= self.patch / np.sqrt(shape[0] * shape[1])
        else:
            lengthscale = self.lengthscale
        pixels = SquaredExponential(variance, lengthscale, active_dims=patches.pixel_columns)
        if patches.place_columns is None:
            return Invariant(pixels, patches)
        place = SquaredExponential(1.0, 1.0, active_dims=patches.place_columns)  # half an image
        gpflow.set_trainable(place.variance, False)  # one variance is enough for both
        return Invariant(pixels * place, patches)


def sum_of(components: Sequence[Component], shape: tuple[int, int, int], variance: float, lengthscale: float) -> Kernel:
    """
    The base kernel of a sum, for :class:`orbitgp.Invariant`; ``orbitgp.place(kernel, X, [c.inducing for c in
    components])`` finds its inducing points.

    :param shape: (H, W, C) of the images.
    :param variance: and
    :param lengthscale: see :meth:`Component.kernel`.
    """
    return Sum([component.kernel(shape, variance, lengthscale) for component in components])
