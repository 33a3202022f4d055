import numpy as np
import pytest

from orbitgp_paper.figures import appendix_b
from orbitgp_paper.figures.looks import BLACK, ORANGE, VERMILION


def marked(ax, colour, marker):
    return [line for line in ax.lines if line.get_color() == colour and line.get_marker() == marker]


def test_a_column_a_quantity_and_a_row_a_measure(made):
    figure = appendix_b.draw(made.estimator_rows())
    assert len(figure.axes) == 12
    assert [ax.get_title() for ax in figure.axes[:3]] == list(appendix_b.QUANTITIES.values())
    assert [ax.get_ylabel() for ax in figure.axes[::3]] == ["|bias|"] * 2 + ["standard deviation"] * 2


def test_a_bias_that_is_none_is_a_limit_and_one_that_is_a_line(made):
    rows = made.estimator_rows()
    rows["bias"] = np.where(rows.estimator == "naive", -10.0, 0.5) * rows.bias_std_error
    ax = appendix_b.draw(rows).axes[0]
    own = rows[(rows.quantity == "k_ff") & ~rows.shared]
    naive, paper = own[own.estimator == "naive"], own[own.estimator == "iid"]
    np.testing.assert_allclose(marked(ax, VERMILION, "X")[0].get_ydata(orig=False), naive.bias.abs())
    assert not [line for line in marked(ax, BLACK, "o") if len(line.get_xdata())]
    limits = [line for line in marked(ax, BLACK, "v") if len(line.get_xdata())]
    np.testing.assert_allclose(limits[0].get_ydata(), appendix_b.SURE * paper.bias_std_error)


def test_spread_and_cost_are_those_of_the_rows(made):
    rows = made.estimator_rows()
    ax = appendix_b.draw(rows).axes[-1]
    own = rows.query("quantity == 'bound' and estimator == 'iid' and not shared")
    line = marked(ax, BLACK, "o")[0]
    np.testing.assert_allclose(line.get_xdata(orig=False), own.cost)
    np.testing.assert_allclose(line.get_ydata(orig=False), own["std"])


def test_biased_estimators_are_called_so(made, texts_of):
    assert sum("biased" in text for text in texts_of(appendix_b.draw(made.estimator_rows()))) == 2


def test_shared_draws_are_thin_also_when_read_as_words(made, texts_of):
    rows = made.estimator_rows()
    for frame in (rows, rows.assign(shared=rows.shared.astype(str))):
        figure = appendix_b.draw(frame)
        widths = {line.get_linewidth() for line in marked(figure.axes[6], BLACK, "o")}
        assert widths == {0.6, 1.2}
        assert "thin: one draw for the whole batch" in texts_of(figure)
    own = appendix_b.draw(rows[~rows.shared])
    assert "thin: one draw for the whole batch" not in texts_of(own)


def test_what_was_not_measured(made, texts_of, assert_tidy):
    rows = made.estimator_rows()
    figure = appendix_b.draw(rows[rows.quantity != "bound"])
    assert texts_of(figure).count("not measured") == 4
    assert_tidy(figure)
    assert texts_of(appendix_b.draw(rows.iloc[:0])).count("not measured") == 12


def test_exact_estimates_are_marked_below_the_logarithmic_axis(made, assert_tidy, texts_of):
    rows = made.estimator_rows()
    exact = (rows.estimator == "without_replacement") & (rows.samples == 32)
    rows.loc[exact, ["bias", "bias_std_error", "std"]] = 0.0
    figure = appendix_b.draw(rows)
    assert "beyond the axis: 0" in texts_of(figure)
    for ax in figure.axes:
        marks = [line for line in marked(ax, ORANGE, "v") if list(line.get_ydata()) == [ax.get_ylim()[0]]]
        assert len(marks) == 2
    assert_tidy(figure)


def test_unknown_names_are_refused(made):
    rows = made.estimator_rows()
    with pytest.raises(ValueError, match=r"estimator must be one of iid, .*, got 'other'"):
        appendix_b.draw(rows.replace("naive", "other"))
    with pytest.raises(ValueError, match=r"quantity must be one of k_ff, .*, got 'other'"):
        appendix_b.draw(rows.replace("k_ff", "other"))
    with pytest.raises(ValueError, match="estimators must have the columns cost"):
        appendix_b.draw(rows.drop(columns="cost"))
