"""Each figure shows every number of its results, under its name, and says what is missing."""

import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from orbitgp_paper.figures import (
    appendix_a,
    appendix_b,
    fig1,
    fig2,
    fig2_bound,
    fig3,
    fig4,
    fig5,
    parts,
    profile,
    recipes,
    sizes,
    style,
)
from orbitgp_paper.figures.looks import BLACK, VERMILION
from orbitgp_paper.figures.style import FORMATS, save


def lines(ax, **wanted):
    """Lines with data and these properties."""
    found = [line for line in ax.lines if len(line.get_xdata())]
    return [line for line in found if all(getattr(line, f"get_{name}")() == value for name, value in wanted.items())]


# -- all alike -----------------------------------------------------------------------------------------------------


def test_is_tidy_and_drawn_again_is_the_same_byte_by_byte(each, assert_tidy, tmp_path, monkeypatch):
    before = dict(mpl.rcParams)
    monkeypatch.setattr(style, "FORMATS", ("svg",))  # of the others the shipped files are witnesses
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = each()
        assert_tidy(figure)
        (once,), (again,) = save(figure, tmp_path / "a"), save(each(), tmp_path / "b")
    assert again.read_bytes() == once.read_bytes()
    assert dict(mpl.rcParams) == before


def test_a_figure_is_saved_in_every_format_as_wide_as_the_papers_text(results, tmp_path):
    files = save(fig5.draw(*results["fig5"]), tmp_path / "a")
    assert [path.suffix[1:] for path in files] == list(FORMATS) and all(path.stat().st_size > 1000 for path in files)
    points = 72 * style.TEXT_WIDTH
    assert f'width="{points:g}pt"'.encode() in files[1].read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) [0-9.]+ \]", files[0].read_bytes())
    assert float(box[1]) == points


@pytest.mark.parametrize(
    ("module", "panels"), [(fig2_bound, 2), (fig3, 4), (fig5, 2), (appendix_a, 4), (appendix_b, 6), (recipes, 2)]
)
def test_without_rows_the_panels_say_so(results, texts_of, module, panels):
    figure = module.draw(*(frame.iloc[:0] for frame in results[module.__name__.split(".")[-1]]))
    assert texts_of(figure).count("not measured") == panels


# -- figures 1 and 2 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("digits", "draws", "shape"), [(4, 12, (28, 28, 1)), (3, 5, (6, 9, 3))])
def test_fig1_shows_every_image_once_and_originals_in_squares(digits, draws, shape):
    pixels = np.random.default_rng(0).integers(0, 256, (digits, draws + 1, *shape)).astype(np.uint8)
    (ax,) = fig1.draw({"originals": pixels[:, 0], "draws": pixels[:, 1:]}).axes
    assert len(ax.images) == digits * (draws + 1)
    boxes = [image.get_extent() for image in ax.images]  # left, right, bottom, top, downwards
    for place, (left, right, bottom, top) in enumerate(boxes):
        assert (bottom - top) / (right - left) == pytest.approx(shape[0] / shape[1], rel=0.05)
        for other in boxes[:place]:
            assert right <= other[0] or left >= other[1] or bottom <= other[3] or top >= other[2]
    framed = [patch.get_edgecolor() == to_rgba(VERMILION) for patch in ax.patches]
    originals = [image.get_array() for image, own in zip(ax.images, framed, strict=True) if own]
    np.testing.assert_array_equal(originals, pixels[:, 0, ..., 0] if shape[2] == 1 else pixels[:, 0])


