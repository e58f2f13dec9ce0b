"""The log and the last two minutes on the page, in Chromium: search, thumbnails, a caption, a link, downloads."""

import re
import time
from dataclasses import replace

import cv2
import numpy as np
import pytest

from smart_caption_ros.caption_log import CaptionLog
from smart_caption_ros.serving import Access, Hub, PageServer
from tests.caption_log.rows import START_NS, at, caption, full
from tests.serving.captions import live_caption

pytest.importorskip("uvicorn", reason="needs the extra serve")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: the extra test")


expect = sync_api.expect
JPEG = cv2.imencode(".jpg", np.full((240, 320, 3), 90, np.uint8))[1].tobytes()
CUP_MS, DAY_S = START_NS // 10**6, 86_400
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "captions.db"
    with CaptionLog(path) as opened:
        opened.append(replace(full(), pose=at(0.5, 0.5)), JPEG)
        opened.add(
            [
                caption("people in a kitchen", 60, camera="rear", objects=["cup"]),
                caption(MARKUP, 70, camera=MARKUP, robot=MARKUP),
                *(caption(f"chair {n}", -2 * DAY_S - n, camera="rear" if n % 2 else "arm") for n in range(70)),
            ]
        )
    return path


@pytest.fixture(scope="module")
def hub():
    return Hub()


@pytest.fixture(scope="module")
def server(hub, log):
    with PageServer(hub, Access(), log=log) as running:
        yield running


@pytest.fixture(scope="module")
def shared_page(browser):
    return browser.new_context(timezone_id="America/New_York", locale="en-GB").new_page()


@pytest.fixture
def page(open_page, server):
    return open_page(server, query="#before", interrupted=True)


def search(page, **fields):
    for name, text in fields.items():
        page.locator(f"#past [name={name}]").fill(text)
    page.get_by_role("button", name="Search").click()


def texts(page):
    return page.locator(".moment .text").all_text_contents()


def test_thumbnails_stand_by_day_and_camera_and_older_ones_follow(page):
    moments = page.locator(".moment")
    expect(moments).to_have_count(60)
    expect(page.locator("#to-before")).to_have_attribute("aria-current", "page")
    expect(page.locator("#view")).to_be_hidden()
    assert page.locator(".day > h2").all_text_contents() == ["Monday, 21 September 2026", "Saturday, 19 September 2026"]
    days = page.locator(".day")
    assert days.nth(0).locator("h3").all_text_contents() == [MARKUP, "front", "rear"]
    assert days.nth(1).locator("h3").all_text_contents() == ["arm", "rear"]
    assert days.nth(0).get_by_role("list", name="front, Monday").locator("img").count() == 1
    expect(days.nth(0).locator(".thumbnail", has_text="no picture kept").first).to_be_visible()
    assert page.locator(".past img[onerror]").count() == 0, "names and captions are text"
    older = page.get_by_role("button", name="Older captions")
    older.click()
    expect(moments).to_have_count(73)
    expect(older).to_be_hidden()
    expect(page.locator(".summary")).to_have_text("73 captions")
    assert days.count() == 2


def test_a_search_marks_the_words_and_says_what_else_matched(page):
    expect(page.locator(".moment")).to_have_count(60)
    search(page, words="cup")
    expect(page.locator(".moment")).to_have_count(2)
    assert page.locator(".moment mark").all_text_contents() == ["cup"]
    assert page.locator(".moment .reason").all_text_contents() == ["matched the object cup"] * 2
    expect(page).to_have_url(re.compile("#before[?]words=cup$"))
    page.locator("[name=camera]").select_option("rear")
    expect(page.locator(".moment")).to_have_count(1)
    assert texts(page) == ["people in a kitchen"]
    page.go_back()
    expect(page.locator(".moment")).to_have_count(2)
    expect(page.locator("[name=camera]")).to_have_value("")
    search(page, words="", near="0,0", radius="1")
    expect(page.locator(".moment")).to_have_count(1)
    search(page, near="", since="2026-09-21T14:14:00Z")
    expect(page.locator(".moment")).to_have_count(2)
    search(page, since="", words="zebra")
    expect(page.locator(".summary")).to_have_text("Nothing found.")
    search(page, words="", since="soon")
    expect(page.locator(".summary")).to_contain_text("'soon' is not a time: write 2026-11-22")
    expect(page.locator(".moment")).to_have_count(0)
    search(page, since="")
    expect(page.locator(".moment")).to_have_count(60)
    page.locator("[name=day]").fill("2026-09-21")  # of New York
    expect(page.locator(".moment")).to_have_count(3)


