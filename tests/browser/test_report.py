"""Snakemake's report, opened in a browser."""

from selenium.webdriver.support.ui import WebDriverWait

LOOK_AT = "app.setView({content: arguments[0], contentPath: results[arguments[1]].data_uri, resultPath: arguments[1]})"


def test_it_begins_with_what_came_out_and_shows_every_figure_and_the_page_without_an_error(smoke, browser):
    browser.set_window_size(1280, 900)
    browser.get((smoke.results / "report.html").as_uri())
    wait = WebDriverWait(browser, 30)
    wait.until(lambda page: page.execute_script("return typeof app !== 'undefined' && app.state !== undefined"))
    first = browser.find_element("id", "app").text
    assert all(text in first for text in ("Learning Invariances", "2.15 ± 0.03", "claims: "))
    categories = browser.execute_script("return categories")
    assert set(categories) == {"Figures", "Page"}

    figures = [path for part in categories["Figures"].values() for path in part]
    assert {path.rsplit("/")[-1] for path in figures} == {path.name for path in smoke.results.glob("figures/*.svg")}
    for path in figures:
        browser.execute_script(LOOK_AT, "img", path)
        shown = (
            "return [...document.images].some(i => i.src === results[arguments[0]].data_uri && i.naturalWidth > 100)"
        )
        wait.until(lambda page, shown=shown, path=path: page.execute_script(shown, path), path)
        assert browser.execute_script("return results[arguments[0]].caption", path), f"{path} has no caption"

    [path] = (path for part in categories["Page"].values() for path in part)
    browser.execute_script(LOOK_AT, "html", path)
    wait.until(lambda page: page.find_elements("tag name", "iframe"))
    browser.switch_to.frame(browser.find_element("tag name", "iframe"))
    wait.until(lambda page: "How to make it again" in page.find_element("tag name", "body").text)
    browser.switch_to.default_content()

    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
