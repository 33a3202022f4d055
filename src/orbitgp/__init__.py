"""
Gaussian processes that learn which transformations of their inputs do not matter.

    kernel = orbitgp.Invariant(gpflow.kernels.SquaredExponential(), orbitgp.orbits.Affine((28, 28)))
    model = orbitgp.InvariantSVGP(kernel, gpflow.likelihoods.Gaussian(), Z, num_latent_gps=10, num_data=len(X))
    orbitgp.fit(model, (X, Y))

Names are loaded when they are first used: importing this package loads no TensorFlow.
"""

import sys
from importlib import import_module
from typing import Any

__version__ = "0.2.0"  # written here too, so that a folder that was never installed knows it

#: public names and the modules that have them
_HOMES = {
    "InvariantSVGP": "models",
    "InvariantPosterior": "posteriors",
    "Invariant": "kernels",
    "BasePoints": "inducing",
    "SumPoints": "inducing",
    "Component": "components",
    "place": "inducing",
    "Groups": "schemes",
    "FullOrbit": "schemes",
    "WithoutReplacement": "schemes",
    "paper_scheme": "schemes",
    "PolyaGammaBernoulli": "likelihoods",
    "InvariantClassifier": "estimators.classifier",
    "InvariantRegressor": "estimators.regressor",
    "compare": "estimators.comparison",
    "load": "estimators.loading",
    "Softmax": "likelihoods",
    "LogisticSoftmax": "likelihoods",
    "DirichletLabels": "likelihoods",
    "fit": "fitting.loop",
    "Fitted": "fitting.loop",
    "Recipe": "optimizers.recipe",
}
_MODULES = (
    "calibration",
    "components",
    "datasets",
    "inducing",
    "insensitivity",
    "kernels",
    "likelihoods",
    "models",
    "orbits",
    "schemes",
)

_LIGHT = ("calibration", "datasets")  #: modules that need no GPflow

__all__ = sorted([*_HOMES, *_MODULES, "__version__"])


def load_gpflow() -> None:
    """Loads GPflow, with docstrings as they are written: to add shapes to them takes a fifth of all imports."""
    if "gpflow" not in sys.modules:
        from check_shapes.config import set_rewrite_docstrings

        set_rewrite_docstrings(None)
        import_module("gpflow")


def __getattr__(name: str) -> Any:
    if name in _HOMES or (name in _MODULES and name not in _LIGHT):
        load_gpflow()
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