def test_fig2_has_the_first_coordinate_to_the_right_and_the_numbers_above(results):
    surfaces, metrics = results["fig2"]
    figure = fig2.draw(surfaces, metrics)
    panels = [ax for ax in figure.axes if ax.images]
    for ax, name in zip(panels, ("truth", "invariant", "plain"), strict=True):
        side = round(len(surfaces[name]) ** 0.5)
        np.testing.assert_array_equal(ax.images[0].get_array(), surfaces[name].reshape(side, side).T)
    assert len({image.get_clim() for ax in panels for image in ax.images}) == 1
    for ax, row in zip(panels[1:], metrics.set_index("model").loc[["invariant", "plain"]].itertuples(), strict=True):
        assert f"{row.log_marginal_likelihood:.1f}" in ax.get_title() and f"{row.test_rmse:.3f}" in ax.get_title()


def test_fig2_bound_marks_what_lies_below_the_axis(texts_of):
    rows = [
        {"model": model, "inducing": count, "elbo": exact - gap, "log_marginal_likelihood": exact}
        for model, exact, gaps in (("invariant", 1.9, (55, 3.0, 2e-5)), ("plain", -11.3, (900, 17.0, -1e-7)))
        for count, gap in zip((4, 8, 64), gaps, strict=True)
    ]
    figure = fig2_bound.draw(pd.DataFrame(rows))
    left, right = figure.axes
    assert [set(line.get_ydata()) for line in lines(left, linestyle=":")] == [{1.9}, {-11.3}]
    (mark,) = lines(left, marker="v")
    assert (list(mark.get_xdata()), mark.get_ydata()[0]) == ([4], left.get_ylim()[0])
    np.testing.assert_allclose(right.lines[0].get_ydata(), [55, 3.0, fig2_bound.LEAST])
    assert {"beyond the axis: −911", "less than 0.001 nats"} <= set(texts_of(figure))
    inside = fig2_bound.draw(pd.DataFrame(rows).query("inducing == 8"))
    assert not [text for text in texts_of(inside) if "beyond" in text or "less than" in text]


# -- figures 3 to 5 ------------------------------------------------------------------------------------------------


def test_fig3_has_a_panel_for_each_angle_and_one_legend(results, texts_of, assert_tidy):
    runs = results["fig3"][0]
    figure = fig3.draw(runs)
    for ax, truth in zip(figure.axes[:2], (90, 180), strict=True):
        own = runs[(runs.alpha_true == truth) & (runs.step == 0)]["orbit.alpha"].dropna()
        assert list(lines(ax, linestyle="--")[0].get_ydata()) == [truth, truth]
        begun = {float(line.get_ydata()[0]) for line in ax.lines if len(line.get_xdata()) > 20}
        assert set(own) <= begun
    assert [texts_of(figure).count(label) for label in runs.label.unique()] == [1] * runs.label.nunique()
    half = fig3.draw(runs[runs.alpha_true == 90])
    assert texts_of(half).count("not measured") == 1
    others = fig3.draw(pd.concat([runs[runs.alpha_true == 90], runs.assign(alpha_true=45, variant=runs.variant + "x")]))
    assert len(others.axes) == 4
    assert_tidy(others)


def test_fig3_without_angles_or_numbers(results, texts_of):
    runs = results["fig3"][0]
    rbf = runs[runs.variant == "rbf_90"].drop(columns="orbit.alpha")
    assert texts_of(fig3.draw(rbf)).count("not measured") == 2
    stopped = runs.copy()
    stopped.loc[stopped.variant.eq("rbf_90") & stopped.step.gt(stopped.step.max() / 2), ["elbo", "test_error"]] = np.inf
    assert "stops: not finite" in texts_of(fig3.draw(stopped))
    with pytest.raises(ValueError, match=r"alpha_true must say .* variant 'rbf_90' has none"):
        fig3.draw(rbf.assign(alpha_true=np.nan))


