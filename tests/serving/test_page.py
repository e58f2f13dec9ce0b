"""The page in a real browser, Chromium: what a person sees, points at, hears and types."""

import re
from dataclasses import replace

import pytest

from smart_caption_ros.serving import Access, Hub, PageServer, make_token
from tests.serving.captions import SIZE, live_caption

pytest.importorskip("uvicorn", reason="needs the extra serve")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: the extra test")

expect = sync_api.expect
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def hub():
    return Hub("kitchen.mp4")


@pytest.fixture(scope="module")
def server(hub):
    with PageServer(hub, Access()) as running:
        yield running


def publish(hub, page, text, **settings):
    """Publish a caption of the only camera and wait until the page shows it."""
    hub.publish(live_caption(text, **settings))
    expect(page.locator("#words")).to_have_text(text)


def set_system_colours(page, scheme):
    page.emulate_media(color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)


def active_objects(page):
    return [group.get_attribute("data-name") or "" for group in page.locator("#view g.active").all()]


def test_a_caption_its_frame_its_measures_and_its_alternatives_are_shown(hub, server, open_page):
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp", alternative="a tall lamp")
    expect(page.locator("#source")).to_have_text("kitchen.mp4")
    expect(page.locator("#view img.frame")).to_be_visible()
    assert page.locator("#view img.frame").evaluate("it => [it.naturalWidth, it.naturalHeight]") == list(SIZE)
    assert page.locator("#view img.frame").get_attribute("alt") == "Frame of front"
    assert page.locator("#view .labels span").all_text_contents() == ["cup"], "what is not named has no label"
    box = page.locator("#view g.object.named rect").last
    assert [float(box.get_attribute(name) or "") for name in ("x", "y", "width", "height")] == [4, 8, 16, 16]
    assert [item.inner_text().split("\n") for item in page.locator("#alternatives li").all()] == [
        ["-1.00", "a cup beside a lamp", "the caption"],
        ["-2.50", "a tall lamp"],
    ]
    measures = dict(zip(*(page.locator(f"#measures {tag}").all_text_contents() for tag in ("dt", "dd")), strict=True))
    assert measures["Coverage"] == measures["Nouns supported"] == "0.50"
    assert (measures["Camera to caption"], measures["Model"]) == ("100 ms", "small")
    assert (measures["Confidence"], measures["Calibrated confidence"]) == ("0.70", "0.63")
    assert page.locator("#objects small").all_text_contents() == ["90 %", "50 %, not named"]
    assert [node.get_attribute("aria-label") for node in page.locator("#charts svg").all()] == [
        f"{name} over the last two minutes: from {low} to {low}"
        for name, low in (("Coverage", "0.50"), ("Camera to caption", "100 ms"))
    ]
    # Boxes stand where the picture is, also where the window limits its height.
    page.set_viewport_size({"width": 1200, "height": 300})
    on_screen = page.locator("#view .boxes").evaluate(
        "it => { const m = it.getScreenCTM(), r = it.getBoundingClientRect();"
        " return [m.a * 64, m.d * 48, r.width, r.height]; }"
    )
    assert on_screen[1] == pytest.approx(on_screen[3], abs=1)


def test_pointing_at_a_noun_marks_its_box_and_pointing_at_a_box_marks_its_noun(hub, server, open_page):
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    words = page.locator("#words button")
    words.nth(1).hover()
    assert active_objects(page) == ["cup"]
    expect(page.locator("#detail")).to_have_text("cup, names the object cup 90 %, probability 78 %")
    looked, spot = page.locator("#view .looked"), page.locator("#view .looked ellipse")
    assert looked.get_attribute("visibility") == "visible"
    assert spot.get_attribute("cx") == "1.5"
    words.nth(4).hover()
    assert active_objects(page) == []
    expect(page.locator("#detail")).to_have_text("lamp, no object supports it, probability 78 %")
    assert spot.get_attribute("cx") == "4.5"
    page.locator("#view g.object.named rect").last.hover()
    expect(words.nth(1)).to_have_class(re.compile("active"))
    page.locator("#objects button").last.hover()
    assert active_objects(page) == ["table"]
    page.locator("h1").hover()
    assert active_objects(page) == []
    assert looked.get_attribute("visibility") == "hidden"


