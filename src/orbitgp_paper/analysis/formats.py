"""Tables as text: CSV with every digit, Markdown and LaTeX to be read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from orbitgp import files

HEADINGS = {
    "alpha_true": "true angle, °",
    "start": "start, °",
    "angle": "angle, °",
    "angle_min": "least",
    "angle_max": "largest",
    "paper": "paper's error, %",
    "error": "error, %",
    "test_error": "error, %",
    "nll": "test NLL",
    "test_nll": "test NLL",
    "class_nll": "NLL of the class",
    "calibration_error": "calibration error, %",
    "elbo": "bound, nats",
    "elbo_std_error": "its std. error",
    "log_marginal_likelihood": "log p(y), nats",
    "seen": "first half",
    "first": "log p(first half), nats",
    "second": "log p(second half, given the first), nats",
    "gap": "gap, nats",
    "train_rmse": "training RMSE",
    "test_rmse": "test RMSE",
    "rmse": "RMSE of the second half",
    "std_ratio": "its std. deviation over the prior's",
    "n_seeds": "seeds",
    "n_diverged": "diverged",
    "train_size": "training images",
    "test_size": "test images",
    "inducing": "inducing points",
    "probability": "P(deviation² > L)",
    "probability_6": "P for 6s",
    "probability_9": "P for 9s",
    "bound": "lemma's bound",
    "classes_above_bound": "classes above the bound",
    "threshold": "L",
    "bias_std_error": "its std. error",
    "z": "|bias| in std. errors",
    "std": "std. deviation",
    "cost": "kernel evaluations",
    "evaluations": "kernel evaluations",
    "growth": "their growth with size, exponent",
    "rate": "of all draws, %",
    "rate_std_error": "its std. error",
    "n_draws": "draws",
    "in_figure": "in the figure's draw",
    "rank": "Spearman's ρ of bound and error",
    "late_rise": "last tenth over the one before, nats",
    "event_kinds": "which",
    "wall_s": "wall time, s",
    "peak_memory_mb": "peak memory, MB",
}
NATS = ("elbo", "elbo_std_error", "late_rise", "log_marginal_likelihood", "first", "second", "gap")
DECIMALS = {
    **dict.fromkeys(("error", "test_error", "paper", "calibration_error"), 2),
    **dict.fromkeys(("nll", "test_nll", "class_nll", "train_rmse", "test_rmse", "rmse", "std_ratio"), 3),
    **dict.fromkeys(("angle", "angle_min", "angle_max", "rate", "rate_std_error"), 1),
    **dict.fromkeys(("rank", "paper_error", "paper_std", "error_std"), 2),
    **dict.fromkeys(("alpha_true", "start", "wall_s", "peak_memory_mb", "evaluations"), 0),
    "z": 1,
}

#: what only the CSV has
HIDDEN = ("commit", "dirty", "label_text", "statement")

GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "μ": "mu"}
GREEK |= {"π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega"}
LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "°": r"$^\circ$",
    "²": r"$^2$",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    **{letter: rf"$\{name}$" for letter, name in GREEK.items()},
}


def write_table(frame: pd.DataFrame, stem: Path, caption: str) -> list[Path]:
    """
    :param frame: a row for each line; columns ``x_mean`` and ``x_std`` become one, mean ± std, in what is read.
        Columns with a dot in their name are parameters, and only the CSV has them.
    :param stem: path of the files without their endings.
    :return: the files, ``.csv``, ``.md`` and ``.tex``; the same frame is the same bytes.
    """
    texts, numeric = _shown(frame)
    head, rows = list(map(str, texts)), texts.to_numpy().tolist()
    write_csv(frame, beside(stem, ".csv"))
    files.write_text(beside(stem, ".md"), f"{markdown(caption)}\n\n{markdown_table(head, rows, numeric)}")
    files.write_text(beside(stem, ".tex"), _latex(caption, stem.name, head, rows, numeric))
    return [beside(stem, ending) for ending in (".csv", ".md", ".tex")]


def shown(frame: pd.DataFrame) -> pd.DataFrame:
    """A table as it is read: headings in words, mean ± std in one column, numbers as texts."""
    return _shown(frame)[0]


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Writes every digit; missing numbers are blank."""
    rows = ([_cell(value) for value in row] for row in frame.itertuples(index=False, name=None))
    files.write_csv(path, [str(name) for name in frame.columns], rows)