def test_fig4_has_ours_beside_the_papers(results, texts_of, assert_tidy):
    runs, table = results["fig4"]
    texts = texts_of(fig4.draw(runs, table))
    for row in table.itertuples():
        for text in (row.label, f"{row.error_mean:.2f} ± {row.error_std:.2f}", f"{row.paper_error} ± {row.paper_std}"):
            assert text in texts
    own = table.copy()
    own.loc[0, "error_std"] = np.nan
    own.loc[1, ["error_mean", "error_std", "n_seeds"]] = np.nan
    own.loc[2, ["error_mean", "error_std", "n_diverged"]] = [np.nan, np.nan, 1]
    own.loc[len(own)] = {"variant": "mine", "error_mean": 1.2, "error_std": 0.1, "n_seeds": 2}
    label = "a very long name of a model of mine"
    mine = runs[runs.variant == "local"].assign(variant="mine", label=label)
    figure = fig4.draw(pd.concat([runs, mine]), own)
    texts = texts_of(figure)
    assert f"{own.error_mean[0]:.2f}" in texts
    assert [texts.count(text) for text in ("not measured", "diverged", "1.20 ± 0.10", "–")] == [1, 1, 1, 1]
    assert any(text.startswith("a very long") and text.endswith("…") for text in texts)
    assert "ours: mean ± std over 2 to 3 seeds" in texts
    assert_tidy(figure)
    nothing = texts_of(fig4.draw(runs.iloc[:0], table.assign(error_mean=np.nan, n_seeds=0)))
    assert nothing.count("not measured") == 2 + len(table) and "ours: no runs" in nothing


# -- the appendix --------------------------------------------------------------------------------------------------


def test_appendix_a_weighs_classes_by_their_images_and_marks_six_and_nine(results, texts_of):
    rows = results["appendix_a"][0].copy()
    rows.loc[rows.label == 6, "images"] *= 3
    rows.loc[(rows.label == 4), "images"] = 0
    figure = appendix_a.draw(rows)
    above, below = figure.axes[0], figure.axes[2]
    own = rows[(rows["view"] == "prior") & (rows.variant == "affine") & (rows.images > 0)]
    expected = [np.average(group.probability, weights=group.images) for _, group in own.groupby("threshold")]
    shown = lines(above, marker="^")[0].get_ydata()
    np.testing.assert_allclose(shown, np.where(np.array(expected) >= appendix_a.FLOOR, expected, np.nan))
    for bound in lines(above, linestyle=":"):
        for line in lines(above, color=bound.get_color(), linestyle="-"):
            assert np.all(bound.get_ydata() >= np.nan_to_num(line.get_ydata()))
    labels = below.get_xticklabels()
    assert [label.get_text() for label in labels] == list("012356789")
    assert [label.get_text() for label in labels if label.get_fontweight() == "bold"] == ["6", "9"]
    assert "RBF: 0 throughout" in texts_of(figure)


def test_appendix_a_draws_what_is_too_small_as_hollow_triangles(results, texts_of):
    rows = results["appendix_a"][0].copy()
    last = rows.threshold.max()
    rows.loc[rows.threshold == last, "probability"] = 0.0
    figure = appendix_a.draw(rows[rows["view"] == "prior"])
    assert all(last in line.get_xdata() for line in lines(figure.axes[0], marker="v"))
    assert len(lines(figure.axes[0], marker="v")) == 3
    assert "less than 0.0001" in texts_of(figure)
    assert texts_of(figure).count("not measured") == 2


def test_appendix_b_draws_a_bias_only_where_there_is_one(results, texts_of):
    rows = results["appendix_b"][0].copy()
    rows["bias"] = np.where(rows.estimator == "naive", -10.0, 0.5) * rows.bias_std_error
    figure = appendix_b.draw(rows.assign(shared=rows.shared.astype(str)))  # words, as a file may have them
    own = rows[(rows.quantity == "k_ff") & ~rows.shared]
    ax = figure.axes[0]
    naive, paper = own[own.estimator == "naive"].sort_values("samples"), own[own.estimator == "iid"]
    np.testing.assert_allclose(lines(ax, color=VERMILION, marker="X")[0].get_ydata(orig=False), naive.bias.abs())
    assert not lines(ax, color=BLACK, marker="o")
    limits = lines(ax, color=BLACK, marker="v")[0].get_ydata()
    np.testing.assert_allclose(limits, appendix_b.SURE * paper.sort_values("samples").bias_std_error)
    spread = rows[(rows.quantity == "bound") & (rows.estimator == "iid") & ~rows.shared].sort_values("samples")
    line = lines(figure.axes[-1], color=BLACK, marker="o", linewidth=1.2)[0]
    np.testing.assert_allclose(line.get_xdata(orig=False), spread.samples)
    np.testing.assert_allclose(line.get_ydata(orig=False), spread["std"])
    assert len(lines(figure.axes[3], color=BLACK, marker="o")) == 1  # not the draws that all images share
    assert sum("biased" in text for text in texts_of(figure)) == 2


