import numpy as np
import pytest

from orbitgp_paper.figures import fig2_bound


def test_exact_values_are_lines_and_bounds_rise_to_them(made):
    bounds = made.toy_bounds()
    left, right = fig2_bound.draw(bounds).axes
    exact = [line for line in left.lines if line.get_linestyle() == ":"]
    assert [set(line.get_ydata()) for line in exact] == [{1.9}, {-11.3}]
    shown = [line for line in left.lines if line.get_linestyle() != ":" and len(line.get_xdata()) == 5]
    np.testing.assert_allclose(shown[0].get_ydata(), bounds.query("model == 'invariant'").elbo)
    np.testing.assert_allclose(right.lines[0].get_ydata()[:4], [55, 22, 3.0, 0.08])


def test_what_lies_below_the_axis_is_marked_and_told(made, texts_of):
    figure = fig2_bound.draw(made.toy_bounds())
    left = figure.axes[0]
    (mark,) = [line for line in left.lines if line.get_marker() == "v"]
    assert list(mark.get_xdata()) == [4]
    assert mark.get_ydata()[0] == left.get_ylim()[0]
    assert "beyond the axis: −911" in texts_of(figure)
    assert "less than 0.001 nats" in texts_of(figure)


def test_nothing_is_cut_where_all_fits(made, texts_of):
    bounds = made.toy_bounds().query("inducing > 4 and inducing < 64")
    assert not [text for text in texts_of(fig2_bound.draw(bounds)) if "beyond" in text or "less than" in text]


def test_without_rows_the_panels_say_so(made, texts_of):
    assert texts_of(fig2_bound.draw(made.toy_bounds().iloc[:0])).count("not measured") == 2


def test_an_unknown_model_is_named(made):
    with pytest.raises(ValueError, match="model must be one of invariant, plain, got 'other'"):
        fig2_bound.draw(made.toy_bounds().replace("plain", "other"))
