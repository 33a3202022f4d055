"""Made-up results that look like real ones, and what every figure must be like."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from orbitgp.datasets import symmetric
from orbitgp_paper.figures import appendix_a, appendix_b, fig1, fig2, fig2_bound, fig3, fig4, fig5
from orbitgp_paper.figures.style import TEXT_WIDTH, paper_style, settle


def training_run(variant, label, seed, *, steps=20_000, rows=41, error=2.0, bound=450e3, alpha=None, target=None):
    """Rows of metrics.csv: an error that falls from 90 %, a bound that rises from far below."""
    generator = np.random.default_rng([seed, *variant.encode()])
    step = np.linspace(0, steps, rows).round()
    done = step / steps
    shift = 1 + 0.03 * generator.standard_normal()
    errors = error * shift * (1 + 1.5 * np.exp(-8 * done)) + 88 * np.exp(-60 * done)
    errors *= np.exp(0.03 * generator.standard_normal(rows) * (1 - 0.8 * done))
    elbo = bound - 0.4 * abs(bound) * np.exp(-7 * done) - 3e6 * (abs(bound) / 450e3) * np.exp(-70 * done)
    elbo = elbo + 0.004 * abs(bound) * generator.standard_normal(rows) * (1 - 0.7 * done)
    elbo[0] = np.nan  # there is no minibatch before the first step
    frame = pd.DataFrame(
        {
            "experiment": "some",
            "variant": variant,
            "label": label,
            "seed": seed,
            "step": step,
            "elbo": elbo,
            "test_error": np.minimum(errors, 92.0),
            "test_nll": errors / 30,
            "orbit.alpha": np.nan,
        }
    )
    if alpha is not None:
        path = target + (alpha - target) * np.exp(-5 * done) + generator.standard_normal(rows) * 0.8
        frame["orbit.alpha"] = np.clip(path, 0, 180)
    return frame


def mnist_runs(seeds=3, **options):
    """Metrics of experiment mnist."""
    ends = {"rbf": ("RBF", 2.15, 446e3), "rotation": ("rotation", 2.08, 452e3)}
    ends |= {"affine": ("all affine", 1.35, 492e3), "local": ("local deformations", 1.47, 485e3)}
    return pd.concat(
        training_run(name, label, seed, error=error, bound=bound, **options)
        for name, (label, error, bound) in ends.items()
        for seed in range(seeds)
    ).reset_index(drop=True)


def mnist_table(seeds=3):
    """What orbitgp_paper.analysis makes of the runs of experiment mnist."""
    return pd.DataFrame(
        {
            "variant": ["rbf", "rotation", "affine", "local"],
            "paper_error": [2.15, 2.08, 1.35, 1.47],
            "paper_std": [0.03, 0.06, 0.07, 0.05],
            "error_mean": [2.14, 2.05, 1.41, 1.52],
            "error_std": [0.04, 0.05, 0.03, 0.06] if seeds > 1 else [np.nan] * 4,
            "n_seeds": [seeds] * 4,
            "elbo_mean": [446e3, 452e3, 492e3, 485e3],
            "elbo_std": [1e3] * 4,
        }
    )


def rotated_runs(seeds=3):
    """Metrics of experiment rotated, with the paper's own recipe beside ours."""
    ends = {"rbf": ("RBF", 9.0, 22e3), "affine": ("affine", 4.2, 40e3), "rotation": ("rotation, learned", 3.4, 48e3)}
    ends |= {"fixed": ("rotation, fixed", 3.1, 50e3), "rotation_plain": ("rotation, Adam", 4.9, 38e3)}
    return pd.concat(
        training_run(name, label, seed, error=error, bound=bound)
        for name, (label, error, bound) in ends.items()
        for seed in range(seeds)
    ).reset_index(drop=True)