def test_appendix_b_marks_what_is_exact_below_its_axis(results, texts_of, assert_tidy):
    rows = results["appendix_b"][0].copy()
    rows.loc[rows.estimator == "without_replacement", ["bias", "bias_std_error", "std"]] = 0.0
    figure = appendix_b.draw(rows[rows.quantity != "bound"])
    texts = texts_of(figure)
    assert "beyond the axis: 0" in texts and texts.count("not measured") == 2
    assert_tidy(figure)


# -- the recipes of figure 3 ---------------------------------------------------------------------------------------


def test_recipes_has_a_point_for_each_run_in_the_look_of_its_ingredients(texts_of, assert_tidy):
    cells = [(o, t, s, a) for o in ("adam", "natural") for t in ("fold", "sigmoid") for s in (0, 1) for a in (90, 180)]
    frame = pd.DataFrame(cells, columns=["optimiser", "transform", "shared", "alpha_true"])
    rng = np.random.default_rng(0)
    frame = frame.assign(start=59.9999, elbo=rng.uniform(-11e3, -10e3, len(frame)))
    frame["orbit.alpha"] = rng.uniform(95, 180, len(frame))
    frame.loc[0, ["start", "elbo"]] = [20.0, -1e9]  # a training that failed
    frame = frame.assign(variant=[f"v{number}" for number in frame.index], seed=0)
    begun = frame.assign(elbo=frame.elbo - 500, **{"orbit.alpha": frame.start})
    figure = recipes.draw(frame, begun)
    assert_tidy(figure)
    for ax, truth in zip(figure.axes, (90, 180), strict=True):
        assert list(lines(ax, linestyle="--")[0].get_ydata()) == [truth, truth]
        own = frame[frame.alpha_true == truth]
        points = {float(line.get_ydata()[0]): line for line in lines(ax) if len(line.get_xdata()) == 1}
        assert set(points) == set(own["orbit.alpha"])
        for row in own.to_dict("records"):
            point = points[row["orbit.alpha"]]
            assert point.get_color() == recipes.COLOURS[row["transform"], bool(row["shared"])]
            assert (point.get_markerfacecolor() == "white") == (row["optimiser"] == "adam")
            inside = row["elbo"] > -1e6
            assert point.get_marker() == (recipes.MARKERS[1] if inside else "<")
            assert (point.get_xdata()[0] == row["elbo"]) == inside
            ways = [line for line in lines(ax) if line.get_ydata()[-1] == row["orbit.alpha"] and line != point]
            assert [list(way.get_xdata()) for way in ways] == [[row["elbo"] - 500, row["elbo"]]] * inside
    assert {"from 20°", "from 60°", "Adam", "sigmoid, shared draws", "true angle"} <= set(texts_of(figure))
    assert "beyond the axis: bound −1e+09" in texts_of(figure)


# -- few data ------------------------------------------------------------------------------------------------------


