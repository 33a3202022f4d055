"""
The paper's claims, each a predicate over the tables, and what the results say of it.

A claim compares numbers of the tables (:mod:`orbitgp_paper.analysis.references`) with each other or with constants. Where
the left side has a pattern, the comparison must hold for all rows that fit, and the same pattern on the right stands
for the same value. Nothing here is ever evaluated as code.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from orbitgp import files
from orbitgp_paper import config as configuration
from orbitgp_paper.analysis.formats import beside, markdown, markdown_table, write_csv
from orbitgp_paper.analysis.references import ClaimError, NotThere, Reference, Tables, decided, look_up, matching, parse

COLUMNS = ("claim", "where", "verdict", "evidence", "reading")
VERDICTS = {"holds": "hold", "fails": "fail", "not measured": "not measured"}  # and how many of them are called

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: how the evidence writes a sign, and what it writes where the comparison fails
WRITTEN = {"<": ("<", "≥"), "<=": ("≤", ">"), ">": (">", "≤"), ">=": ("≥", "<")}

#: keys that say what a claim asks for; each has exactly one of them
FORMS = ("all", "any", "same_best", "unmeasured")
ALLOWED = ("id", "claim", "where", "reading", "given", *FORMS)

#: a comparison of more rows than these is summed up in the evidence
MANY = 4


@dataclass(frozen=True)
class Side:
    """One side of a comparison: ``times`` · number + ``plus``, or ``plus`` alone."""

    reference: Reference | None
    times: float = 1.0
    plus: float = 0.0


@dataclass(frozen=True)
class Number:
    """What a side comes to, how the evidence says it, and the standard error of a mean over seeds (NaN: not known)."""

    value: float
    said: str
    error: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Whether something holds (None: not measured), why, and by how much of the larger number."""

    holds: bool | None
    evidence: str
    slack: float = math.inf


def read_claims(path: Path) -> list[dict[str, Any]]:
    """
    :param path: of ``claims.yaml``.
    :return: the claims, each looked at.
    """
    claims = configuration.read_yaml(path)
    try:
        check_claims(claims)
    except ClaimError as error:
        raise ClaimError(f"{path}: {error}") from None
    return list(claims)


def check_claims(claims: Any) -> None:
    """Raises :class:`ClaimError` where a claim is not one."""
    if not isinstance(claims, list):
        raise ClaimError(f"the claims must be a list, not {type(claims).__name__}")
    seen = set()
    for i, claim in enumerate(claims):
        if not isinstance(claim, Mapping):
            raise ClaimError(f"claim {i} must be a block of keys, not {claim!r}")
        name = str(claim.get("id", f"claim {i}"))
        if unknown := [str(key) for key in claim if key not in ALLOWED]:
            raise ClaimError(f"{name} has the unknown keys {', '.join(unknown)}; allowed are {', '.join(ALLOWED)}")
        for key in ("id", "claim", "where", *({"reading", "unmeasured"} & set(claim))):
            if not isinstance(claim.get(key), str) or not claim[key].strip():
                raise ClaimError(f"{name}.{key} must be text, got {claim.get(key)!r}")
        if name in seen:
            raise ClaimError(f"{name} stands twice")
        seen.add(name)
        forms = [form for form in FORMS if form in claim]
        if len(forms) != 1:
            raise ClaimError(f"{name} must have exactly one of {', '.join(FORMS)}, got {', '.join(forms) or 'none'}")
        for key in {"all", "any", "given"} & set(claim):
            _check_comparisons(f"{name}.{key}", claim[key])
        if "same_best" in claim:
            _same_rows(f"{name}.same_best", claim["same_best"])


def judge(claims: Sequence[Mapping[str, Any]], tables: Tables) -> pd.DataFrame:
    """
    :param claims: as :func:`read_claims` makes them.
    :param tables: by name. What is not there, or is blank, was not measured.
    :return: a row for each claim: claim, where, verdict (holds, fails or not measured), evidence, reading.
    """
    check_claims(claims)
    rows = []
    for claim in claims:
        try:
            verdict, evidence = _verdict(claim, tables)
        except ClaimError as error:
            raise ClaimError(f"{claim['id']}: {error}") from None
        rows.append([claim["claim"], claim["where"], verdict, evidence, claim.get("reading", "")])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write_claims(verdicts: pd.DataFrame, stem: Path, caption: str) -> list[Path]:
    """
    :param verdicts: as :func:`judge` makes them.
    :param stem: path of the files without their endings.
    :return: the files, ``.csv`` and ``.md``.
    """
    stem = Path(stem)
    counts = ", ".join(f"{(verdicts['verdict'] == verdict).sum()} {many}" for verdict, many in VERDICTS.items())
    rows = [[str(cell) for cell in row] for row in verdicts[list(COLUMNS)].itertuples(index=False, name=None)]
    text = f"{markdown(caption)} Of {len(verdicts)} claims: {counts}.\n\n"
    write_csv(verdicts[list(COLUMNS)], beside(stem, ".csv"))
    files.write_text(beside(stem, ".md"), text + markdown_table(COLUMNS, rows, [False] * len(COLUMNS)))
    return [beside(stem, ".csv"), beside(stem, ".md")]


