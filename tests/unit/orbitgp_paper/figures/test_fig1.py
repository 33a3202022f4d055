import numpy as np
import pytest
from matplotlib.colors import to_rgba

from orbitgp_paper.figures import fig1
from orbitgp_paper.figures.looks import VERMILION


@pytest.mark.parametrize(("digits", "draws", "shape"), [(4, 12, (28, 28, 1)), (1, 1, (8, 8, 1)), (3, 5, (6, 9, 3))])
def test_every_image_is_shown_once_and_nothing_overlaps(made, digits, draws, shape):
    samples = made.drawn_samples(digits, draws, shape)
    (ax,) = fig1.draw(samples).axes
    assert len(ax.images) == digits * (draws + 1)
    boxes = [image.get_extent() for image in ax.images]  # left, right, bottom, top, downwards
    for place, (left, right, bottom, top) in enumerate(boxes):
        assert (bottom - top) / (right - left) == pytest.approx(shape[0] / shape[1], rel=0.05)
        for other in boxes[:place]:
            assert right <= other[0] or left >= other[1] or bottom <= other[3] or top >= other[2]


def test_originals_are_the_ones_in_squares(made):
    samples = made.drawn_samples(2, 4)
    (ax,) = fig1.draw(samples).axes
    framed = [
        image for image, frame in zip(ax.images, ax.patches, strict=True) if frame.get_edgecolor() == to_rgba(VERMILION)
    ]
    for image, original in zip(framed, samples["originals"], strict=True):
        np.testing.assert_array_equal(image.get_array(), original[..., 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": np.zeros((3, 12, 28, 28, 1), np.uint8)}, "draws must be"),
        ({"draws": np.zeros((4, 0, 28, 28, 1), np.uint8)}, "draws must be"),
        ({"originals": np.zeros((4, 28, 28, 2), np.uint8)}, "C 1 or 3"),
        ({"originals": np.zeros((0, 28, 28, 1), np.uint8)}, "not empty"),
    ],
)
def test_other_shapes_are_refused(made, change, message):
    with pytest.raises(ValueError, match=message):
        fig1.draw(made.drawn_samples() | change)


def test_what_is_missing_is_named(made):
    samples = made.drawn_samples()
    del samples["draws"]
    with pytest.raises(ValueError, match="samples must have the arrays draws; it has originals, labels"):
        fig1.draw(samples)