def test_sizes_has_a_line_for_each_model_of_means_and_spreads(texts_of, assert_tidy):
    cells = [
        (experiment, label, seed, size, factor * (10 + seed) * 300 / size)
        for experiment, labels in (("few_mnist", ("RBF", "learned")), ("few_turned", ("RBF", "learned", "true orbit")))
        for factor, label in enumerate(labels, start=1)
        for seed in (0, 1, 2)
        for size in (312, 1250, 60000)
    ]
    frame = pd.DataFrame(cells, columns=["experiment", "label", "seed", "originals", "test_error"])
    frame["test_class_nll"] = frame["test_error"].where(frame["experiment"] == "few_mnist") / 30
    figure = sizes.draw(frame)
    assert_tidy(figure)
    assert [len(ax.containers) for ax in figure.axes] == [2, 3, 2, 0] and "not measured" in texts_of(figure)
    line, _, bars = figure.axes[1].containers[2]
    assert list(line.get_xdata()) == [312, 1250, 60000]
    np.testing.assert_allclose(line.get_ydata(orig=False), [3 * 11 * 300 / size for size in line.get_xdata()])
    spreads = [float(high - low) / 2 for (_, low), (_, high) in bars[0].get_segments()]
    np.testing.assert_allclose(spreads, [3 * 300 / size for size in line.get_xdata()])
    assert {"mnist", "turned", "RBF", "learned", "true orbit", "312", "60k"} <= set(texts_of(figure))
    frame.loc[frame.index[0], "test_class_nll"] = np.nan  # one seed of RBF at 312 images
    line, _, _ = sizes.draw(frame).axes[2].containers[0]
    assert np.isnan(line.get_ydata(orig=False)).tolist() == [True, False, False]


# -- ablations -----------------------------------------------------------------------------------------------------


def test_parts_compares_with_the_whole_what_has_its_orbit_and_its_steps(texts_of):
    rows = [("whole", 10, 50.0), ("adam", 10, 20.0), ("hard", 10, 51.0), ("long", 20, 60.0), ("entries", 10, 40.0)]
    frame = pd.DataFrame(rows, columns=["variant", "steps", "elbo"]).assign(experiment="mnist", dataset="mnist")
    frame["label"] = frame["variant"]
    frame["orbit.alpha"] = [1.0, 2.0, 3.0, 4.0, np.nan]
    frame["orbit.lower"] = [np.nan, np.nan, np.nan, np.nan, 1.0]
    other = frame.iloc[1:2].assign(experiment="parity")  # has no whole to be compared with
    shown = parts.compared(frame)
    assert dict(zip(shown["variant"], shown["difference"], strict=True)) == {"adam": -30.0, "hard": 1.0}
    figure = parts.draw(pd.concat([frame, other], ignore_index=True))
    [ax] = figure.axes
    assert [bar.get_width() for bar in ax.patches] == [-30.0, 1.0]
    assert {"−30", "+1", "mnist, 10 steps"} <= set(texts_of(figure))


def test_profile_shows_angles_that_were_held_fixed_by_recipe(texts_of):
    angles = [90.0, 135.0, 180.0]
    frame = pd.DataFrame({"start": [180.0, 90.0, 135.0, 60.0, 90.0], "elbo": [-3.0, -2.0, -1.0, -0.5, -9.0]})
    frame = frame.assign(test_error=[3.0, 2.9, 2.8, 2.7, 3.1], alpha_true=90.0)
    frame["orbit.alpha"] = [180.0, 90.0, 135.0, 133.0, 90.0]  # the fourth is learned, the fifth has a line of its own
    frame["label"] = ["180°, fixed", "90°, fixed", "135°, fixed", "learned", "90°, fixed, hard"]
    assert {name: list(rows["orbit.alpha"]) for name, rows in profile.held(frame).items()} == {"fixed": angles}
    figure = profile.draw(frame)
    bounds, errors = ([*ax.lines[0].get_ydata()] for ax in figure.axes)
    assert (bounds, errors) == ([-2.0, -1.0, -3.0], [2.9, 2.8, 3.0])
    assert {"fixed", "true angle"} <= set(texts_of(figure))
