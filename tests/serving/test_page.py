"""The page in a real browser, Chromium: what a person sees, points at, hears and types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest

from smart_caption_ros.live import CameraSummary, Health
from smart_caption_ros.serving import Access, Hub, PageServer, make_token
from smart_caption_ros.serving.page_json import status_json
from tests.serving.captions import SIZE, live_caption

pytest.importorskip("uvicorn", reason="needs the extra serve")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: the extra test")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

expect = sync_api.expect
expect.set_options(timeout=20_000)
Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def hub() -> Hub:
    return Hub("kitchen.mp4")


@pytest.fixture(scope="module")
def server(hub: Hub) -> Iterator[PageServer]:
    with PageServer(hub, Access.of()) as running:
        yield running


@pytest.fixture(scope="module")
def shared_page(browser: Browser) -> Page:
    """A page for many tests, because a new one takes most of the time of a test."""
    return browser.new_context().new_page()


@pytest.fixture
def open_page(browser: Browser, shared_page: Page) -> Iterator[Open]:
    """Opens the page of a server; at the end, nothing went wrong in it and no request went to another server."""
    urls: list[str] = []
    wrong: list[str] = []
    servers: list[str] = []
    listeners: dict[str, Any] = {
        "request": lambda request: urls.append(request.url),
        "console": lambda message: wrong.append(message.text),
        "pageerror": lambda error: wrong.append(str(error)),
        "dialog": lambda dialog: (wrong.append(dialog.message), dialog.dismiss()),
    }

    def opened(server: PageServer, query: str = "", alone: bool = False, interrupted: bool = False) -> Page:
        """
        Args:
            server: whose page.
            query: follows its address.
            alone: opens a page for this test, whose clock the test may set.
            interrupted: whether failed requests are right.
        """
        page = shared_page
        if alone:
            page = browser.new_context().new_page()
            page.clock.install()
        page.set_default_timeout(20_000)
        for event, listener in listeners.items():
            if event != "console" or not interrupted:
                page.on(event, listener)  # type: ignore[call-overload]
        servers.append(server.url)
        page.goto(server.url + query)
        expect(page.locator("#connection")).to_contain_text("Connected")
        return page

    yield opened
    if shared_page.url.startswith("http"):
        shared_page.evaluate("localStorage.clear()")
        shared_page.emulate_media(color_scheme="light")
        shared_page.goto("about:blank")
    for event, listener in listeners.items():
        with suppress(KeyError):  # the test opened a page of its own
            shared_page.remove_listener(event, listener)
    assert urls
    assert [url for url in urls if not url.startswith((*servers, "about:"))] == []
    assert wrong == []


def publish(hub: Hub, page: Page, text: str, **settings: Any) -> None:
    """Publish a caption and wait until the page shows it."""
    hub.publish(live_caption(text, **settings))
    expect(page.locator("#words")).to_have_text(re.sub(r"\s", "", text))


def set_system_colours(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)


def active_objects(page: Page) -> list[str]:
    return page.locator("#boxes g.active text").all_text_contents()


def test_a_caption_its_frame_its_measures_and_its_alternatives_are_shown(
    hub: Hub, server: PageServer, open_page: Open
) -> None:
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp", alternative="a tall lamp")
    expect(page.locator("#source")).to_have_text("kitchen.mp4")
    expect(page.locator("#frame")).to_be_visible()
    assert page.locator("#frame").evaluate("it => [it.naturalWidth, it.naturalHeight]") == list(SIZE)
    assert page.locator("#frame").get_attribute("alt") == "Frame of front"
    assert page.locator("#boxes text").all_text_contents() == ["cup", "table"]
    box = page.locator("#boxes g.object").first.locator("rect").last
    assert [float(box.get_attribute(name) or "") for name in ("x", "y", "width", "height")] == [4, 8, 16, 16]
    expect(page.locator("#alternatives li")).to_have_text("-2.50 a tall lamp")
    measures = dict(zip(*(page.locator(f"#measures {tag}").all_text_contents() for tag in ("dt", "dd")), strict=True))
    assert measures["Coverage"] == measures["Nouns supported"] == "0.50"
    assert (measures["Not named"], measures["Age"], measures["Model"]) == ("table", "100 ms", "small")
    assert [node.get_attribute("aria-label") for node in page.locator("#charts svg").all()] == [
        f"{name} over the last two minutes: from {low} to {low}"
        for name, low in (("Coverage", "0.50"), ("Age", "100 ms"))
    ]
    # Boxes stand where the picture is, also where the window limits its height.
    page.set_viewport_size({"width": 1200, "height": 300})
    on_screen = page.locator("#boxes").evaluate(
        "it => { const m = it.getScreenCTM(), r = it.getBoundingClientRect();"
        " return [m.a * 64, m.d * 48, r.width, r.height]; }"
    )
    assert on_screen[1] == pytest.approx(on_screen[3], abs=1)
    assert page.locator("#frame").evaluate("it => getComputedStyle(it).objectFit") == "contain"
    page.set_viewport_size({"width": 1280, "height": 720})


def test_pointing_at_a_noun_marks_its_box_and_pointing_at_a_box_marks_its_noun(
    hub: Hub, server: PageServer, open_page: Open
) -> None:
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    words = page.locator("#words button")
    words.nth(1).hover()
    assert active_objects(page) == ["cup"]
    expect(page.locator("#detail")).to_have_text("cup, names the object cup 90 %, probability 80 %")
    looked = page.locator("#boxes rect.looked")
    assert looked.get_attribute("visibility") == "visible"
    assert looked.get_attribute("x") == "1"
    words.nth(4).hover()
    assert active_objects(page) == []
    expect(page.locator("#detail")).to_have_text("lamp, no object supports it, probability 80 %")
    assert looked.get_attribute("x") == "4"
    # The box goes on being marked in the next frame.
    words.nth(1).hover()
    publish(hub, page, "the cup near a lamp")
    assert active_objects(page) == ["cup"]
    page.locator("#boxes g.object").first.locator("rect").last.hover()
    expect(words.nth(1)).to_have_class(re.compile("active"))
    page.locator("h1").hover()
    assert active_objects(page) == []
    assert looked.get_attribute("visibility") == "hidden"


def test_the_keyboard_reaches_everything_in_order_and_marks_what_has_the_focus(
    hub: Hub, server: PageServer, open_page: Open
) -> None:
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    focused = "() => document.activeElement.id || document.activeElement.textContent"

    def pressed(key: str) -> str:
        page.keyboard.press(key)
        return str(page.evaluate(focused))

    order = ["to-now", "to-before", "pause", "announce", "theme", "time-before-now", "download-frame", "a", "cup 90 %"]
    order.append("table 50 %, not named")
    assert [pressed("Tab") for _ in order] == order
    assert active_objects(page) == ["table"]
    assert [pressed("Shift+Tab"), pressed("Shift+Tab")] == ["cup 90 %", "a"]
    assert pressed("ArrowRight") == "cup"
    assert active_objects(page) == ["cup"]
    publish(hub, page, "one cup beside a lamp")
    assert page.evaluate(focused) == "cup", "a new caption takes the focus from nobody"
    assert active_objects(page) == ["cup"]
    assert [pressed("End"), pressed("ArrowRight"), pressed("Home"), pressed("ArrowLeft")] == [
        "lamp",
        "lamp",
        "one",
        "one",
    ]
    pressed("ArrowRight")
    page.keyboard.press("Enter")
    page.locator("#pause").focus()
    assert active_objects(page) == ["cup"], "Enter keeps the word marked"
    label = page.locator("#words button").nth(1).get_attribute("aria-label")
    assert label == "cup, names the object cup 90 %, probability 80 %"


def test_colours_follow_the_system_until_the_button_chooses(hub: Hub, server: PageServer, open_page: Open) -> None:
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    set_system_colours(page, "dark")
    background = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    set_system_colours(page, "light")
    light = page.evaluate(background)
    assert light != dark
    page.locator("#theme").click()
    assert page.evaluate(background) == dark
    page.reload()
    expect(page.locator("#theme")).to_have_text("Light")
    assert page.evaluate(background) == dark, "the choice is kept"


CONTRAST = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((channel) => channel / 255)
    .map((channel) => (channel <= 0.03928 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4))
    .reduce((sum, channel, place) => sum + channel * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (node) => {
    for (let it = node; it; it = it.parentElement) {
      const colour = parts(getComputedStyle(it).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
  };
  return [...document.querySelectorAll("h1, h2, p, dt, dd, button, li span, .chart span, .chart strong")]
    .filter((node) => node.textContent.trim() && node.getClientRects().length)
    .map((node) => {
      const [one, other] = [luminance(parts(getComputedStyle(node).color)), luminance(behind(node))];
      return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), node.outerHTML];
    })
    .filter(([contrast]) => contrast < 4.5);
}"""


