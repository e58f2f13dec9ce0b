"""The states of the page in Chromium: all cameras, one, dead ones, none; extremes, phones; axe finds nothing in any."""

import time
from dataclasses import replace

import pytest

from smart_caption_ros.caption_log import CaptionLog
from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.grounding.named_objects import GroundedNoun
from smart_caption_ros.live import CameraSummary, Health
from smart_caption_ros.record import CaptionStatus
from smart_caption_ros.serving import Access, Hub, PageServer
from smart_caption_ros.serving.page_json import status_json
from tests.caption_log.rows import JPEG, full
from tests.serving.captions import CUP, live_caption

pytest.importorskip("uvicorn", reason="needs the extra serve")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: the extra test")
axe_module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

expect = sync_api.expect
AXE = axe_module.Axe()
MINUTE_S = 60.0


@pytest.fixture
def hub():
    return Hub("kitchen.mp4")


@pytest.fixture
def server(hub, tmp_path):
    with PageServer(hub, Access(), log=tmp_path / "captions.db") as running:
        yield running


def faults(page):
    """What axe finds in the page as it is now, in light and in dark colours."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        for violation in AXE.run(page).response["violations"]:
            nodes = [(node["target"], node["failureSummary"]) for node in violation["nodes"]]
            found.append(f"{scheme}: {violation['id']}: {nodes[:3]}")
    return found


def summary(camera, **settings):
    return replace(CameraSummary(camera, f"/{camera}", True, 1, {}, 0, 0, 5.0, None, None, None), **settings)


def received_before(live, seconds):
    return replace(live, received_monotonic_s=time.monotonic() - seconds)


def with_objects(live, objects):
    return replace(live, caption=replace(live.caption, objects=tuple(objects)))


def rectangle(node):
    box = node.bounding_box()
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


def test_without_a_caption_the_picture_says_what_is_missing_and_nothing_else_is_shown(hub, server, open_page):
    hub.update_status(status_json([], ["a publisher of /caption: does it run (`ros2 node list`)?"], {}))
    page = open_page(server)
    empty = page.locator("#picture #empty")
    expect(empty).to_have_text("Waiting for a publisher of /caption: does it run (ros2 node list)?")
    assert empty.locator("code").text_content() == "ros2 node list"
    for hidden in (".facts", "#words", "#charts", "#scrub", "#measures"):
        expect(page.locator(hidden)).to_be_hidden()
    expect(page).to_have_title("Waiting \N{EN DASH} smart-caption")
    assert faults(page) == []
    hub.publish(live_caption())
    expect(page.locator("#words")).to_have_text("a cup beside a lamp")
    expect(page).to_have_title("front: Live \N{EN DASH} smart-caption")
    expect(empty).to_be_hidden()
    page.locator("#words button").nth(1).hover()
    assert faults(page) == []


def test_all_cameras_are_a_grid_that_tells_a_dead_node_from_a_dead_camera(hub, server, open_page):
    hub.publish(live_caption("a cup on a desk", camera="front"))
    for camera in ("left", "rear", "right"):
        hub.publish(received_before(live_caption("a dog on a mat", camera=camera), 46 * MINUTE_S))
    page = open_page(server)
    cameras = [
        summary("front"),
        summary("left", health=Health.ERROR, health_message="no image on /left/image for 2760.0 s"),
        summary("rear", is_responding=False, health=Health.OK),
        summary("right", is_online=False),
    ]
    hub.update_status(status_json(cameras, [], {"right": "/right has no publisher any more"}))
    tiles = page.locator(".tile")
    expect(tiles).to_have_count(4)
    stood = [
        ("front", "live", "Live", "now", ""),
        ("left", "silent", "No captions", "46 min ago", "No image on /left/image for 2760.0 s"),
        ("rear", "gone", "Node silent", "46 min ago", "The caption node has stopped sending diagnostics"),
        ("right", "gone", "Gone", "46 min ago", "/right has no publisher any more"),
    ]
    for index, (name, state, label, age, note) in enumerate(stood):
        tile = tiles.nth(index)
        expect(tile.get_by_role("link", name=name)).to_be_visible()
        expect(tile).to_have_attribute("data-state", state)
        expect(tile.locator(".label")).to_have_text(label)
        expect(tile.locator(".age")).to_have_text(age)
        expect(tile.locator(".note")).to_contain_text(note)
        expect(tile.locator("img.frame")).to_be_visible()
    expect(page).to_have_title("left: No captions, rear: Node silent, right: Gone \N{EN DASH} smart-caption")
    assert faults(page) == []
    # A click opens one, its link opens it again, and the strip below the picture leads to the others.
    tiles.nth(1).click()
    expect(page).to_have_url(f"{server.url}#now?camera=left")
    expect(page.locator("#words")).to_have_text("a dog on a mat")
    expect(page.locator("#state-label")).to_have_text("No captions")
    expect(page.locator("#state-age")).to_have_text("46 min ago")
    expect(page.locator("#notice")).to_contain_text("No caption since")
    expect(page.locator("#notice")).to_contain_text("No image on /left/image for 2760.0 s")
    assert faults(page) == []
    page.reload()
    expect(page.locator("#words")).to_have_text("a dog on a mat")
    page.locator("#cameras").get_by_text("front").click()
    expect(page.locator("#words")).to_have_text("a cup on a desk")
    expect(page.locator("#view img.frame")).to_have_attribute("alt", "Frame of front")
    page.get_by_role("link", name="All cameras").click()
    expect(page.locator("#grid")).to_be_visible()


def test_a_notice_is_read_out_when_its_meaning_changes(hub, server, open_page):
    hub.publish(received_before(live_caption(), 20.0))
    page = open_page(server)
    expect(page.locator("#notice")).to_contain_text("No caption since")
    page.evaluate(
        "() => { const region = document.getElementById('notice-announced'); window.told = [];"
        " new MutationObserver(() => told.push(region.textContent)).observe(region, {childList: true}); }"
    )
    for age in ("7.7", "8.7", "9.7"):
        message = f"No image on /front/image for {age} s"
        hub.update_status(status_json([summary("front", health=Health.ERROR, health_message=message)], [], {}))
        expect(page.locator("#notice")).to_contain_text(message)
    told = page.evaluate("told")
    assert len(told) == 1
    assert "No image on /front/image for 7.7 s" in told[0]


def test_a_pause_is_of_the_view_that_is_seen(hub, server, open_page):
    for camera in ("front", "rear"):
        hub.publish(live_caption(f"a {camera} thing here", camera=camera))
    page = open_page(server, query="#now?camera=front")
    expect(page.locator("#words")).to_have_text("a front thing here")
    page.locator("#pause").click()
    expect(page.locator("#state-age")).to_contain_text("paused")
    hub.publish(live_caption("a new front thing", camera="front"))
    page.locator("#cameras").get_by_text("rear").click()
    expect(page.locator("#words")).to_have_text("a rear thing here")
    expect(page.locator("#view img.frame")).to_have_attribute("alt", "Frame of rear")
    expect(page.locator("#pause")).to_have_attribute("aria-pressed", "false")
    page.locator("#cameras").get_by_text("front").click()
    expect(page.locator("#words")).to_have_text("a new front thing")
    page.get_by_role("link", name="All cameras").click()
    captions = page.locator(".tile .caption")
    expect(captions.first).to_have_text("a new front thing")
    page.locator("#pause").click()
    hub.publish(live_caption("a third front thing", camera="front"))
    page.wait_for_timeout(1200)
    expect(captions.first).to_have_text("a new front thing")
    page.locator("#pause").click()
    expect(captions.first).to_have_text("a third front thing")


def test_boxes_are_drawn_on_their_own_frame_alone(hub, server, open_page):
    hub.publish(live_caption())
    page = open_page(server)
    boxes, message = page.locator("#view .boxes"), page.locator("#view .message")
    expect(page.locator("#view g.object").first).to_be_visible()
    hub.publish(live_caption("a cup without a frame", shade=None))
    expect(page.locator("#words")).to_have_text("a cup without a frame")
    expect(message).to_have_text("No picture of this caption is kept")
    expect(page.locator("#view g.object")).to_have_count(0)
    expect(page.locator("#view .labels span")).to_have_count(0)
    assert faults(page) == []
    hub.publish(live_caption())
    expect(boxes).to_be_visible()
    expect(message).to_be_hidden()


def test_objects_are_grouped_and_a_plural_marks_as_many_as_it_says(hub, server, open_page):
    live = live_caption("two green bottles by a lamp")
    bottles = [DetectedObject("bottle", 39, 0.9 - n / 10, (n * 10, 4, n * 10 + 8, 40)) for n in range(3)]
    nouns = (GroundedNoun("bottles", "bottle", 2, 0, 1.0), live.grounding.nouns[1])
    live = with_objects(replace(live, grounding=replace(live.grounding, nouns=nouns)), [*bottles, CUP])
    hub.publish(live)
    page = open_page(server)
    rows = page.locator("#objects button")
    expect(rows).to_have_count(2)
    assert [row.inner_text().split("\n") for row in rows.all()] == [
        ["bottle", "\N{MULTIPLICATION SIGN} 3", "90\N{EN DASH}70 %"],
        ["cup", "90 %, not named"],
    ]
    active = page.locator("#view g.active")
    page.locator("#words button").nth(2).hover()
    expect(active).to_have_count(2)
    expect(page.locator("#detail")).to_have_text("bottles, names 2 objects bottle 90\N{EN DASH}80 %, probability 78 %")
    rows.first.hover()
    expect(active).to_have_count(3)


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_cover_no_other_and_stay_on_the_picture(hub, server, open_page, width):
    live = live_caption(" ".join(f"cup{n}" for n in range(14)))
    objects = [
        DetectedObject(f"object number {n}", n, 0.9, (20 + n, 20 + n / 2, 24 + n, 24 + n / 2)) for n in range(14)
    ]
    nouns = tuple(GroundedNoun(f"cup{n}", f"cup{n}", n, n, 1.0) for n in range(14))
    hub.publish(with_objects(replace(live, grounding=replace(live.grounding, nouns=nouns)), objects))
    page = open_page(server)
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.locator("#view .labels span")).to_have_count(14)
    shown = [rectangle(label) for label in page.locator("#view .labels span").all() if label.is_visible()]
    area = rectangle(page.locator("#view .area"))
    assert len(shown) >= 6
    for index, (left, top, right, bottom) in enumerate(shown):
        assert area[0] <= left < right <= area[2] + 1
        assert area[1] <= top < bottom <= area[3] + 1
        for other in shown[:index]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    assert page.locator("#view .boxes line").count() > 0, "labels apart from their boxes have a line to them"


def test_extremes_stay_in_their_places(hub, server, open_page):
    long_name = "c" * 180
    nan = float("nan")
    live = live_caption(" ".join(["word"] * 3000), camera=long_name, alternative="z" * 3000)
    caption = replace(
        live.caption,
        score=nan,
        confidence=nan,
        objects=(replace(CUP, score=nan, box_xyxy=(nan,) * 4), replace(CUP, class_name="t" * 180)),
        words=tuple(replace(word, log_probability=nan, box_xyxy=(nan,) * 4) for word in live.caption.words),
    )
    hub.publish(
        replace(live, caption=caption, age_at_start_s=nan, status_message="m" * 500, status=CaptionStatus.ERROR)
    )
    rtl = "قطة على كرسي"
    hub.publish(live_caption(rtl, camera="rtl"))
    page = open_page(server)
    for width in (390, 1024):
        page.set_viewport_size({"width": width, "height": 844})
        for view in ("", f"?camera={long_name}", "?camera=rtl"):
            page.goto(f"{server.url}#now{view}")
            expect(page.locator("#connection")).to_contain_text("Connected")
            expect(page.locator("#now .frame:visible").first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    words = page.locator("#words button")
    expect(words.first).to_have_text(rtl.split()[0])
    first, last = words.first.bounding_box(), words.last.bounding_box()
    assert first
    assert last
    assert first["x"] > last["x"], "the first word stands on the right"
    words.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(words.nth(1)).to_be_focused()
    page.goto(f"{server.url}#now?camera={long_name}")
    expect(page.locator("#measures dd").nth(2)).to_have_text("\N{EN DASH}")
    expect(words).to_have_count(3000)
    assert "NaN" not in page.locator("#view").inner_text()
    assert "null" not in page.locator("#view").inner_text()


def test_on_a_phone_the_picture_comes_first_and_targets_are_large_enough(hub, server, open_page):
    for camera in ("front", "rear"):
        hub.publish(live_caption(camera=camera))
    page = open_page(server)
    page.set_viewport_size({"width": 390, "height": 844})
    small = """() => [...document.querySelectorAll("button, a, input")]
        .filter((node) => node.getClientRects().length && !node.closest(".tile"))
        .filter((node) => node.getBoundingClientRect().height < 43.9).map((node) => node.outerHTML)"""
    expect(page.locator(".tile .frame").first).to_be_visible()
    assert rectangle(page.locator(".tile .picture").first)[1] <= 60
    assert page.evaluate(small) == []
    page.locator(".tile").first.click()
    expect(page.locator("#view img.frame")).to_be_visible()
    assert rectangle(page.locator("#picture"))[1] <= 60
    assert page.evaluate(small) == []
    assert faults(page) == []


def test_the_wall_shows_pictures_and_captions_alone(hub, server, open_page):
    for camera in ("front", "left", "rear"):
        hub.publish(live_caption(camera=camera))
    page = open_page(server)
    expect(page.locator(".tile")).to_have_count(3)
    page.locator("#wall").click()
    expect(page.locator(".controls")).to_be_hidden()
    page.wait_for_function("document.fullscreenElement !== null")
    expect(page).to_have_url(f"{server.url}#now?wall=1")
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    for tile in page.locator(".tile").all():
        assert rectangle(tile)[3] <= page.evaluate("innerHeight")
        expect(tile.locator(".caption")).to_be_visible()
    assert faults(page) == []
    page.locator(".tile").first.click()
    expect(page.locator("#words")).to_be_visible()
    expect(page.locator(".facts")).to_be_hidden()
    page.locator("#leave-wall").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".controls")).to_be_visible()
    page.wait_for_function("document.fullscreenElement === null")
    expect(page).to_have_url(f"{server.url}#now?camera=front")


def test_axe_finds_nothing_in_the_log_and_without_a_server(hub, tmp_path, open_page):
    log = tmp_path / "log.db"
    with CaptionLog(log) as opened:
        opened.append(full(), JPEG)
    with PageServer(hub, Access(), log=log) as server:
        hub.publish(live_caption())
        page = open_page(server, query="#before", interrupted=True)
        moment = page.locator(".moment")
        expect(moment).to_have_count(1)
        assert faults(page) == []
        moment.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert faults(page) == []
        page.goto(f"{server.url}#now")
        expect(page.locator("#words")).to_have_text("a cup beside a lamp")
    expect(page.locator("#connection")).to_have_attribute("data-state", "lost")
    expect(page.locator("#state-label")).to_have_text("Not connected")
    assert faults(page) == []
