"""The workflow's configuration: read, checked, and resolved into what each run depends on. Loads no TensorFlow."""

from orbitgp_paper.config.checks import RESERVED, SCHEMA, check, load
from orbitgp_paper.config.places import Paths, Run, paths
from orbitgp_paper.config.reading import read_yaml
from orbitgp_paper.config.specs import canonical, dataset_spec, digest, run_spec, runs
from orbitgp_paper.config.wording import ConfigError

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
