import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from orbitgp.datasets import symmetric
from orbitgp.figures import fig2
from orbitgp.figures.style import FORMATS, save

METRICS = pd.DataFrame(
    {
        "model": ["invariant", "plain"],
        "log_marginal_likelihood": [3.25, -7.5],
        "train_rmse": [0.02, 0.01],
        "test_rmse": [0.1, 0.2],
    }
)


def make_figure():
    data = symmetric(0, train=10, test=5)
    means = {"invariant": data.test.Y * 0.5, "plain": data.test.Y * 0.25}
    return fig2.draw(data, means, METRICS)


@pytest.fixture
def figure():
    return make_figure()


def test_each_panel_shows_its_surface_with_the_first_coordinate_to_the_right(figure):
    truth = symmetric(0, train=10, test=5).test.Y.reshape(5, 5)
    panels = [ax for ax in figure.axes if ax.images]
    for ax, scale in zip(panels, (1.0, 0.5, 0.25), strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), scale * truth.T)
    assert len({image.get_clim() for ax in panels for image in ax.images}) == 1


def test_titles_carry_the_numbers(figure):
    titles = [ax.get_title() for ax in figure.axes]
    assert "3.2" in titles[1]
    assert "0.200" in titles[2]
    assert "-7.5" in titles[2]


def test_a_figure_drawn_again_is_the_same_byte_by_byte(tmp_path):
    first, again = (save(make_figure(), tmp_path / name) for name in ("a", "b"))
    assert [path.suffix[1:] for path in first] == list(FORMATS)
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_drawing_loads_no_tensorflow():
    code = "import sys, orbitgp.figures.fig2; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
