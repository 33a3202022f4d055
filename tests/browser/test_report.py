"""The report, opened in a browser."""

from selenium.webdriver.support.ui import WebDriverWait

LOOK_AT = "app.setView({content: arguments[0], contentPath: results[arguments[1]].data_uri, resultPath: arguments[1]})"


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
