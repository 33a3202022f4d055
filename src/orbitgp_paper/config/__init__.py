"""The workflow's configuration: files of settings, resolved into the specification of each run. Loads no TensorFlow."""

from orbitgp_paper.config.places import Paths, Run
from orbitgp_paper.config.tiers import RESERVED, Config, json_schema, load, parse
from orbitgp_paper.spec import RunSpec, canonical, digest, parse_dataset, plain, read_spec
from orbitgp_paper.yaml_files import ConfigError, read_yaml

__all__ = [
    "RESERVED",
    "Config",
    "ConfigError",
    "Paths",
    "Run",
    "RunSpec",
    "canonical",
    "digest",
    "json_schema",
    "load",
    "parse",
    "parse_dataset",
    "plain",
    "read_spec",
    "read_yaml",
]
