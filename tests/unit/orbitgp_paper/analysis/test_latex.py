"""Tables for papers: LaTeX takes them as they are."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[4] / "results"
TABLES = sorted(RESULTS.glob("*/tables/*.tex"))
#: a paper's preamble: the packages that each table names in its first line, in the text width of NeurIPS
DOCUMENT = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[textwidth=5.5in]{geometry}
\usepackage{booktabs, graphicx}
\begin{document}
%s
\end{document}
"""


def bare(text: str) -> str:
    """Text without what is escaped."""
    return re.sub(r"\\[&%$#_{}\\]", "", text)


@pytest.mark.parametrize("file", TABLES, ids=lambda file: f"{file.parts[-3]}-{file.stem}")
def test_every_row_has_as_many_cells_as_columns_and_letters_are_latins(file: Path):
    text = file.read_text(encoding="utf-8")
    assert text.startswith("% \\usepackage{booktabs, graphicx}\n")
    columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)[1]
    rows = re.findall(r"^      (.*?) ?\\\\$", text, flags=re.M)
    assert len(rows) > 1 and {bare(row).count("&") + 1 for row in rows} == {len(columns)}
    for one, other in ("{}", ("\\begin{", "\\end{"), ("\\toprule", "\\bottomrule")):
        assert bare(text).count(one) == bare(text).count(other)
    assert bare(text).count("$") % 2 == 0
    # what inputenc knows without further packages
    assert set(re.findall(r"[^\x00-\xff“”‘’–—…]", text)) == set()


@pytest.mark.skipif(
    not shutil.which("pdflatex"), reason="pdflatex is not installed (Debian: texlive-latex-recommended)"
)
def test_they_compile_within_the_text_width(tmp_path: Path):
    tables = "\\clearpage\n".join(file.read_text(encoding="utf-8") for file in TABLES)
    (tmp_path / "tables.tex").write_text(DOCUMENT % tables, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    # a table of all estimates is longer than a page, as it says
    assert not re.findall(r"^(?:Overfull \\hbox|LaTeX Warning: (?!Label|Float too large)).*", done.stdout, flags=re.M)
