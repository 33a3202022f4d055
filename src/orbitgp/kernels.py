"""The kernel of a function averaged over an orbit."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel, White

from orbitgp import checks
from orbitgp.covariances import orbit_Kff, orbit_Kff_diag
from orbitgp.orbits import Orbit


class Invariant(Kernel):
    """
    k_f(x, x') = E_a E_a' k_g(x_a, x'_a'), the covariance of f(x) = E_a g(x_a) under g ~ GP(0, k_g).

    Where the average is exact (see :mod:`orbitgp.covariances`) this is a kernel like any other of GPflow's, in GPR
    or SVGP. For other orbits it names the model, and :class:`orbitgp.models.InvariantSVGP` estimates what it needs.
    """

    def __init__(self, base: Kernel, orbit: Orbit, name: str | None = None) -> None:
        """
        :param base: k_g, the kernel of the function that is averaged.
        :param orbit: p(x_a | x).
        """
        super().__init__(name=name)
        self.base = checks.instance("base", base, Kernel)
        if any(isinstance(part, White) for part in (base, *base.submodules)):
            raise ValueError(
                "base must not contain White: noise at a point has no average over an orbit. Noise belongs to the "
                "likelihood, or outside: Invariant(…) + White(…)"
            )
        self.orbit = checks.instance("orbit", orbit, Orbit)

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """[N, D], [N2, D] → [N, N2]"""
        return orbit_Kff(self.orbit, self.base, X, X if X2 is None else X2)

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        """[N, D] → [N]"""
        return orbit_Kff_diag(self.orbit, self.base, X)