def _check_comparisons(at: str, entries: Any) -> None:
    if not isinstance(entries, list) or not entries:
        raise ClaimError(f"{at} must be a list of comparisons, got {entries!r}")
    for i, entry in enumerate(entries):
        _sides(f"{at}.{i}", entry)


def _sides(at: str, entry: Any) -> tuple[Side, str, Side]:
    """:return: left, sign and right of a comparison"""
    if not isinstance(entry, list | tuple) or len(entry) != 3:
        raise ClaimError(f"{at} must be [number, sign, number], got {entry!r}")
    left, sign, right = entry
    if not isinstance(sign, str) or sign not in COMPARE:
        raise ClaimError(f"{at}: the sign must be one of {', '.join(COMPARE)}, got {sign!r}")
    if not isinstance(left, str | Mapping):
        raise ClaimError(f"{at} must begin with table/row/column, got {left!r}")
    return _side(at, left), sign, _side(at, right)


def _side(at: str, value: Any) -> Side:
    if isinstance(value, str):
        return Side(parse(at, value))
    if isinstance(value, Mapping):
        if "of" not in value or set(value) - {"of", "times", "plus"}:
            raise ClaimError(f"{at}: a number in a block has the keys of, times and plus, got {dict(value)!r}")
        times, plus = _constant(at, value.get("times", 1.0)), _constant(at, value.get("plus", 0.0))
        return Side(parse(at, value["of"]), times, plus)
    return Side(None, 0.0, _constant(at, value))


def _constant(at: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ClaimError(f"{at}: expected table/row/column or a finite number, got {value!r}")
    return float(value)


def _same_rows(at: str, block: Any) -> tuple[Reference, Reference]:
    """:return: the two columns of the same rows that ``same_best`` speaks of"""
    if not isinstance(block, Mapping) or set(block) != {"lowest", "highest"}:
        raise ClaimError(f"{at} must have the keys lowest and highest, got {block!r}")
    lowest, highest = parse(f"{at}.lowest", block["lowest"]), parse(f"{at}.highest", block["highest"])
    if (lowest.table, lowest.row) != (highest.table, highest.row):
        raise ClaimError(f"{at} must name the same rows twice, got {lowest} and {highest}")
    return lowest, highest


def _verdict(claim: Mapping[str, Any], tables: Tables) -> tuple[str, str]:
    """:return: verdict and evidence"""
    if "unmeasured" in claim:
        return "not measured", claim["unmeasured"]
    if "same_best" in claim:
        outcomes = [_same_best(*_same_rows("same_best", claim["same_best"]), tables)]
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
    left, sign, right = _sides("", entry)
    assert left.reference is not None
    try:
        rows = matching(left.reference, tables)
    except NotThere as missing:
        return Outcome(None, str(missing))
    outcomes = []
    for row in rows:
        other = right.reference and decided(right.reference, left.reference, row)
        own = Side(left.reference.at(row), left.times, left.plus)
        outcomes.append(_compare(own, sign, Side(other, right.times, right.plus), tables))
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


def _compare(left: Side, sign: str, right: Side, tables: Tables) -> Outcome:
    try:
        first, second = _value(left, tables), _value(right, tables)
    except NotThere as missing:
        return Outcome(None, str(missing))
    a, b = first.value, second.value
    holds = COMPARE[sign](a, b)
    scale = max(abs(a), abs(b)) or 1.0
    slack = (b - a if sign.startswith("<") else a - b) / scale if math.isfinite(scale) else math.inf * (2 * holds - 1)
    said = f"{first.said} {WRITTEN[sign][0 if holds else 1]} {second.said}{_near(first, second)}"
    return Outcome(holds, said, slack)


def _near(first: Number, second: Number) -> str:
    """Of means whose order other seeds may well turn round: the verdict stays, and the reader is told."""
    error = math.hypot(first.error, second.error)
    return " (by less than two standard errors)" if abs(first.value - second.value) < 2 * error else ""


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
        f"of {len(rows)}, the lowest is {low[best].said}{_near(low[best], low[next_best])}, "
        f"the highest {high[chosen].said}{_near(high[chosen], high[next_chosen])}"
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
    return Number(value, said, abs(side.times) * std / math.sqrt(seeds) if seeds else 0.0)


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
