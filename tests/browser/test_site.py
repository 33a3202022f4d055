"""The documentation is built without a warning, leads nowhere that is not there, and is opened in a browser."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait
from workspaces import ROOT

pytest.importorskip("sphinx", reason="the documentation is built on Python 3.11 and 3.12")


class Page(HTMLParser):
    """What a page has (``ids``) and what it leads to (``targets``)."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.targets = {""}, set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        self.targets |= {found[key] for key in ("href", "src") if found.get(key)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of built pages."""
    built = tmp_path_factory.mktemp("site")
    shutil.rmtree(ROOT / "docs" / "generated", ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        built / "trees",
        "docs",
        built / "html",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return built / "html"


def test_every_link_leads_somewhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    lost = []
    for path, page in pages.items():
        for address in map(urlsplit, page.targets):
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if not target.is_file() or (target in pages and unquote(address.fragment) not in pages[target].ids):
                lost.append(f"{path.relative_to(site)}: {address.geturl()}")
    assert len(pages) > 50 and lost == []


def test_pages_have_what_they_are_made_from(site):
    def text(page: str) -> str:
        return re.sub(r"<[^>]+>", "", (site / page).read_text(encoding="utf-8"))

    assert "default 750" in text("configuration/training.html")  # from the models
    assert "evidence_std_error_" in text("generated/orbitgp.InvariantClassifier.html")  # from docstrings
    assert "range learned: 0." in text("tutorials/own-orbit.html")  # from a cell's output
    assert "<math" in (site / "method/index.html").read_text()


@pytest.mark.parametrize("width", [1280, 420])
def test_it_opens_without_an_error_and_fits(site, browser, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    pages = [page for page in site.rglob("*.html") if page.parent.name != "generated" and page.name != "search.html"]
    for page in [*pages, site / "generated" / "orbitgp.InvariantClassifier.html"]:
        browser.get(page.as_uri())
        # a busy machine may answer for the page before
        WebDriverWait(browser, 30).until(lambda shown: shown.find_elements("tag name", "h1"), str(page))
        loaded = "return [...document.images].every(image => image.complete && image.naturalWidth > 0)"
        assert browser.execute_script(loaded), page
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
