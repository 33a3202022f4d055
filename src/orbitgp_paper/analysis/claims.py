"""
The paper's claims, each a predicate over the tables, and what the results say of it.

A claim compares numbers of the tables (:mod:`orbitgp_paper.analysis.references`) with each other or with constants.
Where the left side has a pattern, the comparison must hold for all rows that fit, and the same pattern on the right
stands for the same value. Nothing here is ever evaluated as code.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import ttest_ind_from_stats

from orbitgp import files
from orbitgp_paper.analysis.formats import beside, markdown, markdown_table, write_csv
from orbitgp_paper.analysis.references import NotThere, Reference, Tables, decided, look_up, matching, parse
from orbitgp_paper.yaml_files import read_yaml

COLUMNS = ("claim", "where", "verdict", "evidence", "reading")
VERDICTS = {"holds": "hold", "fails": "fail", "not measured": "not measured"}  # and how many of them are called

#: each sign with its comparison, how the evidence writes it, and what it writes where the comparison fails
SIGNS: dict[str, tuple[Callable[[float, float], bool], str, str]] = {
    "<": (operator.lt, "<", "≥"),
    "<=": (operator.le, "≤", ">"),
    ">": (operator.gt, ">", "≤"),
    ">=": (operator.ge, "≥", "<"),
}

MANY = 4  # a comparison of more rows than these is summed up in the evidence
TIE = 0.05  # means whose difference has a larger p-value are called a tie


@dataclass(frozen=True)
class Side:
    """One side of a comparison: ``times`` · number + ``plus``, or ``plus`` alone."""

    reference: Reference | None
    times: float = 1.0
    plus: float = 0.0


@dataclass(frozen=True)
class Number:
    """
    A side's value and how the evidence says it. Of a mean over seeds also their number and their standard deviation
    (NaN: not known); a number that is no mean is as exact as a constant.
    """

    value: float
    said: str
    seeds: int = 2
    std: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Whether something holds (None: not measured), why, and by how much of the larger number."""

    holds: bool | None
    evidence: str
    slack: float = math.inf


def read_claims(path: Path) -> list[dict[str, Any]]:
    """Reads ``claims.yaml``, whose head says what a claim is made of."""
    return list(read_yaml(path))


def judge(claims: Sequence[Mapping[str, Any]], tables: Tables) -> pd.DataFrame:
    """
    :param claims: as :func:`read_claims` makes them.
    :param tables: by name. What is not there, or is blank, was not measured.
    :return: a row for each claim: claim, where, verdict (holds, fails or not measured), evidence, reading.
    """
    rows = []
    for claim in claims:
        try:
            verdict, evidence = _verdict(claim, tables)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the claim {claim['id']} cannot be judged: {error}") from error
        rows.append([claim["claim"], claim["where"], verdict, evidence, claim.get("reading", "")])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write_claims(verdicts: pd.DataFrame, stem: Path, caption: str) -> list[Path]:
    """
    :param verdicts: as :func:`judge` makes them.
    :param stem: path of the files without their endings.
    :return: the files, ``.csv`` and ``.md``.
    """
    counts = ", ".join(f"{(verdicts['verdict'] == verdict).sum()} {many}" for verdict, many in VERDICTS.items())
    rows = [[str(cell) for cell in row] for row in verdicts.itertuples(index=False, name=None)]
    text = f"{markdown(caption)} Of {len(verdicts)} claims: {counts}.\n\n"
    write_csv(verdicts, beside(stem, ".csv"))
    files.write_text(beside(stem, ".md"), text + markdown_table(COLUMNS, rows, [False] * len(COLUMNS)))
    return [beside(stem, ".csv"), beside(stem, ".md")]


def _verdict(claim: Mapping[str, Any], tables: Tables) -> tuple[str, str]:
    """:return: verdict and evidence"""
    if "unmeasured" in claim:
        return "not measured", claim["unmeasured"]
    if "same_best" in claim:
        ends = claim["same_best"]
        outcomes = [_same_best(parse(ends["lowest"]), parse(ends["highest"]), tables)]
    else:
        outcomes = [_outcome(entry, tables) for entry in claim["all" if "all" in claim else "any"]]
    evidence = "; ".join(outcome.evidence for outcome in outcomes)
    needs = [_outcome(entry, tables) for entry in claim.get("given", [])]
    if unmet := [need.evidence for need in needs if not need.holds]:
        return "not measured", f"what it is about was not run: {'; '.join(unmet)} (here: {evidence})"
    found = [outcome.holds for outcome in outcomes]
    if "any" in claim and True in found:
        return "holds", evidence
    if None in found:
        return "not measured", evidence
    return ("fails" if False in found else "holds"), evidence


def _outcome(entry: Any, tables: Tables) -> Outcome:
    """:return: that of one comparison, for all rows that it speaks of"""
    left, right = _side(entry[0]), _side(entry[2])
    assert left.reference is not None
    try:
        rows = matching(left.reference, tables)
    except NotThere as missing:
        return Outcome(None, str(missing))
    outcomes = []
    for row in rows:
        other = right.reference and decided(right.reference, left.reference, row)
        own = Side(left.reference.at(row), left.times, left.plus)
        outcomes.append(_compare(own, entry[1], Side(other, right.times, right.plus), tables))
    return _together(outcomes)