def parity_runs(seeds=1, starts=(20, 70, 150), truths=(90, 180)):
    """Metrics of experiment parity: 90 is found, 180 is under-estimated."""
    runs = []
    for truth, seed in itertools.product(truths, range(seeds)):
        run = training_run(f"rbf_{truth}", "RBF", seed, error=7 + truth / 60, bound=-14e3 - 10 * truth)
        runs.append(run.assign(alpha_true=truth))
        for start in starts:
            name = f"rotation_{truth}_from_{start}"
            target = {90: 92.0, 180: 158.0}.get(truth, truth)
            options = {"error": 2 + truth / 90, "bound": -7e3 - 10 * truth, "alpha": start, "target": target}
            runs.append(training_run(name, f"rotation from {start}°", seed, **options).assign(alpha_true=truth))
    return pd.concat(runs).reset_index(drop=True)


def toy_bounds():
    """runs/toy/bounds.csv."""
    exact = {"invariant": 1.9, "plain": -11.3}
    gaps = {"invariant": [55, 22, 3.0, 0.08, 2e-5], "plain": [900, 38, 17.0, 1.2, -1e-7]}
    return pd.DataFrame(
        [
            {"model": model, "inducing": count, "elbo": exact[model] - gap, "log_marginal_likelihood": exact[model]}
            for model in exact
            for count, gap in zip((4, 8, 16, 32, 64), gaps[model], strict=True)
        ]
    )


def insensitivity_rows(images=20):
    """The insensitivity files of four variants, one below the other."""
    scales = {"rbf": 0.0, "rotation": 0.01, "affine": 0.03, "local": 0.005}
    texts = {"rbf": "RBF", "rotation": "rotation", "affine": "all affine", "local": "local deformations"}
    rows = []
    for (variant, scale), view, label in itertools.product(scales.items(), ("prior", "posterior"), range(10)):
        square = scale * (1 + 0.1 * label + 1.5 * (label in (6, 9))) * (1 if view == "prior" else 0.4)
        for threshold in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3):
            tail = 0.0 if not square else float(np.exp(-np.sqrt(2 * threshold / square)) * 0.8)
            row = {"variant": variant, "label_text": texts[variant], "view": view, "label": label}
            row |= {"threshold": threshold, "probability": tail, "bound": min(1.0, square / threshold)}
            rows.append(row | {"expected_square": square, "images": images})
    return pd.DataFrame(rows)