def test_text_has_the_contrast_that_wcag_asks_for(hub: Hub, server: PageServer, open_page: Open) -> None:
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    set_system_colours(page, "light")
    assert page.evaluate(CONTRAST) == []
    set_system_colours(page, "dark")
    assert page.evaluate(CONTRAST) == []


def test_a_screen_reader_hears_changed_captions_alone_and_one_in_five_seconds(
    hub: Hub, server: PageServer, open_page: Open
) -> None:
    hub.publish(live_caption("a first caption here"))
    page = open_page(server, alone=True)
    region = page.locator("#announcement")
    assert region.get_attribute("aria-live") == "polite"
    expect(region).to_have_text("a first caption here")
    page.clock.pause_at(page.evaluate("() => Date.now() + 60_000"))
    page.evaluate(
        "() => { const region = document.getElementById('announcement'); window.said = [];"
        " new MutationObserver(() => said.push(region.textContent)).observe(region, {childList: true}); }"
    )
    publish(hub, page, "a second caption here")  # the last one was a minute ago
    for text in ("a third caption here", "a fourth caption here", "a fifth caption here"):
        publish(hub, page, text)
    assert page.evaluate("said") == ["a second caption here"]
    page.clock.run_for(4900)
    assert page.evaluate("said") == ["a second caption here"]
    page.clock.run_for(200)
    assert page.evaluate("said") == ["a second caption here", "a fifth caption here"], "the newest, not each"
    page.clock.run_for(20_000)
    publish(hub, page, "a fifth caption here", age_s=0.7)
    assert len(page.evaluate("said")) == 2, "the same words are not read again"
    page.locator("#announce").click()
    expect(page.locator("#announce")).to_have_attribute("aria-pressed", "false")
    publish(hub, page, "a sixth caption here")
    page.clock.run_for(20_000)
    assert page.evaluate("said")[2:] in ([], [""]), "switched off"


