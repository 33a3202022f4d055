import numpy as np
import pytest

from orbitgp_paper.figures import fig2


def test_each_panel_shows_its_surface_with_the_first_coordinate_to_the_right(made):
    surfaces = made.symmetric_surfaces()
    panels = [ax for ax in fig2.draw(surfaces, made.toy_metrics()).axes if ax.images]
    for ax, name in zip(panels, ("truth", "invariant", "plain"), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), surfaces[name].reshape(5, 5).T)
    assert len({image.get_clim() for ax in panels for image in ax.images}) == 1


def test_titles_carry_the_numbers(made):
    titles = [ax.get_title() for ax in fig2.draw(made.symmetric_surfaces(), made.toy_metrics()).axes]
    assert "10 points" in titles[0]
    assert "3.2" in titles[1]
    assert "0.200" in titles[2]
    assert "-7.5" in titles[2]


def test_what_is_missing_is_named(made):
    surfaces, metrics = made.symmetric_surfaces(), made.toy_metrics()
    with pytest.raises(ValueError, match="there is none for plain"):
        fig2.draw(surfaces, metrics.iloc[:1])
    with pytest.raises(ValueError, match="metrics must have the columns test_rmse"):
        fig2.draw(surfaces, metrics.drop(columns="test_rmse"))
    with pytest.raises(ValueError, match=r"plain must have shape \[side², 1\]"):
        fig2.draw(surfaces | {"plain": surfaces["plain"][1:]}, metrics)
    del surfaces["invariant"]
    with pytest.raises(ValueError, match="surfaces must have the arrays invariant"):
        fig2.draw(surfaces, metrics)
