"""The page of results, opened in a browser: wide and narrow, light and dark, and as it prints."""

from base64 import b64decode
from pathlib import Path

import pytest
from workspaces import ROOT

PAGES = {"paper": ROOT / "results" / "paper" / "index.html", "smoke": None}
WIDTHS = (1280, 420)


def opened(browser, page: Path, width: int, **media: str):
    """The page in a window of this many pixels; media are features such as ``prefers_color_scheme="dark"``."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page.as_uri())
    return browser


@pytest.fixture(params=PAGES)
def page(request) -> Path:
    return PAGES[request.param] or request.getfixturevalue("smoke").results / "index.html"


@pytest.mark.parametrize("width", WIDTHS)
def test_every_figure_is_seen_and_nothing_scrolls_sideways(page: Path, width: int, browser):
    opened(browser, page, width)
    figures = {file.stem for file in page.parent.glob("figures/*.svg")}
    shown = "return [...document.images].map(i => [i.closest('article').id, i.naturalWidth, i.clientWidth])"
    found = {name: (natural, seen) for name, natural, seen in browser.execute_script(shown)}
    assert set(found) == figures
    assert all(natural > 100 and 250 < seen <= width for natural, seen in found.values()), found
    for unfold in (False, True):
        if unfold:
            browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        whole, window = browser.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert width - 20 <= window <= width and whole <= window  # less a scroll bar
    tables = {file.stem for file in page.parent.glob("tables/*.csv")}
    assert len(browser.find_elements("css selector", "details table")) == len(tables)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_light_and_dark_are_both_readable(page: Path, browser):
    luminance = """
        const parts = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
        const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
        const weights = [0.2126, 0.7152, 0.0722]
        const bright = colour => parts(colour).map(linear).reduce((sum, v, i) => sum + v * weights[i], 0)
        const style = getComputedStyle(document.body)
        const faint = getComputedStyle(document.querySelector('.note'))
        return [style.backgroundColor, style.color, faint.color].map(bright)"""
    found = {}
    for scheme in ("light", "dark"):
        opened(browser, page, 1280, prefers_color_scheme=scheme)
        found[scheme] = ground, *inks = browser.execute_script(luminance)
        for ink in inks:  # at least what the Web's guidelines ask of text
            assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) > 4.5
    assert found["light"][0] > 0.9 and found["dark"][0] < 0.1


def test_it_prints(page: Path, browser):
    printed = b64decode(opened(browser, page, 1280).print_page())
    assert printed.startswith(b"%PDF") and len(printed) > 100_000