def estimator_rows(repeats=200):
    """estimators.csv with the laws that theory gives the estimators."""
    generator = np.random.default_rng(0)
    powers = {"iid": -0.5, "iid_groups": -0.5, "sobol_groups": -1.1, "without_replacement": -0.6, "naive": -0.5}
    powers["sobol_naive"] = -1.1
    rows = []
    for name, shared, S in itertools.product(powers, (False, True), (2, 4, 8, 16, 32)):
        for quantity, (exact, size, spread) in {
            "k_ff": (0.8, 0.1, 0.2),
            "square_norm": (0.6, 0.2, 0.25),
            "bound": (-320.0, 60.0, 40.0),
        }.items():
            std = spread * S ** powers[name] * (3 if shared and quantity == "bound" else 1)
            bias = (size / S if "naive" in name else 0.0) * (1 if "sobol" not in name else -0.8)
            bias += std / np.sqrt(repeats) * generator.standard_normal()
            row = {"estimator": name, "shared": shared, "samples": S, "quantity": quantity, "exact": exact}
            row |= {"mean": exact + bias, "bias": bias, "bias_std_error": std / np.sqrt(repeats), "std": std}
            pairs = {"iid": S * (S - 1) // 2, "iid_groups": S * S // 4, "sobol_groups": S * S // 4}
            rows.append(row | {"cost": pairs.get(name, S * (S + 1) // 2) + 50 * S, "repeats": repeats})
    return pd.DataFrame(rows)


def symmetric_surfaces():
    """runs/toy/surfaces.npz."""
    data = symmetric(0, train=10, test=5)
    arrays = {"train_X": data.train.X, "train_Y": data.train.Y, "grid_X": data.test.X, "truth": data.test.Y}
    return arrays | {"invariant": data.test.Y * 0.5, "plain": data.test.Y * 0.25}


def toy_metrics():
    """runs/toy/metrics.csv."""
    rows = {"log_marginal_likelihood": [3.25, -7.5], "train_rmse": [0.02, 0.01], "test_rmse": [0.1, 0.2]}
    return pd.DataFrame({"model": ["invariant", "plain"], **rows})


def drawn_samples(digits=4, draws=12, shape=(28, 28, 1)):
    """runs/samples/samples.npz."""
    images = np.random.default_rng(0).integers(0, 256, (digits, draws + 1, *shape)).astype(np.uint8)
    return {"originals": images[:, 0], "draws": images[:, 1:], "labels": np.arange(digits)}


MAKERS = (
    training_run,
    mnist_runs,
    mnist_table,
    rotated_runs,
    parity_runs,
    toy_bounds,
    insensitivity_rows,
    estimator_rows,
    symmetric_surfaces,
    toy_metrics,
    drawn_samples,
)

FIGURES = {
    "fig1": lambda: fig1.draw(drawn_samples()),
    "fig2": lambda: fig2.draw(symmetric_surfaces(), toy_metrics()),
    "fig2_bound": lambda: fig2_bound.draw(toy_bounds()),
    "fig3": lambda: fig3.draw(parity_runs(2)),
    "fig4": lambda: fig4.draw(mnist_runs(), mnist_table()),
    "fig5": lambda: fig5.draw(rotated_runs(2)),
    "appendix_a": lambda: appendix_a.draw(insensitivity_rows()),
    "appendix_b": lambda: appendix_b.draw(estimator_rows()),
}


@pytest.fixture(scope="session")
def made() -> SimpleNamespace:
    """The functions above that make results up."""
    return SimpleNamespace(**{maker.__name__: maker for maker in MAKERS})


@pytest.fixture(params=FIGURES)
def each(request) -> Callable[[], Figure]:
    """Draws one of the figures; a test that takes it runs for each."""
    return FIGURES[request.param]


@pytest.fixture(scope="session")
def texts_of() -> Callable[[Figure], list[str]]:
    """What one reads in a figure."""
    return lambda figure: [text for text, _ in drawn_texts(figure)]


def idle_labels(axis):
    """Labels of ticks that an axis keeps but does not draw, since they lie beyond its ends or it is off."""
    drawn = axis._update_ticks() if axis.axes.axison else []
    return [
        label
        for tick in (*axis.majorTicks, *axis.minorTicks)
        if tick not in drawn
        for label in (tick.label1, tick.label2)
    ]


def drawn_texts(figure: Figure) -> list[tuple[str, object]]:
    """Every text that can be seen, with its box in pixels."""
    with paper_style():
        settle(figure)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    renderer = canvas.get_renderer()
    found = []
    idle = {label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in idle_labels(axis)}
    for text in figure.findobj(Text):
        if text not in idle and text.get_visible() and text.get_text().strip():
            box = text.get_window_extent(renderer)
            if box.width and box.height:
                found.append((text.get_text(), box))
    return found


@pytest.fixture
def assert_tidy() -> Callable[[Figure], None]:
    """Text width, all text inside the figure, and no text upon another."""

    def check(figure: Figure) -> None:
        assert figure.get_figwidth() == TEXT_WIDTH
        texts = drawn_texts(figure)
        width, height = figure.get_size_inches() * figure.dpi
        for text, box in texts:
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text
        for (one, first), (other, second) in itertools.combinations(texts, 2):
            across = min(first.x1, second.x1) - max(first.x0, second.x0)
            along = min(first.y1, second.y1) - max(first.y0, second.y0)
            assert across <= 1.5 or along <= 1.5, f"{one!r} overlaps {other!r}"

    return check
