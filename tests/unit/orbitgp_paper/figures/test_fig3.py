import numpy as np
import pandas as pd
import pytest

from orbitgp_paper.figures import fig3


def test_the_papers_four_panels(made):
    figure = fig3.draw(made.parity_runs())
    assert [ax.get_ylabel() for ax in figure.axes] == [
        r"learned $\alpha$ (°)",
        r"learned $\alpha$ (°)",
        "test error (%)",
        "bound ($10^3$ nats)",
    ]
    for ax, truth in zip(figure.axes[:2], (90, 180), strict=True):
        dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert list(dashed[0].get_ydata()) == [truth, truth]


def test_each_start_begins_at_its_angle_and_the_rbf_has_none(made):
    figure = fig3.draw(made.parity_runs())
    starts = sorted(line.get_ydata()[0] for line in figure.axes[0].lines if len(line.get_xdata()) == 41)
    np.testing.assert_allclose(starts, [20, 70, 150], atol=4)


def test_one_legend_for_all_panels(made, texts_of):
    texts = texts_of(fig3.draw(made.parity_runs()))
    for label in ("RBF", "rotation from 20°", "rotation from 70°", "rotation from 150°", "true angle"):
        assert texts.count(label) == 1


def test_models_keep_colour_and_true_angles_line_style(made):
    error = fig3.draw(made.parity_runs()).axes[2]
    whole = [line for line in error.lines if len(line.get_xdata()) == 41]
    assert len(whole) == 8
    assert len({(line.get_color(), str(line._unscaled_dash_pattern)) for line in whole}) == 8
    assert len({line.get_color() for line in whole}) == 4


def test_an_angle_that_was_not_run_says_so(made, texts_of, assert_tidy):
    figure = fig3.draw(made.parity_runs(truths=(90,)))
    assert texts_of(figure).count("not measured") == 1
    assert_tidy(figure)


def test_other_angles_have_panels_of_their_own(made, assert_tidy):
    figure = fig3.draw(made.parity_runs(truths=(45, 90, 135)))
    assert len(figure.axes) == 5
    assert_tidy(figure)


def test_many_seeds_and_starts(made, assert_tidy):
    assert_tidy(fig3.draw(made.parity_runs(6, starts=(5, 20, 45, 90, 150))))


def test_no_runs_at_all(made, texts_of):
    assert texts_of(fig3.draw(made.parity_runs().iloc[:0])).count("not measured") == 4


def test_a_run_that_does_not_say_its_angle_is_refused(made):
    with pytest.raises(ValueError, match=r"alpha_true must say .* variant 'rotation' has none"):
        fig3.draw(made.training_run("rotation", "rotation", 0).assign(alpha_true=np.nan))


def test_a_missing_column_is_named(made):
    with pytest.raises(ValueError, match="metrics must have the columns alpha_true"):
        fig3.draw(made.parity_runs().drop(columns="alpha_true"))


def test_runs_without_any_learned_angle(made, texts_of):
    runs = made.parity_runs(starts=()).drop(columns="orbit.alpha")
    assert texts_of(fig3.draw(runs)).count("not measured") == 2


def test_infinities_are_taken_for_missing(made, texts_of):
    runs = made.parity_runs()
    runs.loc[runs.variant.eq("rbf_90") & runs.step.gt(10_000), ["elbo", "test_error"]] = np.inf
    assert "stops: not finite" in texts_of(fig3.draw(pd.DataFrame(runs)))
