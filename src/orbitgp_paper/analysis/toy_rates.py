"""What the paper says of its Fig. 2, as statements that are true or false of a draw of function and points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

MUCH = 2 / 3  # “much better”: at most this part of the error
STRONG = 5.0  # nats: a Bayes factor of 150, which is called very strong evidence
SIDES = ("above", "below")

Numbers = Callable[[str, str], pd.Series]
Statement = Callable[[Numbers], pd.Series]


def _both_sides(quantity: str, compare: Callable[[pd.Series, pd.Series], pd.Series], a: str, b: str) -> Statement:
    """Whether the comparison of two models holds whichever side of the diagonal is seen first."""

    def of(numbers: Numbers) -> pd.Series:
        above, below = (compare(numbers(f"{quantity}_{side}", a), numbers(f"{quantity}_{side}", b)) for side in SIDES)
        return above & below

    return of


def _identified(numbers: Numbers) -> pd.Series:
    better = numbers("test_rmse", "invariant") < numbers("test_rmse", "plain")
    likelier = numbers(EVIDENCE, "invariant") > numbers(EVIDENCE, "plain")
    return better == likelier


def _gap(numbers: Numbers) -> pd.Series:
    """Whether the Pólya-Gamma bound is the lowest, for both models."""
    below = pd.Series(True, index=numbers(EVIDENCE, "plain").index)
    for model in ("invariant", "plain"):
        for above in ("elbo_logistic", "log_p_labels"):
            below &= numbers("elbo_polya_gamma", model) < numbers(above, model)
    return below


def _same_choice(numbers: Numbers) -> pd.Series:
    by_bound, by_evidence = (
        numbers(quantity, "invariant") > numbers(quantity, "plain") for quantity in ("elbo_polya_gamma", "log_p_labels")
    )
    return by_bound == by_evidence


EVIDENCE = "log_marginal_likelihood"
LOWER: Callable[[pd.Series, pd.Series], pd.Series] = pd.Series.lt
HIGHER: Callable[[pd.Series, pd.Series], pd.Series] = pd.Series.gt

#: for each name: the statement in words, and the draws of which it is true
STATEMENTS: dict[str, tuple[str, Statement]] = {
    "both_fit": (
        "both models' training error is below the noise that they infer",
        lambda of: (
            (of("train_rmse", "invariant") < of("noise", "invariant"))
            & (of("train_rmse", "plain") < of("noise", "plain"))
        ),
    ),
    "plain_fits_better": (
        "the plain model's training error is the lower one",
        lambda of: of("train_rmse", "plain") < of("train_rmse", "invariant"),
    ),
    "generalises": (
        "the invariant model's test error is at most two thirds of the plain model's",
        lambda of: of("test_rmse", "invariant") <= MUCH * of("test_rmse", "plain"),
    ),
    "identified": ("the model with the higher marginal likelihood has the lower test error", _identified),
    "much_higher": (
        "the invariant model's log marginal likelihood is at least five nats above the plain model's",
        lambda of: of(EVIDENCE, "invariant") >= of(EVIDENCE, "plain") + STRONG,
    ),
    "close_to_prior": (
        "the plain model keeps more than half of the prior's standard deviation on the half it has not seen",
        lambda of: (of("std_ratio_above", "plain") > 0.5) & (of("std_ratio_below", "plain") > 0.5),
    ),
    "confident": (
        "the invariant model keeps less than half of it",
        lambda of: (of("std_ratio_above", "invariant") < 0.5) & (of("std_ratio_below", "invariant") < 0.5),
    ),
    "correct": (
        "on the half it has not seen the invariant model has the lower error, whichever half that is",
        _both_sides("rmse", LOWER, "invariant", "plain"),
    ),
    "denser": (
        "the invariant model gives the other half the higher density, whichever half that is",
        _both_sides("second", HIGHER, "invariant", "plain"),
    ),
    "antisymmetric_poor": (
        "the anti-symmetric model's log marginal likelihood is at least five nats below the plain model's",
        lambda of: of(EVIDENCE, "antisymmetric") <= of(EVIDENCE, "plain") - STRONG,
    ),
    "antisymmetric_incorrect": (
        "the anti-symmetric model gives the other half the lower density, whichever half that is",
        _both_sides("second", LOWER, "antisymmetric", "plain"),
    ),
    "doubled_overconfident": (
        "with every point given twice, the plain model's 95 % interval covers less of the truth",
        lambda of: of("coverage", "doubled") < of("coverage", "plain"),
    ),
    "augmented_overconfident": (
        "with every point's mirror image added, the plain model's 95 % interval covers less than the invariant model's",
        lambda of: of("coverage", "augmented") < of("coverage", "invariant"),
    ),
    "doubled_misleads": (
        "with every point given twice the marginal likelihood is above the invariant model's, and so is the test error",
        lambda of: (
            (of(EVIDENCE, "doubled") > of(EVIDENCE, "invariant"))
            & (of("test_rmse", "doubled") > of("test_rmse", "invariant"))
        ),
    ),
    "polya_gamma_gap": (
        "of labels, the Pólya-Gamma bound is below the bound by quadrature at the same q, and below log p(y)",
        _gap,
    ),
    "polya_gamma_same_choice": (
        "of labels, the Pólya-Gamma bound prefers the model that the marginal likelihood prefers",
        _same_choice,
    ),
}


def toy_rates_table(draws: pd.DataFrame) -> pd.DataFrame:
    """
    :param draws: as :func:`orbitgp_paper.experiments.toy_draws.measure` makes it; the first draw is the figure's.
    :return: a row for each statement: statement, label (its words), rate (draws of which it is true, in per cent),
        rate_std_error, n_draws, and in_figure, whether it is true of the figure's draw.
    """
    wide = draws.pivot(index="draw", columns="model")
    rows = []
    for name, (words, statement) in STATEMENTS.items():
        true = statement(lambda quantity, model: wide[quantity, model]).to_numpy(bool)
        row = {"statement": name, "label": words, "rate": 100.0 * true.mean(), "rate_std_error": _std_error(true)}
        rows.append(row | {"n_draws": len(true), "in_figure": bool(true[0])})
    return pd.DataFrame(rows)


def _std_error(true: np.ndarray) -> float:
    """Standard error of a share, in per cent."""
    return 100.0 * float(np.std(true, ddof=1) / np.sqrt(len(true))) if len(true) > 1 else float("nan")
