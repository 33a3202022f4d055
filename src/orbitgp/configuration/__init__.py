"""The workflow's configuration: read, checked, and resolved into what each run depends on. Loads no TensorFlow."""

from orbitgp.configuration.checks import RESERVED, SCHEMA, check, load
from orbitgp.configuration.places import Paths, Run, paths
from orbitgp.configuration.reading import read_yaml
from orbitgp.configuration.specs import canonical, dataset_spec, digest, run_spec, runs
from orbitgp.configuration.wording import ConfigError

__all__ = [
    "RESERVED",
    "SCHEMA",
    "ConfigError",
    "Paths",
    "Run",
    "canonical",
    "check",
    "dataset_spec",
    "digest",
    "load",
    "paths",
    "read_yaml",
    "run_spec",
    "runs",
]
