"""Tables as text."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitgp.files import DamagedFile
from orbitgp_paper.analysis.formats import latex, markdown, markdown_table, read_table, write_table


@pytest.fixture()
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "variant": ["rbf", "affine"],
            "label": ["RBF", "50 % & more_|x|"],
            "paper_error": [2.15, np.nan],
            "paper_std": [0.03, np.nan],
            "error_mean": [2.161, 1.349],
            "error_std": [0.031, np.nan],
            "elbo_mean": [450_612.4, -99.126],
            "elbo_std": [12.3, 1.0],
            "n_seeds": [3, 1],
            "diverged": [False, True],
            "orbit.alpha": [1.0, 2.0],
            "commit": ["ab", "cd"],
            "angle_mean": [np.nan, np.nan],
        }
    )


def test_csv_has_every_column_and_digit(frame, tmp_path):
    frame["z"] = [np.inf, 1e-300]
    files = write_table(frame, tmp_path / "deep" / "run.v1", "A caption.")
    assert files == [tmp_path / "deep" / f"run.v1.{ending}" for ending in ("csv", "md", "tex")]
    pd.testing.assert_frame_equal(read_table(files[0]), frame)
    assert "affine,50 % & more_|x|,,," in files[0].read_text()
    again = write_table(read_table(files[0]), tmp_path / "deep" / "again", "A caption.")
    assert [path.read_bytes() for path in again[:2]] == [path.read_bytes() for path in files[:2]]
    for path in write_table(pd.DataFrame({"variant": [], "error_mean": []}), tmp_path / "t", "Nothing."):
        assert path.exists()


def test_markdown_and_latex(frame, tmp_path):
    write_table(frame, tmp_path / "t", "100 % *of* it.")
    assert (tmp_path / "t.md").read_text() == (
        "100 % \\*of\\* it.\n\n"
        "| variant | label | paper's error, % | error, % | bound, nats | seeds | diverged |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | --- |\n"
        "| rbf | RBF | 2.15 ± 0.03 | 2.16 ± 0.03 | 450,612 ± 12 | 3 | no |\n"
        "| affine | 50 % &amp; more_\\|x\\| |  | 1.35 | -99.13 ± 1.00 | 1 | yes |\n"
    )
    text = (tmp_path / "t.tex").read_text()
    assert r"\caption{100 \% *of* it.}" in text and r"\label{tab:t}" in text and r"\begin{tabular}{llrrrrl}" in text
    assert r"      affine & 50 \% \& more\_\textbar{}x\textbar{} &  & 1.35 & $-$99.13 $\pm$ 1.00 & 1 & yes \\" in text


def test_table_that_is_damaged(tmp_path):
    for content in (b"", b"\xff\xff,\xfe"):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(DamagedFile, match=r"t\.csv is not a table"):
            read_table(tmp_path / "t.csv")


@given(st.text())
def test_markdown_keeps_a_cell_in_its_column(text):
    line = markdown_table(["a", "b"], [[text, "end"]], [False, False]).splitlines()
    assert len(line) == 3
    bare = line[2].replace("\\\\", "").replace("\\|", "")
    assert bare.count("|") == 3
    assert "<" not in markdown(text)


@given(st.text())
def test_latex_leaves_nothing_that_acts(text):
    escaped = latex(text)
    for word in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}", r"\textless{}", r"\textgreater{}"):
        escaped = escaped.replace(word, "")
    for word in (r"\textbar{}", r"$\pm$", r"$\times$", r"$^\circ$", r"$^2$", "$-$", r"$\le$", r"$\ge$", r"$\alpha$"):
        escaped = escaped.replace(word, "")
    for letter in "&%$#_{}":
        escaped = escaped.replace(f"\\{letter}", "")
        assert letter not in escaped
    assert "\\" not in escaped
    assert "\n" not in escaped
