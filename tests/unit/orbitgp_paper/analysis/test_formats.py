"""Tables as text."""

import csv

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitgp.files import DamagedFile
from orbitgp_paper.analysis.formats import beside, latex, markdown, markdown_table, read_table, write_csv, write_table


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


def test_three_files_each_whole(frame, tmp_path):
    files = write_table(frame, tmp_path / "deep" / "mnist", "A caption.")
    assert files == [tmp_path / "deep" / f"mnist.{ending}" for ending in ("csv", "md", "tex")]
    assert sorted(file.name for file in (tmp_path / "deep").iterdir()) == ["mnist.csv", "mnist.md", "mnist.tex"]


def test_csv_has_every_column_and_digit(frame, tmp_path):
    write_table(frame, tmp_path / "t", "A caption.")
    again = read_table(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(again, frame)
    rows = list(csv.reader((tmp_path / "t.csv").open()))
    assert rows[2][:4] == ["affine", "50 % & more_|x|", "", ""]


def test_markdown(frame, tmp_path):
    write_table(frame, tmp_path / "t", "What *it* shows.")
    assert (tmp_path / "t.md").read_text() == (
        "What \\*it\\* shows.\n\n"
        "| variant | label | paper's error, % | error, % | bound, nats | seeds | diverged |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | --- |\n"
        "| rbf | RBF | 2.15 ± 0.03 | 2.16 ± 0.03 | 450,612 ± 12 | 3 | no |\n"
        "| affine | 50 % &amp; more_\\|x\\| |  | 1.35 | -99.13 ± 1.00 | 1 | yes |\n"
    )


def test_latex(frame, tmp_path):
    write_table(frame, tmp_path / "t", "100 % of it.")
    text = (tmp_path / "t.tex").read_text()
    assert r"\caption{100 \% of it.}" in text
    assert r"\label{tab:t}" in text
    assert r"\begin{tabular}{llrrrrl}" in text
    assert r"      affine & 50 \% \& more\_\textbar{}x\textbar{} &  & 1.35 & $-$99.13 $\pm$ 1.00 & 1 & yes \\" in text
    assert text.index(r"\resizebox{") < text.index(r"\begin{tabular}") < text.index(r"\end{tabular}}")
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_same_frame_same_bytes(frame, tmp_path):
    first = [path.read_bytes() for path in write_table(frame, tmp_path / "a" / "t", "A caption.")]
    second = [path.read_bytes() for path in write_table(frame.copy(), tmp_path / "b" / "t", "A caption.")]
    assert first == second
    again = [
        path.read_bytes() for path in write_table(read_table(tmp_path / "a" / "t.csv"), tmp_path / "t", "A caption.")
    ]
    assert again == first


def test_stem_with_dots_keeps_them(tmp_path):
    assert beside(tmp_path / "a.b", ".csv") == tmp_path / "a.b.csv"
    (path, *_) = write_table(pd.DataFrame({"a": [1]}), tmp_path / "run.v1", "")
    assert path.name == "run.v1.csv"


def test_empty_table(tmp_path):
    for path in write_table(pd.DataFrame({"variant": [], "error_mean": []}), tmp_path / "t", "Nothing."):
        assert path.exists()


@pytest.mark.parametrize("wrong", [None, [[1]], {"a": [1]}])
def test_what_is_no_frame(tmp_path, wrong):
    with pytest.raises(TypeError, match="must be a DataFrame"):
        write_table(wrong, tmp_path / "t", "")
    assert not list(tmp_path.iterdir())


def test_columns_of_one_name(tmp_path):
    with pytest.raises(ValueError, match="must differ"):
        write_table(pd.DataFrame([[1, 2]], columns=["a", "a"]), tmp_path / "t", "")
    assert not list(tmp_path.iterdir())


def test_numbers_beyond_all_bounds(tmp_path):
    frame = pd.DataFrame({"z": [np.inf, 0.0], "std": [1e-300, 1e300], "images": [2**53, 0]})
    write_table(frame, tmp_path / "t", "")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), frame)
    assert "inf" in (tmp_path / "t.md").read_text()


def test_table_that_is_missing_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "t.csv").write_bytes(b"")
    with pytest.raises(DamagedFile, match=r"t\.csv is not a table"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes(b"\xff\xff,\xfe")
    with pytest.raises(DamagedFile, match=r"t\.csv is not a table"):
        read_table(tmp_path / "t.csv")


def test_numpy_values_are_written_as_plain_ones(tmp_path):
    frame = pd.DataFrame({"a": np.array([np.float64(0.1), np.int64(3), None, True, "x"], dtype=object)})
    write_csv(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'a\n0.1\n3\n""\nTrue\nx\n'


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
