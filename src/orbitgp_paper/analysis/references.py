"""
Numbers in the tables, by name: ``table/row/column``.

The row is the value of the table's key column, or its values with ``:`` between them where there are several
(``toy_bounds/invariant:64/elbo``). A key may be a pattern such as ``rotation_90_*``, which stands for all rows that
fit; ``min`` and ``max`` stand for the least and the largest value of a key column of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

#: columns that together name a row; ``variant`` for every table that is not here
KEYS = {
    "toy": ("model",),
    "toy_halves": ("model", "seen"),
    "toy_bounds": ("model", "inducing"),
    "toy_rates": ("statement",),
    "insensitivity": ("variant", "view", "threshold"),
    "estimators": ("estimator", "shared", "samples", "quantity"),
    "costs": ("quantity", "size"),
    "monitor": ("experiment", "variant"),
    "runs": ("experiment", "variant", "seed"),
}
EXTREMES: dict[str, Callable[[pd.Series], Any]] = {"min": pd.Series.min, "max": pd.Series.max}

Tables = Mapping[str, pd.DataFrame]


class NotThere(Exception):
    """A number that was not measured."""


@dataclass(frozen=True)
class Reference:
    """A number in a table, or several of them where a key is a pattern."""

    table: str
    row: tuple[str, ...]
    column: str

    def __str__(self) -> str:
        return f"{self.table}/{':'.join(self.row)}/{self.column}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that name the table's rows."""
        return KEYS.get(self.table, ("variant",))

    def at(self, row: tuple[str, ...]) -> Reference:
        """The same number of another row."""
        return Reference(self.table, row, self.column)


def parse(text: str) -> Reference:
    """Reads ``table/row/column``."""
    table, row, column = text.split("/")
    reference = Reference(table, tuple(row.split(":")), column)
    if len(reference.row) != len(reference.keys):
        raise ValueError(f"a row of {table} is named by {':'.join(reference.keys)}, got {row!r}")
    return reference


def matching(reference: Reference, tables: Tables) -> list[tuple[str, ...]]:
    """
    :return: the rows that the patterns fit, in the table's order; the one that is named, where there is no pattern.
        ``min`` and ``max`` are left as they are: each row has its own, and so has the other side of a comparison.
    """
    if not any(map(_is_pattern, reference.row)):
        return [reference.row]
    table = _worded(reference, _table(reference, tables))
    if not len(table):
        raise NotThere(f"there is no {reference.table}/{':'.join(reference.row)}")
    found = zip(*(table[name].map(_key) for name in reference.keys), strict=True)
    rows = (tuple(k if k in EXTREMES else own for k, own in zip(reference.row, row, strict=True)) for row in found)
    return list(dict.fromkeys(rows))


def decided(reference: Reference, by: Reference, row: tuple[str, ...]) -> Reference:
    """
    :param by: another reference, whose patterns stand for ``row`` now.
    :return: ``reference``, in which the same pattern in the same place stands for the same value.
    """
    same_place = {
        i: value for i, (key, value) in enumerate(zip(by.row, row, strict=True)) if reference.row[i : i + 1] == (key,)
    }
    keys = tuple(same_place.get(i, key) if _is_pattern(key) else key for i, key in enumerate(reference.row))
    if any(map(_is_pattern, keys)):
        raise ValueError(f"{reference} has a pattern that {by} does not have in the same place")
    return reference.at(keys)


def look_up(reference: Reference, tables: Tables) -> pd.Series:
    """The one row that the reference names, with all its columns."""
    found = _worded(reference, _table(reference, tables))
    for name, key in zip(reference.keys, reference.row, strict=True):
        if key in EXTREMES and len(found):
            found = found[found[name] == EXTREMES[key](found[name])]
    if not len(found):
        raise NotThere(f"there is no {reference.table}/{':'.join(reference.row)}")
    if len(found) > 1:
        raise ValueError(f"{reference} names {len(found)} rows")
    return found.iloc[0]


def _table(reference: Reference, tables: Tables) -> pd.DataFrame:
    """
    A table that is missing was not measured, and neither was a parameter that no run has. Any other column that is
    missing is a slip in the claim.
    """
    if reference.table not in tables:
        raise NotThere(f"there is no table {reference.table}")
    table = tables[reference.table]
    for name in (*reference.keys, reference.column):
        if name not in table and "." in name:
            raise NotThere(f"no run has {reference}")
        if name not in table:
            there = ", ".join(map(str, table.columns))
            raise ValueError(f"{reference}: the table {reference.table} has no column {name!r}, only {there}")
    column = table[reference.column]
    if (not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)) and column.notna().any():
        raise ValueError(f"{reference}: the column {reference.column} does not hold numbers")
    return table


def _worded(reference: Reference, table: pd.DataFrame) -> pd.DataFrame:
    """:return: the rows that fit all words and patterns; ``min`` and ``max`` fit any"""
    for name, key in zip(reference.keys, reference.row, strict=True):
        if key not in EXTREMES:
            table = table.loc[[_fits(value, key) for value in table[name]], :]
    return table


def _fits(value: Any, key: str) -> bool:
    return fnmatchcase(_key(value), key) if _is_pattern(key) else _key(value) == key


def _is_pattern(key: str) -> bool:
    return "*" in key


def _key(value: Any) -> str:
    """:return: the value of a key column as a reference writes it: 64, not 64.0"""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