def test_a_caption_opens_with_its_boxes_and_the_link_opens_it_again(page, server):
    search(page, words="cup")
    expect(page.locator(".moment")).to_have_count(2)
    page.locator(".moment", has_text="a red cup").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Monday, 21 September 2026, 10:13:20, front")
    expect(dialog).to_be_visible()
    assert dialog.locator(".labels span").all_text_contents() == ["cup"]
    assert dialog.locator("g.object").count() == 2
    box = dialog.locator("g.object.named rect").last
    assert [float(box.get_attribute(name) or "") for name in ("x", "y", "width", "height")] == [0, 0, 9, 9]
    assert dialog.locator(".boxes").get_attribute("viewBox") == "0 0 640 480"
    dialog.locator(".words button", has_text="cup").hover()
    assert dialog.locator("g.active").get_attribute("data-name") == "cup"
    assert dialog.locator("g.found").get_attribute("data-name") == "cup"
    assert dialog.locator(".objects button.found bdi").all_text_contents() == ["cup"]
    expect(dialog.locator(".reason")).to_have_text("matched the object cup")
    assert "map 0.50, 0.50, 0.00" in (dialog.locator("dl").text_content() or "")
    with page.expect_download() as download:
        dialog.get_by_role("link", name="Download with boxes").click()
    assert download.value.suggested_filename == f"caption-{CUP_MS}.jpg"
    address = page.url
    assert address == f"{server.url}#before?words=cup&id={CUP_MS}"
    dialog.get_by_role("button", name="Later").click()
    later = page.get_by_role("dialog", name=re.compile("10:14:20, rear"))
    expect(later.locator(".message")).to_have_text("No picture of this caption is kept")
    expect(later.get_by_role("button", name="Later")).to_be_disabled()
    expect(later.get_by_role("link", name="Download")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    expect(page).to_have_url(f"{server.url}#before?words=cup")
    page.goto("about:blank")
    page.goto(address)
    expect(dialog).to_be_visible()
    expect(page.locator("[name=words]")).to_have_value("cup")
    expect(dialog.get_by_role("button", name="Later")).to_be_enabled()
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator(".moment")).to_have_count(2)


def test_the_result_is_downloaded(page):
    search(page, words="cup")
    expect(page.locator(".moment")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "captions.csv"
    assert "people in a kitchen" in download.value.path().read_text()


def test_targets_are_large_enough_and_nothing_is_wider_than_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".moment")).to_have_count(60)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = """() => [...document.querySelectorAll("#past input, #past select, #past button, #past .moment, nav a")]
        .filter((node) => node.getClientRects().length && node.getBoundingClientRect().height < 44)
        .map((node) => node.outerHTML)"""
    assert page.evaluate(small) == []
    page.goto(f"{page.url.split('#')[0]}#before?id={CUP_MS}")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate("document.querySelector('dialog').scrollWidth <= 390")


def test_the_page_says_which_command_writes_a_log_and_finds_what_is_written_while_it_is_open(browser, tmp_path):
    path = tmp_path / "captions.db"
    with PageServer(Hub(), Access(), log=path) as server:
        page = browser.new_page()
        page.goto(f"{server.url}#before")
        expect(page.locator("#past .summary")).to_contain_text(
            "`smart-caption log record` or caption_log_node writes it"
        )
        expect(page.locator("#past form")).to_be_hidden()
        with CaptionLog(path) as log:
            log.append(caption())
            page.locator("#to-now").click()
            page.locator("#to-before").click()
            expect(page.locator(".moment")).to_have_count(1)
            for count in (2, 3):
                log.append(caption(at_s=count))
                page.get_by_role("button", name="Search").click()
                expect(page.locator(".moment")).to_have_count(count)
        page.close()


def test_the_slider_shows_what_was_seen_in_the_last_two_minutes(page, hub, server):
    page.locator("#to-now").click()
    expect(page.locator("#connection")).to_contain_text("Connected")
    now_s = time.monotonic()
    for ago in (40, 30, 20, 0):
        hub.publish(replace(live_caption(f"a cup {ago} here"), received_monotonic_s=now_s - ago))
        expect(page.locator("#words")).to_have_text(f"a cup {ago} here")
    slider, words = page.get_by_role("slider", name="Time before now"), page.locator("#words")
    slider.fill("-29")
    expect(words).to_have_text("a cup 30 here")
    expect(page.locator("#scrub output")).to_have_text(re.compile(r"^3\d s ago$"))
    expect(page.locator("#view img.frame")).to_be_visible()
    hub.publish(live_caption("a new cup here"))
    slider.focus()
    page.keyboard.press("PageDown")
    expect(words).to_have_text("a cup 40 here")
    with page.expect_download() as download:
        page.locator("#scrub").get_by_role("link", name="Download with boxes").click()
    assert re.fullmatch(r"frame-\d+\.jpg", download.value.suggested_filename)
    page.get_by_role("button", name="Now").click()
    expect(words).to_have_text("a new cup here")
    expect(page.locator("#scrub output")).to_have_text("now")