def read_table(path: Path) -> pd.DataFrame:
    """A CSV, with every digit that was written."""
    try:
        return pd.read_csv(path, float_precision="round_trip")
    except ValueError as error:  # such as a ParserError or a UnicodeDecodeError
        raise files.DamagedFile(f"{path} is not a table: {error}") from error


def heading(column: str) -> str:
    """What a column is called, with its unit after a comma."""
    return HEADINGS.get(column, column.replace("_", " "))


def read_number(column: str, value: Any, scale: Any = None) -> str:
    """
    A number as a table shows it.

    :param scale: the number that decides the number of decimals; ``value`` itself if None.
    """
    return _read(column, value, value if scale is None else scale)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool]) -> str:
    """
    :param numeric: columns to be aligned on the right.
    """
    lines = [[markdown(cell) for cell in row] for row in (head, *rows)]
    marks = ["---:" if right else "---" for right in numeric]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], marks, *lines[1:])) + "\n"


def markdown(text: str) -> str:
    """``text`` such that Markdown shows it as it stands, on one line."""
    escaped = "".join(f"\\{letter}" if letter in "\\`*[]|" else letter for letter in _one_line(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def latex(text: str) -> str:
    """``text`` such that LaTeX shows it as it stands, on one line."""
    return "".join(LATEX.get(letter, letter) for letter in _one_line(text))


def beside(stem: Path, ending: str) -> Path:
    """``stem`` with an ending, whatever dots are in its name."""
    return stem.with_name(stem.name + ending)


def _shown(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[bool]]:
    """:return: headings and texts, and which columns hold numbers"""
    head, columns, numeric = [], [], []
    for name in map(str, frame.columns):
        base = _paired(name, frame)
        if base is None or "." in name or name in HIDDEN or frame[name].isna().all():
            continue
        spread = "paper_std" if name == "paper_error" else f"{base}_std"
        spreads = frame[spread] if spread in frame and base != name else [math.nan] * len(frame)
        head.append(heading(base))
        columns.append([_with_spread(base, value, std) for value, std in zip(frame[name], spreads, strict=True)])
        numeric.append(pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name]))
    return pd.DataFrame(list(zip(*columns, strict=True)), columns=head), numeric


def _paired(name: str, frame: pd.DataFrame) -> str | None:
    """:return: what a column is called without ``_mean``; None if it is shown beside its mean"""
    if name == "paper_error":
        return "paper"
    if name == "paper_std" or (name.endswith("_std") and f"{name[:-4]}_mean" in frame):
        return None
    return name.removesuffix("_mean")


def _with_spread(column: str, value: Any, std: float) -> str:
    if pd.isna(value) or pd.isna(std):
        return _read(column, value, value)
    return f"{_read(column, value, value)} ± {_read(column, std, value)}"


def _read(column: str, value: Any, scale: Any) -> str:
    """
    :param scale: the number that decides the number of decimals.
    """
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return ""
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    if pd.api.types.is_integer(value):
        return f"{value:,}"
    if column in NATS:
        size = abs(scale)
        return f"{value:,.{0 if size >= 1000 else 1 if size >= 100 else 2}f}"
    if column in DECIMALS:
        return f"{value:,.{DECIMALS[column]}f}"
    return f"{value:.3g}"


def _latex(caption: str, label: str, head: list[str], rows: list[list[str]], numeric: list[bool]) -> str:
    """A table that is made smaller where it would not fit on a line; minus signs where numbers have hyphens."""

    def line(cells: Sequence[str], numbers: Sequence[bool]) -> str:
        signed = (cell.replace("-", "−") if number else cell for cell, number in zip(cells, numbers, strict=True))
        return "      " + " & ".join(map(latex, signed)) + r" \\"

    return "\n".join(
        [
            r"% \usepackage{booktabs, graphicx}",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{latex(caption)}}}",
            rf"  \label{{tab:{label}}}",
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"    \begin{{tabular}}{{{''.join('r' if right else 'l' for right in numeric)}}}",
            r"      \toprule",
            line(head, [False] * len(head)),
            r"      \midrule",
            *(line(row, numeric) for row in rows),
            r"      \bottomrule",
            r"    \end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def _cell(value: Any) -> Any:
    """:return: a plain Python value, blank if there is none"""
    if not isinstance(value, str) and pd.isna(value):
        return ""
    return value.item() if hasattr(value, "item") else value


def _one_line(text: str) -> str:
    return " ".join(str(text).split())
