"""A JSON schema's complaints, in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema

from orbitgp_paper.config.reading import read_yaml
from orbitgp_paper.config.wording import ConfigError, dotted, short


@lru_cache(maxsize=16)
def validator(schema: Path, definition: str | None) -> Any:
    """
    :param definition: one of the schema's ``$defs``; None for the whole.
    """
    content = read_yaml(schema)
    if definition is not None:
        content = {"$schema": content["$schema"], "$defs": content["$defs"], "$ref": f"#/$defs/{definition}"}
    base = jsonschema.Draft202012Validator
    # to JSON, 6.0 is an integer; to range() it is not
    types = base.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ).redefine("object", lambda _, value: isinstance(value, Mapping))
    return jsonschema.validators.extend(base, type_checker=types)(content)


def check_schema(config: Any, validator: Any, prefix: tuple[str, ...] = (), hint: str = "") -> None:
    """
    :param prefix: where ``config`` stands in the whole.
    """
    errors = sorted(validator.iter_errors(config), key=lambda error: [str(part) for part in error.absolute_path])
    if errors:
        raise ConfigError(_explain(errors[0], prefix) + hint)


def _explain(error: Any, prefix: tuple[str, ...]) -> str:
    """:return: a schema's complaint, in words: key, value, what is allowed"""
    key = dotted((*prefix, *error.absolute_path))
    value, schema, rule = error.instance, error.schema, error.validator
    if "propertyNames" in error.absolute_schema_path:
        return f"{key or 'the configuration'} has the key {short(value)}; it must be {_expected(schema)}"
    if rule == "additionalProperties":
        allowed = list(schema.get("properties", {}))
        unknown = next(name for name in value if name not in allowed)
        close = get_close_matches(unknown, allowed, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        whose = f" of kind {value['kind']}" if isinstance(value.get("kind"), str) else ""
        return (
            f"{dotted((key, unknown))} = {short(value[unknown])} is no key here{meant}; "
            f"{key or 'a configuration'}{whose} takes {', '.join(sorted(allowed))}"
        )
    if rule == "required":
        missing = next(name for name in error.validator_value if name not in value)
        return (
            f"{dotted((key, missing))} is missing; {key or 'a configuration'} needs {', '.join(error.validator_value)}"
        )
    if rule in ("minProperties", "minItems") and not value:
        return f"{key} is empty; it needs at least {error.validator_value}"
    if rule == "uniqueItems":
        twice = next(item for item in value if value.count(item) > 1)
        return f"{key} = {short(value)} has {short(twice)} more than once"
    kind = schema.get("type")
    if isinstance(value, str) and kind in ("number", "integer") and (number := _number_meant(value, kind == "integer")):
        return f"{key} = {value!r} is a string to YAML, not a number; write {number}; it must be {_expected(schema)}"
    return f"{key or 'the configuration'} = {short(value)} must be {_expected(schema)}"


def _expected(schema: Mapping[str, Any]) -> str:
    """:return: what a schema without parts asks for, in words"""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "pattern" in schema:
        if "a-z" in schema["pattern"]:
            return f"a name of small letters, digits and _, at most {schema['maxLength']} of them, a letter first"
        return f"text without control characters, at most {schema['maxLength']} long"
    nouns = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "object": "a block of keys",
        "array": "a list",
        "string": "a word or a line of text",
    }
    bounds = (
        ("minimum", "of at least {}"),
        ("exclusiveMinimum", "above {}"),
        ("maximum", "at most {}"),
        ("exclusiveMaximum", "below {}"),
        ("multipleOf", "a multiple of {}"),
        ("minLength", "at least {} long"),
        ("maxLength", "at most {} long"),
        ("minItems", "of at least {} entries"),
        ("maxItems", "of at most {} entries"),
    )
    if "minItems" in schema and schema.get("minItems") == schema.get("maxItems"):
        return f"a list of {schema['minItems']} entries"
    said = [text.format(schema[bound]) for bound, text in bounds if bound in schema]
    return " ".join([nouns.get(str(schema.get("type")), "as the schema says"), " and ".join(said)]).strip()


def _number_meant(text: str, whole: bool) -> str | None:
    """
    :param whole: whether a whole number is asked for.
    :return: how to write in YAML the number that ``text`` looks like
    """
    if len(text) > 40 or not re.fullmatch(r"\s*[-+]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", text):
        return None
    number = float(text.strip())  # float itself does not strip all that is space
    if not math.isfinite(number):
        return None
    if whole and number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    mantissa, e, exponent = repr(number).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"
