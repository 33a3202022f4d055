"""Gaussian processes whose invariances are learned from the marginal likelihood.

Importing this package loads none of its parts, and so no TensorFlow: ``orbitgp.datasets`` and whatever draws
figures from finished results stay quick to start.
"""

from importlib.metadata import version

__version__ = version("orbitgp")