def _together(outcomes: Sequence[Outcome]) -> Outcome:
    """:return: what several outcomes say; of many, the one that decides"""
    missing = [outcome for outcome in outcomes if outcome.holds is None]
    if missing:
        return Outcome(None, "; ".join(outcome.evidence for outcome in missing[:MANY]))
    held = sum(bool(outcome.holds) for outcome in outcomes)
    all_held = held == len(outcomes)
    if len(outcomes) <= MANY:
        return Outcome(all_held, "; ".join(outcome.evidence for outcome in outcomes))
    nearest = min(outcomes, key=lambda outcome: outcome.slack)
    which = "the nearest to failing" if all_held else "the worst"
    return Outcome(all_held, f"true of {held} among {len(outcomes)}, {which}: {nearest.evidence}")


def _side(value: Any) -> Side:
    if isinstance(value, str):
        return Side(parse(value))
    if isinstance(value, Mapping):
        return Side(parse(value["of"]), float(value.get("times", 1.0)), float(value.get("plus", 0.0)))
    return Side(None, 0.0, float(value))


def _compare(left: Side, sign: str, right: Side, tables: Tables) -> Outcome:
    try:
        first, second = _value(left, tables), _value(right, tables)
    except NotThere as missing:
        return Outcome(None, str(missing))
    a, b = first.value, second.value
    compare, written, opposite = SIGNS[sign]
    holds = compare(a, b)
    scale = max(abs(a), abs(b)) or 1.0
    slack = (b - a if sign.startswith("<") else a - b) / scale if math.isfinite(scale) else math.inf * (2 * holds - 1)
    said = f"{first.said} {written if holds else opposite} {second.said}{_tie(first, second)}"
    return Outcome(holds, said, slack)


def _tie(first: Number, second: Number) -> str:
    """
    Of means whose order other seeds may well turn round, by Welch's t test: the verdict stays, and the reader is told.
    Beside a constant, whose deviation is 0, it is the t test of one sample.
    """
    known = min(first.seeds, second.seeds) >= 2 and math.isfinite(first.std + second.std)
    if not known or first.std == second.std == 0.0:
        return ""
    p = ttest_ind_from_stats(
        first.value, first.std, first.seeds, second.value, second.std, second.seeds, equal_var=False
    ).pvalue
    return f" (a tie: Welch's t, p = {p:.2g})" if p > TIE else ""


def _same_best(lowest: Reference, highest: Reference, tables: Tables) -> Outcome:
    """Whether the row with the lowest of one number has the highest of the other."""
    try:
        rows = matching(lowest, tables)
        if len(rows) < 2:
            raise NotThere(f"{lowest} is {len(rows)} row; to choose takes two")
        low, high = ({row: _value(Side(of.at(row)), tables) for row in rows} for of in (lowest, highest))
    except NotThere as missing:
        return Outcome(None, str(missing))
    best, next_best = sorted(low, key=lambda row: low[row].value)[:2]
    chosen, next_chosen = sorted(high, key=lambda row: -high[row].value)[:2]
    said = (
        f"of {len(rows)}, the lowest is {low[best].said}{_tie(low[best], low[next_best])}, "
        f"the highest {high[chosen].said}{_tie(high[chosen], high[next_chosen])}"
    )
    return Outcome(best == chosen, said)


def _value(side: Side, tables: Tables) -> Number:
    if side.reference is None:
        return Number(side.plus, _say(side.plus))
    row = look_up(side.reference, tables)
    number = float(row[side.reference.column])
    if math.isnan(number):
        raise NotThere(f"{side.reference} is blank{_diverged(row)}")
    seeds, std = _spread(side.reference.column, row)
    said = f"{side.reference} {_say(number)}{_say_spread(seeds, std)}{_diverged(row)}"
    value = side.times * number + side.plus
    if side.times != 1.0:
        said = f"{_say(side.times)} × {said}"
    if side.plus != 0.0:
        said += f" {'+' if side.plus > 0 else '−'} {_say(abs(side.plus))}"
    said = said if value == number else f"{said} = {_say(value)}"
    return Number(value, said, seeds, abs(side.times) * std) if seeds else Number(value, said)


def _say(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) and abs(number) >= 10_000 else f"{number:.4g}"


def _spread(column: str, row: pd.Series) -> tuple[int, float]:
    """:return: over how many seeds a mean is taken (0: it is none), and the standard deviation beside it (NaN: none)"""
    if not column.endswith("_mean") or "n_seeds" not in row:
        return 0, math.nan
    return int(row["n_seeds"]), float(row.get(f"{column.removesuffix('_mean')}_std", math.nan))


def _say_spread(seeds: int, std: float) -> str:
    if seeds < 2:
        return " (one seed)" if seeds else ""
    if math.isnan(std):
        return f" ({seeds} seeds)"
    return f" ± {std:,.0f} ({seeds} seeds)" if std >= 10 else f" ± {std:.2g} ({seeds} seeds)"


def _diverged(row: pd.Series) -> str:
    count = row.get("n_diverged", 0)
    return f" ({int(count)} of {int(row['n_seeds'])} diverged)" if count > 0 else ""
