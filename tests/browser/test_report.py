"""The report, opened in a browser."""

import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
LOOK_AT = "app.setView({content: arguments[0], contentPath: results[arguments[1]].data_uri, resultPath: arguments[1]})"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    if not (CHROMIUM and DRIVER):
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def test_it_shows_every_figure_table_and_setting_without_an_error(smoke, browser):
    browser.get((smoke.results / "report.html").as_uri())
    wait = WebDriverWait(browser, 30)
    wait.until(lambda page: page.execute_script("return typeof app !== 'undefined' && app.state !== undefined"))
    assert "Learning Invariances" in browser.find_element("tag name", "h1").text or "Learning Invariances" in (
        browser.find_element("id", "app").text
    )
    categories = browser.execute_script("return categories")
    assert set(categories) == {"Figures", "Tables", "Claims", "Settings"}

    figures = [path for part in categories["Figures"].values() for path in part]
    assert {path.rsplit("/")[-1] for path in figures} == {path.name for path in smoke.results.glob("figures/*.svg")}
    for path in figures:
        browser.execute_script(LOOK_AT, "img", path)
        shown = (
            "return [...document.images].some(i => i.src === results[arguments[0]].data_uri && i.naturalWidth > 100)"
        )
        wait.until(lambda page, shown=shown, path=path: page.execute_script(shown, path), path)
        assert browser.execute_script("return results[arguments[0]].caption", path), f"{path} has no caption"

    for category, text in (("Tables", "2.15 ± 0.03"), ("Claims", "verdict"), ("Settings", "config/smoke.yaml")):
        texts = []
        for path in (path for part in categories[category].values() for path in part):
            browser.execute_script(LOOK_AT, "html", path)
            wait.until(lambda page: page.find_elements("tag name", "iframe"))
            browser.switch_to.frame(browser.find_element("tag name", "iframe"))
            wait.until(lambda page: page.find_element("tag name", "body").text)
            texts.append(browser.find_element("tag name", "body").text)
            browser.switch_to.default_content()
        assert any(text in found for found in texts), category

    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
