"""YAML files and the one-line errors that say what is wrong with them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

MOST_BYTES = 1_000_000  #: far more than any configuration has

Model = TypeVar("Model", bound=BaseModel)


class ConfigError(Exception):
    """A configuration that cannot be used; one line that names file, key, value and what is expected."""

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        super().__init__(line if len(line) <= 600 else line[:599] + "…")


class _Loader(yaml.SafeLoader):
    """YAML that refuses duplicate keys, and reads 1e-3 as a number; PyYAML keeps the last key, and reads a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if not key.tag.endswith(":merge")]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ConfigError(f"the key {twice!r} stands a second time in the block of line {node.start_mark.line + 1}")
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("+-0123456789")
)


def read_yaml(file: Path) -> Any:
    """What a YAML file holds, as plain Python values; a key that stands twice is an error."""
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise ConfigError(f"{file} has {size:,} bytes; the most that is read is {MOST_BYTES:,}")
        return yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    # PyYAML lets errors of Python through where a tag promises what a value is not, such as !!int x
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ConfigError(f"{file} is not YAML: {error}") from error


def validate(model: type[Model], content: Any) -> Model:
    """
    :param content: plain values, as :func:`read_yaml` gives them.
    :return: the model; :class:`ConfigError` names the first key that is wrong.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ConfigError(_explain(error, content, _keys(model))) from None


def one_of(key: str, value: str, allowed: Iterable[str]) -> None:
    """Refuses a name that is none of those allowed."""
    names = list(allowed)
    if value not in names:
        raise ConfigError(f"{key} = {value!r} must be one of {', '.join(names)}{_meant(value, names)}")


def _explain(error: ValidationError, content: Any, known: set[str]) -> str:
    """:return: the first complaint of pydantic's: key, value, what is expected."""
    first, *others = error.errors(include_url=False)
    kind, value, key = first["type"], first["input"], _dotted(first["loc"], content)
    if kind == "missing":
        said = f"{key} is missing"
    elif kind == "union_tag_not_found":
        said = f"{key}.kind is missing"
    elif kind == "union_tag_invalid":
        said = f"{key}.kind = {_short(first['ctx']['tag'])} must be one of {first['ctx']['expected_tags']}"
    elif kind == "extra_forbidden":
        said = f"{key} = {_short(value)} is no key here{_meant(str(first['loc'][-1]), known)}"
    elif kind == "value_error":
        said = f"{key}: {first['ctx']['error']}" if key else str(first["ctx"]["error"])
    else:
        said = f"{key or 'the file'} = {_short(value)} " + re.sub(r"^[A-Z]\w+ should", "must", first["msg"])
    return said + (f" (and {len(others)} more)" if others else "")


def _dotted(location: Iterable[str | int], content: Any) -> str:
    """:return: the keys to a value, less the kinds that pydantic puts between them where a block has several."""
    keys: list[str] = []
    entered = True  # a block, whose kind may come next
    for part in location:
        kind = entered and isinstance(content, dict) and content.get("kind") == part and "training" not in keys
        entered = not kind
        if kind or part == "[key]":
            continue
        keys.append(str(part)[:80])
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            content = None
    return ".".join(keys)


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _short(value: Any) -> str:
    text = reprlib.repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


@lru_cache
def _keys(model: type[BaseModel]) -> set[str]:
    """:return: all keys of a model and of the blocks in it."""
    schema = model.model_json_schema()
    return {key for block in (schema, *schema["$defs"].values()) for key in block["properties"]}
