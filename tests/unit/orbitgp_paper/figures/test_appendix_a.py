import numpy as np
import pandas as pd
import pytest

from orbitgp_paper.figures import appendix_a


def test_prior_and_posterior_by_threshold_and_by_class(made):
    figure = appendix_a.draw(made.insensitivity_rows())
    assert [ax.get_title() for ax in figure.axes[:2]] == list(appendix_a.VIEWS.values())
    assert len(figure.axes) == 4


def test_classes_are_weighed_by_their_images(made):
    rows = made.insensitivity_rows().query("variant == 'affine'").copy()
    rows.loc[rows.label == 6, "images"] = 60
    above = appendix_a.draw(rows).axes[0]
    line = next(line for line in above.lines if line.get_marker() == "^")
    prior = rows[rows["view"] == "prior"]
    expected = [np.average(group.probability, weights=group.images) for _, group in prior.groupby("threshold")]
    np.testing.assert_allclose(line.get_ydata(), expected)


def test_the_lemma_is_drawn_above_what_is_measured(made):
    above = appendix_a.draw(made.insensitivity_rows()).axes[0]
    lemma = [line for line in above.lines if line.get_linestyle() == ":" and line.get_linewidth() == 1.0]
    assert len(lemma) == 3  # none for the RBF, which does not move
    measured = [line for line in above.lines if line.get_marker() in "s^D" and len(line.get_xdata()) == 6]
    for bound, line in zip(lemma, measured, strict=True):
        assert bound.get_color() == line.get_color()
        assert np.all(bound.get_ydata() >= line.get_ydata())


def test_six_and_nine_are_marked(made):
    below = appendix_a.draw(made.insensitivity_rows()).axes[2]
    assert [patch.get_x() + patch.get_width() / 2 for patch in below.patches] == [6, 9]
    bold = [label.get_text() for label in below.get_xticklabels() if label.get_fontweight() == "bold"]
    assert bold == ["6", "9"]


def test_a_model_that_does_not_move_is_told_in_the_legend(made, texts_of):
    assert "RBF: 0 throughout" in texts_of(appendix_a.draw(made.insensitivity_rows()))


def test_probabilities_below_the_floor_are_hollow_triangles(made, texts_of):
    rows = made.insensitivity_rows()
    rows.loc[rows.threshold == 0.3, "probability"] = 0.0
    figure = appendix_a.draw(rows)
    hollow = [line for line in figure.axes[0].lines if line.get_marker() == "v" and len(line.get_xdata())]
    assert [list(line.get_xdata()) for line in hollow] == [[0.3]] * 3
    assert "less than 0.0001" in texts_of(figure)


def test_a_view_or_all_that_is_missing(made, texts_of, assert_tidy):
    rows = made.insensitivity_rows()
    half = appendix_a.draw(rows[rows["view"] == "prior"])
    assert texts_of(half).count("not measured") == 2
    assert_tidy(half)
    assert texts_of(appendix_a.draw(rows.iloc[:0])).count("not measured") == 4


def test_classes_without_images_and_missing_numbers_are_left_out(made, assert_tidy):
    rows = made.insensitivity_rows()
    rows.loc[rows.label == 4, "images"] = 0
    rows.loc[rows.label == 5, "probability"] = np.nan
    figure = appendix_a.draw(rows)
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()] == list("01236789")
    assert_tidy(figure)


def test_only_a_model_that_does_not_move(made, texts_of):
    rows = made.insensitivity_rows().query("variant == 'rbf'")
    texts = texts_of(appendix_a.draw(pd.DataFrame(rows)))
    assert "RBF: 0 throughout" in texts


def test_unknown_views_and_missing_columns_are_named(made):
    rows = made.insensitivity_rows()
    with pytest.raises(ValueError, match="view must be one of prior, posterior, got 'other'"):
        appendix_a.draw(rows.replace("prior", "other"))
    with pytest.raises(ValueError, match="insensitivity must have the columns label_text"):
        appendix_a.draw(rows.drop(columns="label_text"))
