"""Base kernels that are sums of processes: on the whole image, and on patches of several sizes."""

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

    inducing: int  #: number of its inducing points, M_c
    patch: int | None = None  #: pixels along a side of its patches; None for the whole image
    stride: int = 1  #: pixels between patches
    location: bool = True  #: whether the kernel knows where a patch lies
    variance: float | None = None  #: initial variance of g_c; None for the model's
    lengthscale: float | None = None  #: initial lengthscale, in pixel values; None for the model's, scaled for patches

    def __post_init__(self) -> None:
        checks.integer("inducing", self.inducing, least=1)
        checks.integer("stride", self.stride, least=1)
        for name in ("variance", "lengthscale"):
            if (value := getattr(self, name)) is not None:
                checks.number(name, value, least=1e-9)
        if self.patch is None and (self.stride, self.location) != (1, True):
            raise ValueError("stride and location belong to patches: set patch, their size, or leave both out")

    @classmethod
    def make(cls, content: Component | Mapping[str, Any]) -> Component:
        """Makes a component from a mapping of its fields; returns a component as it is."""
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
        The kernel of this process.

        :param shape: (H, W, C) of the images.
        :param variance: initial variance, unless the component has its own.
        :param lengthscale: initial lengthscale for whole images, unless the component has its own. For patches it is
            multiplied by √(pixels of a patch / pixels of an image), as distances between them are smaller.
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
        place = SquaredExponential(1.0, 1.0, active_dims=patches.place_columns)  # lengthscale: half an image
        gpflow.set_trainable(place.variance, False)  # one variance is enough for both
        return Invariant(pixels * place, patches)


def sum_of(components: Sequence[Component], shape: tuple[int, int, int], variance: float, lengthscale: float) -> Kernel:
    """
    The sum of the components' kernels, as the base kernel of :class:`orbitgp.Invariant`. Place its inducing points by
    ``orbitgp.place(kernel, X, [c.inducing for c in components])``.

    :param shape: (H, W, C) of the images.
    :param variance: initial variance of components without their own.
    :param lengthscale: initial lengthscale for whole images, of components without their own.
    """
    return Sum([component.kernel(shape, variance, lengthscale) for component in components])
