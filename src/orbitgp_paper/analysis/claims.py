"""
Verdicts on claims. Each claim is a predicate over the tables.

A claim compares numbers of the tables (:mod:`orbitgp_paper.analysis.numbers`) with each other or with constants. Where
the left side has a pattern, the comparison must hold for all rows that fit, and the same pattern on the right stands
for the same value. Nothing here is ever evaluated as code.

============  =========================================================================================================
verdict       when
============  =========================================================================================================
holds         its comparisons are true, and other seeds would not turn them round (Welch's t)
exceeds       it does not hold, and its own ``exceeds`` is true beyond noise: the results are better than it says
tie           none of its comparisons is false beyond noise, and some are within it
fails         none of these
not measured  a number that it asks for is not there, or what it is ``given`` was not run
============  =========================================================================================================
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from orbitgp_paper.analysis.numbers import Number, Side, column_words, find, p_value, read_side
from orbitgp_paper.analysis.references import NotThere, Reference, Tables, decided, matching, parse
from orbitgp_paper.yaml_files import read_yaml

#: what a claim may have; the last five decide its verdict
KEYS = ("id", "claim", "section", "where", "figure", "reading", "cause", "given", "all", "any", "same_best", "exceeds")
NEEDED = ("id", "claim", "section", "where")
COLUMNS = ("id", "section", "where", "claim", "verdict", "evidence", "cause", "reading", "figure", "numbers")

HOLDS, EXCEEDS, TIE, FAILS, NOT_MEASURED = VERDICTS = ("holds", "exceeds", "tie", "fails", "not measured")

#: for each sign: the comparison; the sign and its opposite as printed; the words for a limit, and for two numbers
SIGNS: dict[str, tuple[Callable[[float, float], bool], str, str, str, str]] = {
    "<": (operator.lt, "<", "≥", "below", "lower"),
    "<=": (operator.le, "≤", ">", "at most", "lower"),
    ">": (operator.gt, ">", "≤", "above", "higher"),
    ">=": (operator.ge, "≥", "<", "at least", "higher"),
}

MANY = 4  # a comparison of more rows than these is summed up in the evidence
NOISE = 0.05  # means whose difference has a larger p-value are within noise of each other


class State(Enum):
    """The result of a comparison."""

    TRUE = "true"
    FALSE = "false"
    NOISE = "within noise"
    UNKNOWN = "not measured"


class Sentence(NamedTuple):
    """A sentence in parts, so that those with the same start and end can be joined."""

    start: str
    middle: str
    end: str = ""


@dataclass(frozen=True)
class Outcome:
    """
    The result of a comparison, its numbers by their names in the tables and in words, and its margin, relative to the
    larger number.
    """

    state: State
    numbers: str
    words: tuple[Sentence, ...]
    slack: float = math.inf


def read_claims(path: Path) -> list[dict[str, Any]]:
    """Reads a file of claims; the head of ``config/claims.yaml`` says what a claim is made of."""
    claims = list(read_yaml(path))
    for place, claim in enumerate(claims):
        name = claim.get("id", f"number {place + 1}")
        if missing := [key for key in NEEDED if key not in claim]:
            raise ValueError(f"{path}: the claim {name} has no {missing[0]!r}")
        if unknown := sorted(set(claim) - set(KEYS)):
            raise ValueError(f"{path}: the claim {name} has {unknown[0]!r}; expected {', '.join(KEYS)}")
        if wrong := sorted(set(claim.get("cause", {})) - set(VERDICTS)):
            raise ValueError(f"{path}: the claim {name} has a cause for {wrong[0]!r}; verdicts: {', '.join(VERDICTS)}")
    return claims


def judge(claims: Sequence[Mapping[str, Any]], tables: Tables) -> pd.DataFrame:
    """
    :param claims: as :func:`read_claims` makes them.
    :param tables: by name. What is not there, or is blank, was not measured.
    :return: a row for each claim: id, section, where, claim, verdict, evidence in words, cause of a verdict other than
        holds, reading, figure, and numbers, which is the evidence by the names that the tables have for it.
    """
    rows = []
    for claim in claims:
        try:
            verdict, outcomes = _verdict(claim, tables)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the claim {claim['id']} cannot be judged: {error}") from error
        words = _said([sentence for outcome in outcomes for sentence in outcome.words])
        numbers = "; ".join(outcome.numbers for outcome in outcomes)
        cause, reading = claim.get("cause", {}).get(verdict, ""), claim.get("reading", "")
        named = [claim[key] for key in ("id", "section", "where", "claim")]
        rows.append([*named, verdict, words, cause, reading, claim.get("figure", ""), numbers])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _verdict(claim: Mapping[str, Any], tables: Tables) -> tuple[str, list[Outcome]]:
    """:return: the verdict, and what it rests on"""
    needs = [_outcome(entry, tables) for entry in claim.get("given", [])]
    if unmet := [need for need in needs if need.state is not State.TRUE]:
        return NOT_MEASURED, unmet
    outcomes = [_outcome(entry, tables) for entry in claim.get("all", [])]
    if "same_best" in claim:
        ends = claim["same_best"]
        outcomes.append(_same_best(parse(ends["lowest"]), parse(ends["highest"]), tables))
    found = _all([outcome.state for outcome in outcomes]) if outcomes else State.TRUE
    if "any" in claim:
        options = [_outcome(entry, tables) for entry in claim["any"]]
        found = _all([found, _any([option.state for option in options])])
        outcomes += options
    if not outcomes:
        raise ValueError("it compares nothing: it needs one of all, any, same_best")
    better = [_outcome(entry, tables) for entry in claim.get("exceeds", [])]
    if found in (State.NOISE, State.FALSE) and better and _all([own.state for own in better]) is State.TRUE:
        return EXCEEDS, [outcome for outcome in outcomes if outcome.state is not State.FALSE] + better
    return {State.TRUE: HOLDS, State.NOISE: TIE, State.FALSE: FAILS, State.UNKNOWN: NOT_MEASURED}[found], outcomes


def _all(states: Sequence[State]) -> State:
    """:return: the state of their conjunction: the first of these that occurs"""
    order = (State.UNKNOWN, State.FALSE, State.NOISE, State.TRUE)
    return next(state for state in order if state in states)


def _any(states: Sequence[State]) -> State:
    order = (State.TRUE, State.UNKNOWN, State.NOISE, State.FALSE)
    return next(state for state in order if state in states)


def _outcome(entry: Any, tables: Tables) -> Outcome:
    """:return: the outcome of one comparison, over all rows that it matches"""
    left, right = read_side(entry[0]), read_side(entry[2])
    assert left.reference is not None
    try:
        rows = matching(left.reference, tables)
    except NotThere as missing:
        return _missing(missing)
    outcomes = []
    for row in rows:
        other = right.reference and decided(right.reference, left.reference, row)
        own = Side(left.reference.at(row), left.times, left.plus, left.stds)
        outcomes.append(_compare(own, entry[1], Side(other, right.times, right.plus, right.stds), tables))
    return _together(outcomes)


def _together(outcomes: Sequence[Outcome]) -> Outcome:
    """:return: what several outcomes say; of many, the one that decides"""
    state = _all([outcome.state for outcome in outcomes])
    deciding = [outcome for outcome in outcomes if outcome.state is state]
    if state is State.UNKNOWN:
        outcomes = deciding[:MANY]
    if len(outcomes) <= MANY:
        numbers = "; ".join(outcome.numbers for outcome in outcomes)
        return Outcome(state, numbers, tuple(sentence for outcome in outcomes for sentence in outcome.words))
    held = sum(outcome.state is State.TRUE for outcome in outcomes)
    nearest = min(outcomes, key=lambda outcome: outcome.slack)
    said = f"true of {held} among {len(outcomes)}, {'the nearest to failing' if state is State.TRUE else 'the worst'}: "
    return Outcome(state, said + nearest.numbers, (Sentence("", said + _said(nearest.words)),))


def _said(sentences: Sequence[Sentence]) -> str:
    """:return: all of them, those that begin and end alike as one: “angle 133.0° (a), 133.4° (b), not below 99°”"""
    said: dict[tuple[str, str], list[str]] = {}
    for start, middle, end in sentences:
        said.setdefault((start, end), []).append(middle)
    return "; ".join(start + ", ".join(dict.fromkeys(middles)) + end for (start, end), middles in said.items())


def _compare(left: Side, sign: str, right: Side, tables: Tables) -> Outcome:
    try:
        first = find(left, tables)
        second = find(right, tables, against=first.column)
    except NotThere as missing:
        return _missing(missing)
    a, b = first.value, second.value
    compare, written, opposite = SIGNS[sign][:3]
    holds, p = compare(a, b), p_value(first, second)
    state = State.NOISE if p is not None and p > NOISE else State.TRUE if holds else State.FALSE
    scale = max(abs(a), abs(b)) or 1.0
    slack = (b - a if sign.startswith("<") else a - b) / scale if math.isfinite(scale) else math.inf * (2 * holds - 1)
    tie = f" (a tie: Welch's t, p = {p:.2g})" if p is not None and state is State.NOISE else ""
    numbers = f"{first.machine} {written if holds else opposite} {second.machine}{tie}"
    return Outcome(state, numbers, (_sentence(first, sign, second, state, tie),), slack)


def _sentence(first: Number, sign: str, second: Number, state: State, tie: str) -> Sentence:
    """“error 1.24 ± 0.02 % (affine) against 2.08 ± 0.02 % (RBF)”, “angle 133.0° (from 20°), not at most 103.5°”"""
    limit, direction = SIGNS[sign][3:]
    name = second.name if second.name != first.name else ""
    words = f"{column_words(second.column)} " if second.column not in ("", first.column) else ""
    if second.name and not second.recipe:
        other = f" against {words}{second.text}" + (f" ({name})" if name else "")
        other += f", not {direction}" if state is State.FALSE else ""
    else:
        made = f" ({second.recipe}{f' of {name}' if name else ''})" if second.recipe else ""
        other = f", {'not ' if state is State.FALSE else ''}{limit} {second.text}{made}"
    if first.draws:
        return Sentence(f"{first.name}: in ", first.text, other + tie)
    return Sentence(f"{column_words(first.column)} ", f"{first.text} ({first.name})", other + tie)


def _same_best(lowest: Reference, highest: Reference, tables: Tables) -> Outcome:
    """Whether the row with the highest of one number has the lowest of the other, beyond noise."""
    try:
        rows = matching(lowest, tables)
        if len(rows) < 2:
            raise NotThere(f"{lowest} is {len(rows)} row; to choose takes two")
        low, high = ({row: find(Side(of.at(row)), tables) for row in rows} for of in (lowest, highest))
    except NotThere as missing:
        return _missing(missing)
    best, next_best = sorted(low, key=lambda row: low[row].value)[:2]
    chosen = max(high, key=lambda row: high[row].value)
    rival = next_best if chosen == best else best
    p = p_value(low[chosen], low[rival])
    state = State.NOISE if p is not None and p > NOISE else State.TRUE if chosen == best else State.FALSE
    tie = f" (a tie: Welch's t, p = {p:.2g})" if p is not None and state is State.NOISE else ""
    numbers = f"of {len(rows)}, the highest is {high[chosen].machine}; "
    numbers += f"{low[chosen].machine} against {low[rival].machine}{tie}"
    said = f"of {len(rows)}, the highest {column_words(highest.column)} is {high[chosen].text} ({high[chosen].name}); "
    said += f"its {column_words(lowest.column)} {low[chosen].text} against {low[rival].text} ({low[rival].name})"
    said += (", not lower" if state is State.FALSE else "") + tie
    return Outcome(state, numbers, (Sentence("", said),))


def _missing(missing: NotThere) -> Outcome:
    return Outcome(State.UNKNOWN, str(missing), (Sentence("", str(missing)),))
