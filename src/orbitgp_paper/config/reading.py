"""YAML files, read with suspicion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from orbitgp_paper.config.wording import ConfigError, dotted, short, short_line

#: far more than a configuration has: small files can be written that grow without end when they are read
MOST_BYTES, MOST_VALUES, DEEPEST = 1_000_000, 100_000, 20


class _Loader(yaml.SafeLoader):
    """YAML in which a key may stand once only; PyYAML by itself takes the last and says nothing."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_VALUES:  # blocks that are merged into blocks, over and over
            raise ConfigError(f"the block in line {node.start_mark.line + 1} has more than {MOST_VALUES:,} keys")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConfigError(f"the key {short(key)} in line {key_node.start_mark.line + 1} must be a word")
            if key in seen:
                raise ConfigError(f"the key {short(key)} stands a second time in line {key_node.start_mark.line + 1}")
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """
    :return: what a YAML file holds; a key that stands twice is an error.
    """
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ConfigError(f"it has {file.stat().st_size:,} bytes; the most that is read is {MOST_BYTES:,}")
        return yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    # PyYAML lets errors of Python through where a tag promises what a value is not, such as !!int x
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ConfigError(f"{file} is not YAML: {short_line(str(error) or type(error).__name__)}") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error


def check_plain(config: Any, at: tuple[str | int, ...] = (), before: int = 0) -> int:
    """
    Words as keys; values that JSON has, and finite: a schema lets NaN through every bound.

    :param before: how many values were seen before.
    :return: how many were seen, these included. A few lines whose aliases refer to each other can stand for billions.
    """
    seen = before + 1
    if seen > MOST_VALUES:
        raise ConfigError(f"there are more than {MOST_VALUES:,} values")
    if len(at) > DEEPEST:
        raise ConfigError(f"{dotted(at[:4])}… goes on without end: some block contains itself")
    if isinstance(config, Mapping):
        for key, value in config.items():
            if not isinstance(key, str):
                raise ConfigError(f"the key {short(key)} in {dotted(at)} must be a word")
            seen = check_plain(value, (*at, key), seen)
    elif isinstance(config, list | tuple):
        for i, value in enumerate(config):
            seen = check_plain(value, (*at, i), seen)
    elif isinstance(config, float) and not math.isfinite(config):
        raise ConfigError(f"{dotted(at)} is {config}; it must be a finite number")
    elif config is None and at:
        raise ConfigError(f"{dotted(at)} is empty; give it a value or leave the key out")
    elif config is not None and not isinstance(config, bool | int | float | str):
        raise ConfigError(f"{dotted(at)} is {short(config)}, a {type(config).__name__}; it must be a number or a word")
    return seen