def test_a_marked_word_holds_the_caption_until_nothing_is_marked(hub, server, open_page):
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    words = page.locator("#words")
    words.locator("button").nth(1).click()
    page.locator("h1").hover()
    hub.publish(live_caption("a dog runs to a cup"))
    expect(page.locator("#state-age")).to_contain_text("held while a word or an object is marked")
    expect(words).to_have_text("a cup beside a lamp")
    assert active_objects(page) == ["cup"]
    page.keyboard.press("Escape")
    expect(words).to_have_text("a dog runs to a cup")
    words.locator("button").first.hover()
    hub.publish(live_caption("a cat runs to a cup"))
    page.wait_for_timeout(600)
    expect(words).to_have_text("a dog runs to a cup")
    page.locator("h1").hover()
    expect(words).to_have_text("a cat runs to a cup")


def test_the_keyboard_reaches_everything_in_order_and_marks_what_has_the_focus(hub, server, open_page):
    page = open_page(server)
    publish(hub, page, "a cup beside a lamp")
    focused = "() => document.activeElement.id || document.activeElement.textContent"

    def pressed(key):
        page.keyboard.press(key)
        return str(page.evaluate(focused))

    order = ["to-now", "to-before", "pause", "announce", "wall", "theme", "a", "time-before-now", "download-frame"]
    order += ["cup  90 % ", "table  50 %, not named "]
    assert [pressed("Tab") for _ in order] == order
    assert active_objects(page) == ["table"]
    assert [pressed("Shift+Tab") for _ in range(4)] == ["cup  90 % ", "download-frame", "time-before-now", "a"]
    assert pressed("ArrowRight") == "cup"
    assert active_objects(page) == ["cup"]
    hub.publish(live_caption("one cup beside a lamp"))
    expect(page.locator("#state-age")).to_contain_text("held")
    assert page.evaluate(focused) == "cup", "a new caption takes the focus from nobody"
    assert active_objects(page) == ["cup"]
    assert [pressed("End"), pressed("ArrowRight"), pressed("Home"), pressed("ArrowLeft")] == ["lamp", "lamp", "a", "a"]
    pressed("ArrowRight")
    page.keyboard.press("Enter")
    page.locator("#pause").focus()
    assert active_objects(page) == ["cup"], "Enter keeps the word marked"
    label = page.locator("#words button").nth(1).get_attribute("aria-label")
    assert label == "cup, names the object cup 90 %, probability 78 %"


def test_colours_follow_the_system_until_the_button_chooses(hub, server, open_page):
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
    expect(page.locator("#theme")).to_have_attribute("title", "Light colours")
    assert page.evaluate(background) == dark, "the choice is kept"


def test_a_screen_reader_hears_changed_captions_alone_and_one_in_five_seconds(hub, server, open_page):
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


def test_markup_in_a_caption_an_object_or_an_alternative_is_text(hub, server, open_page):
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
    expect(page.locator("#alternatives bdi").last).to_have_text(other)
    expect(page.locator("#notice")).to_contain_text(message)
    assert page.locator("#view .labels span").text_content() == name
    page.locator("#words button").hover()
    expect(page.locator("#detail")).to_contain_text(word)
    assert page.locator("#now img, #now script, #view iframe, [onload], [onerror]").count() == 1, "the frame alone"


def test_the_page_says_that_the_server_is_away_and_connects_again(open_page):
    hub = Hub()
    with PageServer(hub, Access()) as server:
        page = open_page(server, interrupted=True)
        publish(hub, page, "a cup beside a lamp")
    expect(page.locator("#connection")).to_have_text("The server does not answer; trying again …")
    expect(page.locator("#words")).to_have_text("a cup beside a lamp")
    token = make_token()
    with PageServer(Hub(), Access(token), port=server.port):
        expect(page.locator("#connection")).to_contain_text("open the address that it printed")
    hub = Hub()
    with PageServer(hub, Access(), port=server.port):
        expect(page.locator("#connection")).to_have_text("Connected")
        publish(hub, page, "a new lamp here")
