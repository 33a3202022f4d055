"""Sphinx: `make docs` builds the site into docs/_build/html."""

import sys
from pathlib import Path

import gpflow  # noqa: F401, before orbitgp, so that shapes are written into docstrings
from sphinx.application import Sphinx

import orbitgp

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "orbitgp"
author = "The orbitgp developers"
copyright = author
version = release = orbitgp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "myst_nb",
    "mathml",
    "measured",
    "repository_files",
    "settings",
]
exclude_patterns = ["_build", "quick", "extensions", "templates"]
templates_path = ["templates"]

html_theme = "furo"
html_title = f"orbitgp {version}"
html_show_sourcelink = False
html_math_renderer = "mathml"  # browsers draw it themselves: no script from elsewhere
html_static_path = ["static"]
html_css_files = ["site.css"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
# outputs are those that stand in the notebooks; tests/estimators/test_tutorials.py runs every cell
nb_execution_mode = "off"
nb_merge_streams = True

autosummary_generate = True
autosummary_ignore_module_all = False  # the public names of a package are those of __all__
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give meaning and shape
autoclass_content = "both"


def skip(app: object, what: str, name: str, *_: object) -> bool | None:
    """scikit-learn gives every estimator methods such as set_score_request, of no use here."""
    return True if name.endswith("_request") else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", skip)
