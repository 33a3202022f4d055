"""Checks of arguments, each with an error that names the argument, its value and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """
    :param least: smallest value allowed.
    :param most: largest value allowed; None for no limit.
    :return: ``value`` as an int; a bool is refused, although Python calls it an integer.
    """
    allowed = f"an integer of at least {least}" + ("" if most is None else f" and at most {most}")
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    if int(value) < least or (most is not None and int(value) > most):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return int(value)


def number(name: str, value: Any, *, least: float, most: float = np.inf) -> float:
    """
    :return: ``value`` as a finite float in [least, most].
    """
    allowed = f"a finite number in [{least:g}, {most:g}]"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    if not np.isfinite(float(value)) or not least <= float(value) <= most:
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return float(value)


def vector(name: str, value: Any, length: int) -> np.ndarray:
    """
    :return: ``value`` as a finite float64 array [length].
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be {length} numbers, got {value!r}") from error
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, got {array}")
    return array


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """
    :return: ``value``, which is one of the ``allowed`` words.
    """
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def instance(name: str, value: Any, kind: type) -> Any:
    """
    :return: ``value``, which is an instance of ``kind``.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise TypeError(f"{name} must be {article} {kind.__name__}, got {type(value).__name__}")
    return value


def image_shape(value: Any) -> tuple[int, int, int]:
    """
    :param value: (H, W) or (H, W, C); two pixels a side at least, so that a coordinate has a scale.
    :return: (H, W, C)
    """
    if not isinstance(value, Sequence) or len(value) not in (2, 3):
        raise ValueError(f"shape must be (H, W) or (H, W, C), got {value!r}")
    height, width = (integer(f"shape[{i}]", value[i], least=2) for i in (0, 1))
    return height, width, integer("shape[2]", value[2], least=1) if len(value) == 3 else 1
