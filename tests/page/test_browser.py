"""The page in a real browser: Chromium, which CI installs."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.page.runs import HOSTILE, failing_run
from tests.report.builders import Shown, evidence, finding
from whygrad.model import Severity
from whygrad.page.rendering import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed (CI installs it)")
SCREENSHOTS = Path("test-artifacts", "page")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a run's page; what the console said and what was asked for must stay empty."""
    heard, asked, pages = [], [], []

    def open_page(run, width=1200, height=900, **options):
        file = tmp_path / f"page{len(pages)}.html"
        file.write_text(render(run), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        pages.append(page)
        return page

    yield open_page
    assert heard == []
    assert [url for url in asked if not url.startswith("file:")] == []
    for page in pages:
        page.context.close()


def pixels(page):
    return page.evaluate("document.querySelector('#model canvas').toDataURL()")


def test_the_cause_is_seen_without_scrolling(opened):
    page = opened(failing_run())

    for words in ("1 of 2 parameters do not learn", "`head.weight` is cut off", "train.py:41"):
        box = page.get_by_text(words).first.bounding_box()
        assert box["y"] + box["height"] < 900


def test_a_card_expands_and_collapses_by_keyboard(opened):
    page = opened(failing_run())
    card = page.locator(".card").first
    assert card.get_attribute("open") is not None

    card.locator("summary").focus()
    page.keyboard.press("Enter")

    assert card.get_attribute("open") is None


def test_the_filter_hides_findings_of_a_level(opened):
    found = [finding("detached", Severity.ERROR), finding("dead-relu", Severity.WARNING)]
    page = opened(failing_run(findings=found))

    page.locator("input[data-level=warning]").uncheck()

    assert page.locator(".card.error").is_visible()
    assert not page.locator(".card.warning").is_visible()


def test_the_switch_changes_the_picture(opened):
    page = opened(failing_run())
    before = pixels(page)

    page.get_by_label("update / weight").first.check()

    assert pixels(page) != before
    assert "update against the weight" in page.locator("#scale").inner_text()


def test_filtering_by_name_leaves_the_matching_rows(opened):
    page = opened(failing_run())

    page.locator("#filter").fill("body")

    assert page.locator("#depth .row").count() == 1
    assert "body.weight" in page.locator("#depth .row").inner_text()


def test_arrow_keys_read_the_picture_and_enter_opens_a_parameter(opened):
    page = opened(failing_run())
    page.locator("#model").focus()

    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")

    told = page.locator("#cell").inner_text()
    assert told.startswith("head.weight, step 0")
    assert "not recorded (cut, cut by detach (detach) at train.py:41)" in told
    page.keyboard.press("Enter")
    assert page.locator("#tensor option:checked").inner_text() == "head.weight"


def test_the_depth_follows_the_step_and_shows_outputs(opened):
    page = opened(failing_run())
    first = page.locator("#depth .row").first.inner_text()

    page.locator("#step").fill("19")
    assert page.locator("#step-number").inner_text() == "19"
    assert page.locator("#depth .row").first.inner_text() != first

    page.get_by_label("module outputs").check()
    assert page.locator("#depth .row").inner_text().startswith("body")


def test_a_link_opens_the_rules_page(opened):
    page = opened(failing_run())
    assert page.locator("#rule-detached").get_attribute("open") is None

    page.get_by_role("link", name="what detached measures").click()

    assert page.locator("#rule-detached").get_attribute("open") is not None


def test_curves_are_drawn(opened):
    page = opened(failing_run())

    assert page.locator("#tensor-charts canvas").count() == 4
    assert page.locator("#loop canvas").count() == 1
    assert page.locator("#loop .u-series").count() == 3  # step, loss, learning rate
    told = page.locator("#loop-events").inner_text()
    assert "gradients clipped by norm to 1: 4 of 9 calls were above, by 2.5x on average at train.py:12" in told
    assert "step 3: the loop of optimizer is backward x2, step, 4 times until step 9" in told
    assert "step 5: nonfinite loss at train.py:12" in told


def test_hostile_names_do_nothing(opened):
    run = failing_run(
        names=(HOSTILE, "head.weight"), findings=[finding("detached", tensors=(HOSTILE,), message=HOSTILE)]
    )

    page = opened(run)

    assert page.locator("img").count() == 0
    assert page.title().startswith("whygrad:")


def test_a_run_without_anything_opens(opened):
    page = opened(Shown((evidence(steps=0, recorded_steps=0, backwards=0),)))

    assert "no training was observed" in page.locator("h1").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1400])
def test_it_fits_every_width(opened, width, scheme):
    page = opened(failing_run(), width=width, color_scheme=scheme)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{width}-{scheme}.png", full_page=True)


def test_300_parameters_over_2000_steps_open_and_filter(opened):
    names = [f"encoder.layers.{i // 12}.block.linear{i % 12}.weight" for i in range(300)]
    page = opened(failing_run(names=names, steps=2000))

    page.locator("#filter").fill("layers.24.")

    assert page.locator("#depth .row").count() == 12