def test_markup_in_a_caption_an_object_or_an_alternative_is_text(hub: Hub, server: PageServer, open_page: Open) -> None:
    page = open_page(server)
    word, name, other, message = (
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        '"><svg onload=alert(1)>',
        "&lt;b&gt; <iframe src=//evil.example>",
    )
    live = live_caption(word, alternative=other)
    (noun, *_), (named, *_) = (live.grounding.nouns if live.grounding else ()), live.caption.objects
    objects = (replace(named, class_name=name),)
    caption = replace(live.caption, objects=objects, words=(replace(live.caption.words[0], text=word),), model=other)
    grounding = replace(live.grounding, nouns=(replace(noun, word_index=0),), missed_classes=(name,))
    hub.publish(replace(live, caption=caption, grounding=grounding, status_message=message))
    expect(page.locator("#words")).to_have_text(word)
    expect(page.locator("#alternatives bdi")).to_have_text(other)
    expect(page.locator("#notice")).to_have_text(message)
    assert page.locator("#boxes text").text_content() == name
    page.locator("#words button").hover()
    expect(page.locator("#detail")).to_contain_text(word)
    assert page.locator("#view img, #view script, #view iframe, [onload], [onerror]").count() == 1, "the frame alone"


def test_pause_keeps_a_caption_and_going_on_shows_the_newest(hub: Hub, server: PageServer, open_page: Open) -> None:
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    page.locator("#pause").click()
    hub.publish(live_caption("a dog beside a lamp"))
    hub.publish(live_caption("a cat beside a lamp"))
    expect(page.locator("#words")).to_have_text("acupbesidealamp")
    page.locator("#pause").click()
    expect(page.locator("#words")).to_have_text("acatbesidealamp")


