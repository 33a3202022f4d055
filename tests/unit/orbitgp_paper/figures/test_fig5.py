import pytest

from orbitgp_paper.figures import fig5


def test_error_at_the_left_and_bound_at_the_right_with_one_legend(made, texts_of):
    figure = fig5.draw(made.rotated_runs())
    assert [ax.get_ylabel() for ax in figure.axes] == ["test error (%)", "bound ($10^3$ nats)"]
    for label in ("RBF", "affine", "rotation, learned", "rotation, fixed", "rotation, Adam"):
        assert texts_of(figure).count(label) == 1


def test_without_runs_the_panels_say_so(made, texts_of):
    assert texts_of(fig5.draw(made.rotated_runs().iloc[:0])).count("not measured") == 2


def test_a_missing_column_is_named(made):
    with pytest.raises(ValueError, match="metrics must have the columns elbo"):
        fig5.draw(made.rotated_runs().drop(columns="elbo"))
