"""Models that stand in one figure are told apart, by readers without red or green cones and without colours."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from orbitgp_paper.figures import appendix_b, fig2_bound, fig3
from orbitgp_paper.figures.looks import BLACK, KNOWN, SPARE, Look, looks

#: what a reader without cones of one kind sees of linear RGB: Machado, Oliveira and Fernandes, 2009, severity 1
SIMULATED = {
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
APART = 15.0  # of CIE 1976; about 2.3 is just noticeable when fields touch
FIGURES = {
    "fig2_bound": fig2_bound.LOOKS,
    "fig3": dict(enumerate([Look(BLACK), *fig3.STARTS])),
    "fig4": looks(["rbf", "rotation", "affine", "local"]),
    "fig5": looks([*KNOWN.keys() - {"local"}, "affine_parts"]),
    "appendix_b": {name: look for name, (_, look) in appendix_b.ESTIMATORS.items()},
}


def lab(colour: str, simulated: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of what is seen of a colour."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(simulated @ linear, 0, 1) / XYZ.sum(axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("reader", SIMULATED)
def test_colours_of_one_figure_are_apart_for_every_reader(figure: str, reader: str):
    for (one, first), (other, second) in itertools.combinations(FIGURES[figure].items(), 2):
        simulated = np.array(SIMULATED[reader])
        distance = np.linalg.norm(lab(first.colour, simulated) - lab(second.colour, simulated))
        assert distance > APART, f"{one} and {other}: {distance:.1f}"


@pytest.mark.parametrize("figure", FIGURES)
def test_without_colours_lines_or_markers_differ(figure: str):
    for first, second in itertools.combinations(FIGURES[figure].values(), 2):
        assert (str(first.style), first.marker) != (str(second.style), second.marker)


def test_more_models_than_colours_still_differ():
    many = looks([f"model_{i:02d}" for i in range(3 * len(SPARE))]).values()
    assert len({(look.colour, str(look.style), look.marker) for look in many}) == 3 * len(SPARE)
