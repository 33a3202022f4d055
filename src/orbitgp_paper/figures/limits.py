"""Limits and ticks of axes, for curves whose beginnings dwarf the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

LATER = 0.2  # where the early part of training ends, as a fraction of its steps
ROOM = 2.5  # the whole is shown if it takes no more than so many times the span of the later part
FALL = 10.0  # values farther from the middle half of their curve than so many times its span do not stretch the axis
GROTESQUE = 200.0  # nor do those farther from the bulk of all curves than so many times its span
PAD = 0.06
PLAIN = (1e-3, 1e4)  # numbers on logarithmic axes that are written without a power of ten


def finite(frame: pd.DataFrame, numbers: Sequence[str]) -> pd.DataFrame:
    """A copy of a frame, in which what is not finite in these columns is NaN."""
    copy = frame.copy()
    for name in numbers:
        values = pd.to_numeric(frame[name]).to_numpy(dtype=np.float64, na_value=np.nan)
        copy[name] = np.where(np.isfinite(values), values, np.nan)
    return copy


def window(steps: np.ndarray, values: np.ndarray, *, log: bool = False) -> tuple[float, float]:
    """
    Limits around all values, or around those of the later part of training where the early ones would dwarf them.

    :param steps: [T]
    :param values: one row a curve, [C, T]; NaN where there is none.
    :param log: whether the axis is logarithmic; only values above 0 count then.
    """
    forward: Callable[[np.ndarray], np.ndarray] = np.log10 if log else np.asarray
    usable = np.isfinite(values) & (values > 0 if log else True)
    ends = np.where(usable, steps, -np.inf).max(axis=1, keepdims=True)  # each curve's own: some may be longer runs
    late = usable & (steps >= LATER * ends)
    own = [forward(row[chosen]) for row, chosen in zip(values, late, strict=True) if chosen.any()]
    whole, part = forward(values[usable]), _bulk(np.concatenate([_without_falls(row) for row in own]))
    full_span, span = np.ptp(whole), np.ptp(part)
    shown = whole if full_span <= ROOM * span else part
    low, high = float(shown.min()), float(shown.max())
    pad = PAD * (high - low) or (0.1 if log else max(abs(low) * 0.05, 1e-12))
    low, high = low - pad, high + pad
    return (10**low, 10**high) if log else (low, high)


def _without_falls(values: np.ndarray) -> np.ndarray:
    """A curve's later values, with the median in place of those of a fall from which it came back."""
    first, middle, last = np.quantile(values, [0.25, 0.5, 0.75])
    outside = np.maximum(first - values, values - last)
    return np.where((outside <= FALL * (last - first)) | (first == last), values, middle)


def _bulk(values: np.ndarray) -> np.ndarray:
    """Values without those that a grotesque gap parts from the middle one: a diverged run's 1e19, say."""
    ordered = np.sort(values)
    first, last = len(ordered) // 4, len(ordered) - 1 - len(ordered) // 4  # the middle half is never grotesque

    def near(place: int) -> bool:
        nearest = np.clip(ordered[place], ordered[first], ordered[last])
        span = ordered[last] - ordered[first]
        return span == 0 or abs(ordered[place] - nearest) <= GROTESQUE * span

    while first > 0 and near(first - 1):
        first -= 1
    while last < len(ordered) - 1 and near(last + 1):
        last += 1
    return ordered[first : last + 1]


def logarithmic(ax: Axes, low: float, high: float) -> None:
    """A logarithmic vertical axis with numbers at a handful of ticks, however short or long it is."""
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(FixedLocator(log_ticks(low, high)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(_power))


def log_ticks(low: float, high: float) -> list[float]:
    """
    :return: three to seven round numbers between ``low`` and ``high``, where there are such; two powers of ten are
        enough where other numbers would be long.
    """
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    candidates: Sequence[Sequence[float]] = ([1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7])
    for digits in candidates:
        ticks = [float(f"{decade * digit:.6g}") for decade in decades for digit in digits]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= (2 if digits == [1] and (low < PLAIN[0] or high > PLAIN[1]) else 3):
            return inside[:: -(-len(inside) // 7)]
    between = [float(f"{tick:.6g}") for tick in MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)]
    return [tick for tick in between if low <= tick <= high]


def plain(value: float) -> str:
    """A number with up to six digits and a proper minus."""
    return f"{value:.6g}".replace("-", "−")


def short(value: float, _: int | None = None) -> str:
    """A number of steps or nats with three digits: 400, 2k, −1.5k, 2.5M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1e9:
            return f"{value / unit:.3g}{letter}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def _power(value: float, _: int | None = None) -> str:
    """Plain where that is short, else with a power of ten."""
    if PLAIN[0] <= value <= PLAIN[1]:
        return plain(value)
    digits, exponent = f"{value:.3e}".split("e")
    factor = f"{float(digits):g}"
    return f"$10^{{{int(exponent)}}}$" if factor == "1" else rf"${factor}\cdot10^{{{int(exponent)}}}$"