def test_cameras_are_tabs_and_a_feed_without_captions_says_what_it_waits_for(open_page: Open) -> None:
    hub = Hub()
    with PageServer(hub, Access.of()) as server:
        hub.update_status(status_json([], ["a publisher of /robot/caption"], {}))
        page = open_page(server, alone=True)
        expect(page.locator("#notice")).to_have_text("Waiting for a publisher of /robot/caption")
        expect(page.locator("#cameras")).to_be_hidden()
        guessed = CameraSummary("robot", "/front/caption", True, 0, {}, 0, 0, 0.0, None, None, None)
        hub.update_status(status_json([guessed], ["a caption"], {}))
        expect(page.locator("#notice")).to_have_text("Waiting for a caption")
        hub.update_status(status_json([], [], {}))
        publish(hub, page, "a cup beside a lamp", camera="front")
        expect(page.locator("#notice")).to_be_hidden()
        expect(page.locator("#cameras")).to_be_hidden()
        hub.publish(live_caption("a dog beside a lamp", camera="rear", shade=None))
        rear = page.get_by_role("tab", name="rear")
        expect(rear).to_have_attribute("aria-selected", "false")
        page.get_by_role("tab", name="front").focus()
        page.keyboard.press("ArrowRight")
        expect(rear).to_be_focused()
        expect(page.locator("#words")).to_have_text("adogbesidealamp")
        expect(page.locator("#frame")).to_be_hidden()
        publish(hub, page, "a fox beside a lamp", camera="rear")
        expect(page.locator("#frame")).to_be_visible()
        page.clock.fast_forward(61_000)
        expect(page.locator("#notice")).to_contain_text("No new caption for a minute.")
        gone = CameraSummary("rear", "/rear", False, 1, {}, 0, 0, 0.0, None, None, None, Health.UNKNOWN)
        hub.update_status(status_json([gone], [], {"rear": "/rear has no publisher any more"}))
        expect(page.locator("#notice")).to_contain_text("/rear has no publisher any more")
        page.close()


def test_a_camera_that_gave_way_to_others_leaves_the_page_which_says_why(open_page: Open) -> None:
    hub = Hub()
    with PageServer(hub, Access.of()) as server:
        page = open_page(server, alone=True)
        publish(hub, page, "a cup beside a lamp", camera="invented")
        for camera in ("front", "rear"):
            hub.publish(live_caption("a dog beside a lamp", camera=camera))
        expect(page.get_by_role("tab")).to_have_count(3)
        known = [CameraSummary(name, name, True, 1, {}, 0, 0, 1.0, None, None, None) for name in ("front", "rear")]
        hub.update_status(status_json(known, [], {}, forgotten=1))
        expect(page.locator("#notice")).to_contain_text("More than 64 cameras: those that were silent for the longest")
        expect(page.get_by_role("tab")).to_have_count(2)
        expect(page.locator("#words")).to_have_text("adogbesidealamp")
        page.close()


def test_the_page_says_that_the_server_is_away_and_connects_again(open_page: Open) -> None:
    hub = Hub()
    with PageServer(hub, Access.of()) as server:
        page = open_page(server, interrupted=True)
        publish(hub, page, "a cup beside a lamp")
    expect(page.locator("#connection")).to_have_text("The server does not answer; trying again …")
    expect(page.locator("#words")).to_have_text("acupbesidealamp")
    token = make_token()
    with PageServer(Hub(), Access.of(token), port=server.port):
        expect(page.locator("#connection")).to_contain_text("open the address that it printed")
    hub = Hub()
    with PageServer(hub, Access.of(), port=server.port):
        expect(page.locator("#connection")).to_have_text("Connected")
        publish(hub, page, "a new lamp here")


def test_the_address_with_the_token_opens_the_page_and_takes_the_token_out_of_it(open_page: Open) -> None:
    hub, token = Hub(), make_token()
    with PageServer(hub, Access.of(token)) as server:
        page = open_page(server, query=f"?token={token}", alone=True)
        publish(hub, page, "a cup beside a lamp")
        expect(page.locator("#frame")).to_be_visible()
        assert page.url == server.url
        page.close()
