"""What is asked of all figures alike."""

import subprocess
import sys
import warnings

import matplotlib as mpl
import pytest

from orbitgp_paper.figures.style import FORMATS, save


def test_is_tidy_at_text_width(each, assert_tidy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_tidy(each())


def test_drawn_again_is_the_same_byte_by_byte(each, tmp_path):
    first, again = (save(each(), tmp_path / name) for name in ("a", "b"))
    assert [path.suffix[1:] for path in first] == list(FORMATS)
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_leaves_matplotlib_as_it_was(each):
    before = dict(mpl.rcParams)
    each()
    assert dict(mpl.rcParams) == before


def test_drawing_loads_no_tensorflow():
    modules = "fig1, fig2, fig2_bound, fig3, fig4, fig5, appendix_a, appendix_b"
    code = f"import sys; from orbitgp_paper.figures import {modules}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_figure_that_cannot_be_written_leaves_the_old_one(tmp_path, made, monkeypatch):
    from orbitgp_paper.figures import fig2_bound

    old = [path.read_bytes() for path in save(fig2_bound.draw(made.toy_bounds()), tmp_path / "figure")]
    figure = fig2_bound.draw(made.toy_bounds())
    monkeypatch.setattr(
        figure, "savefig", lambda file, **_: file.write(b"half") and (_ for _ in ()).throw(OSError(28, "full"))
    )
    with pytest.raises(OSError, match="cannot write"):
        save(figure, tmp_path / "figure")
    assert [(tmp_path / f"figure.{ending}").read_bytes() for ending in FORMATS] == old
    assert len(list(tmp_path.iterdir())) == len(FORMATS)
