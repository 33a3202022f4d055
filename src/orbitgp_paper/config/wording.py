"""The error that every check raises, and the words that it is put in."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any


class ConfigError(Exception):
    """A configuration that cannot be used; one line that names file, key, value and what is allowed."""


def one_of(key: str, value: Any, allowed: Mapping[str, Any]) -> None:
    """Refuses a name that is none of those allowed."""
    if value not in allowed:
        close = get_close_matches(short(value).strip("'"), list(allowed), n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        raise ConfigError(f"{key} = {short(value)} must be one of {', '.join(allowed)}{meant}")


def short(value: Any) -> str:
    """:return: a value as Python writes it, cut where it is long"""
    try:
        text = repr(value)
    except ValueError:  # Python does not write out integers of thousands of digits
        text = f"a number of {value.bit_length()} bits"
    return text if len(text) <= 80 else text[:77] + "…"


def short_line(text: str) -> str:
    """:return: text on one line, cut where it is long"""
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:299] + "…"


def dotted(parts: Any) -> str:
    """:return: the keys to a value, each as it stands if it is printable and short"""
    return ".".join(_readable(str(part)) for part in parts if part != "")


def _readable(key: str) -> str:
    return key if key.isprintable() and len(key) <= 400 else short(key)
