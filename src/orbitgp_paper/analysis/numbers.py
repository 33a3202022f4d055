"""
Numbers of the tables as a claim compares them, each in two forms: for a machine, ``mnist/affine/error_mean 1.24``, and
as a person would say it, “affine: error 1.24 ± 0.02 %”.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from orbitgp_paper.analysis.formats import heading, read_number
from orbitgp_paper.analysis.references import NotThere, Reference, Tables, look_up, parse

SIDE_KEYS = ("of", "times", "plus", "stds")

#: what a column is called in a sentence, where its heading needs the table around it
WORDS = {
    "angle_min": "least angle, °",
    "angle_max": "largest angle, °",
    "error_std": "standard deviation of the error over seeds, %",
    "paper_error": "the paper's error, %",
    "paper_std": "the paper's standard deviation, %",
    "std": "standard deviation",
    "z": "bias in standard errors",
    "noise": "inferred noise",
    "rate": "true, %",
    "rank_mean": "rank correlation of bound and error",
    "growth": "exponent of the growth of kernel evaluations",
}
WIDTH = "orbit.width."
COUNTS = ("inducing", "samples")  # keys whose number comes first: 80 inducing points


@dataclass(frozen=True)
class Side:
    """One side of a comparison: ``times`` · number + ``stds`` · its standard deviation + ``plus``, or a constant."""

    reference: Reference | None
    times: float = 1.0
    plus: float = 0.0
    stds: float = 0.0


@dataclass(frozen=True)
class Number:
    """
    A side's value, and its two forms: ``machine``; and in words ``name`` (of what), ``column`` (which quantity) and
    ``text`` (the number with its unit). One that was computed from another has a ``recipe``, “0.8 × 2.08 ± 0.02 %”.

    A mean also has the ``count`` of its seeds, or ``draws``, and their ``std`` (NaN: not known). A number that is no
    mean is as exact as a constant. A limit that already allows for noise is not ``tested`` for a tie.
    """

    value: float
    machine: str
    name: str
    column: str
    text: str
    count: int = 0
    std: float = math.nan
    recipe: str = ""
    draws: bool = False
    tested: bool = True


def read_side(value: Any) -> Side:
    """A side as a claim writes it: ``table/row/column``, a block with ``of``, or a constant."""
    if isinstance(value, str):
        return Side(parse(value))
    if isinstance(value, Mapping):
        if unknown := sorted(set(value) - set(SIDE_KEYS)):
            raise ValueError(f"a side of a comparison has no {unknown[0]!r}, only {', '.join(SIDE_KEYS)}")
        numbers = (float(value.get(key, default)) for key, default in (("times", 1.0), ("plus", 0.0), ("stds", 0.0)))
        return Side(parse(value["of"]), *numbers)
    return Side(None, 0.0, float(value))


def find(side: Side, tables: Tables, against: str = "") -> Number:
    """
    :param against: the column that it is compared with, which gives limits their unit and decimals.
    :return: the side's number; raises :class:`NotThere` if it was not measured.
    """
    if side.reference is None:
        return Number(side.plus, _say(side.plus), "", "", with_unit(against, side.plus))
    row, column = look_up(side.reference, tables), side.reference.column
    number = float(row[column])
    if math.isnan(number):
        raise NotThere(f"{side.reference} is blank{_diverged(row)}")
    count, std = _spread(column, row)
    value = side.times * number + side.plus + (side.stds * std if side.stds else 0.0)
    machine = f"{side.reference} {_say(number)}{_say_spread(row, count, std)}{_diverged(row)}"
    text, recipe = _shown(column, number, std, row) + _diverged(row), ""
    if side != Side(side.reference):
        of = text if column == against else f"{column_words(column)} {text}"
        machine, recipe = f"{_recipe(side, machine)} = {_say(value)}", _recipe(side, of)
        text = with_unit(against or column, value)
    return Number(
        value,
        machine,
        row_name(side.reference, row),
        column,
        text,
        count,
        abs(side.times) * std,
        recipe,
        draws="n_draws" in row,
        tested=side.stds == 0.0,
    )


def p_value(first: Number, second: Number) -> float | None:
    """
    The p-value of Welch's t test that two means are equal; against an exact number, of the one-sample t test. None if
    there is none: neither side is a mean, or one is of a single seed or without its deviation.
    """
    means = [number for number in (first, second) if number.count]
    known = all(number.count > 1 and math.isfinite(number.std) for number in means)
    if not (known and first.tested and second.tested) or not any(number.std > 0.0 for number in means):
        return None
    from scipy.stats import ttest_ind_from_stats  # here, as it takes a second to load, and tables do without

    sides = [
        (number.value, number.std, number.count) if number.count else (number.value, 0.0, 2)
        for number in (first, second)
    ]
    return float(ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue)


def row_name(reference: Reference, row: pd.Series) -> str:
    """What a row is called in a sentence: its label, or the values of its keys."""
    labelled = "label" in row and isinstance(row["label"], str)
    keys = [key for key in reference.keys if not (labelled and key in ("variant", "experiment", "statement"))]
    parts = [row["label"]] if labelled else []
    if not pd.isna(row.get("alpha_true", math.nan)):
        parts.append(f"±{row['alpha_true']:.0f}°")
    for key in keys:
        value = row[key]
        if pd.api.types.is_bool(value):
            parts += [key] if value else []
        elif isinstance(value, str):
            parts.append(value if value.startswith("k_") else value.replace("_", " "))
        elif key in COUNTS:
            parts.append(f"{read_number(key, value)} {heading(key)}")
        else:
            parts.append(f"{heading(key)} {read_number(key, value)}")
    return ", ".join(parts)


def column_words(column: str) -> str:
    """What a column is called in a sentence, without its unit."""
    return _words_and_unit(column)[0]


def with_unit(column: str, value: float, std: float = math.nan) -> str:
    """A number with its spread and its unit, with as many decimals as its table has."""
    if not column:
        return _say(value)
    base, unit = column.removesuffix("_mean"), _words_and_unit(column)[1]
    spread = "" if math.isnan(std) else f" ± {read_number(base, std, value)}"
    return f"{read_number(base, value, value)}{spread}{unit}".replace("-", "−")


def _shown(column: str, value: float, std: float, row: pd.Series) -> str:
    if "n_draws" in row:
        among = "" if "in_figure" not in row else f", the figure's {'' if row['in_figure'] else 'not '}among them"
        return f"{with_unit(column, value)} of {int(row['n_draws'])} draws{among}"
    return with_unit(column, value, std)


def _words_and_unit(column: str) -> tuple[str, str]:
    if column.startswith(WIDTH):
        return f"width of {column.removeprefix(WIDTH)}", ""
    words, _, unit = (WORDS.get(column) or heading(column.removesuffix("_mean"))).partition(", ")
    return words, unit if unit in ("", "°") else f" {unit}"


def _recipe(side: Side, of: str) -> str:
    """How a limit was made: “0.8 × 2.08 ± 0.02 %”."""
    times = f"{_say(side.times)} × " if side.times != 1.0 else ""
    for amount, what in ((side.stds, " standard deviations"), (side.plus, "")):
        of += f" {'+' if amount > 0 else '−'} {_say(abs(amount))}{what}" if amount else ""
    return times + of


def _say(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) and abs(number) >= 10_000 else f"{number:.4g}"


def _spread(column: str, row: pd.Series) -> tuple[int, float]:
    """:return: over how many a mean is taken (0: it is none), and the standard deviation beside it (NaN: none)"""
    if column == "paper_error":  # the paper does not say over how many
        return 0, float(row.get("paper_std", math.nan))
    if f"{column}_std_error" in row and "n_draws" in row:
        count = int(row["n_draws"])
        return count, float(row[f"{column}_std_error"]) * math.sqrt(count)
    if not column.endswith("_mean") or "n_seeds" not in row:
        return 0, math.nan
    return int(row["n_seeds"]), float(row.get(f"{column.removesuffix('_mean')}_std", math.nan))


def _say_spread(row: pd.Series, count: int, std: float) -> str:
    if not count:
        return ""
    what = "draw" if "n_draws" in row else "seed"
    if count < 2:
        return f" (one {what})"
    if math.isnan(std):
        return f" ({count} {what}s)"
    return f" ± {std:,.0f} ({count} {what}s)" if std >= 10 else f" ± {std:.2g} ({count} {what}s)"


def _diverged(row: pd.Series) -> str:
    count = row.get("n_diverged", 0)
    return f" ({int(count)} of {int(row['n_seeds'])} diverged)" if count > 0 else ""
