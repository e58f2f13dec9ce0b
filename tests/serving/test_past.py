"""The caption log on the page's server: searches, pictures, downloads, and a sentence for what is wrong."""

import csv
import io
import json
from dataclasses import replace

import cv2
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")

from smart_caption_ros.caption_log import CaptionLog
from smart_caption_ros.imaging import decode_image_bytes
from smart_caption_ros.serving import Access, Hub, PageServer, make_token
from smart_caption_ros.serving.past import ROWS_A_PAGE
from tests.caption_log.rows import START_MS as CUP_MS
from tests.caption_log.rows import at, caption, full
from tests.serving.serving_requests import get

JPEG = cv2.imencode(".jpg", np.full((240, 320, 3), 90, np.uint8))[1].tobytes()
DOG_MS = CUP_MS + 10_000
MANY = 70


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "captions.db"
    with CaptionLog(path) as opened:
        opened.append(replace(full(), pose=at(0.5, 0.5)), JPEG)
        opened.append(caption("a dog <b>", 10, camera="rear", pose=at(9.0, 9.0)))
        opened.add([*(caption(f"chair {number}", -number) for number in range(1, MANY + 1))])
    return path


@pytest.fixture(scope="module")
def server(log):
    with PageServer(Hub(), Access(), log=log) as running:
        yield running


def found(server, query=""):
    status, body, _ = get(server, f"/log/captions.json?{query}")
    assert status == 200, body
    return json.loads(body)


def ids(server, query):
    return [caption["id"] for caption in found(server, query)["captions"]]


def test_the_overview_has_what_a_search_can_ask_for(server):
    overview = json.loads(get(server, "/log.json")[1])
    assert overview == {
        "problem": "",
        "log": "captions.db",
        "captions": MANY + 2,
        "first_ms": CUP_MS - MANY * 1000,
        "last_ms": DOG_MS,
        "cameras": ["front", "rear"],
        "has_places": True,
    }


def test_a_search_asks_for_words_camera_time_and_place_as_log_find_does(server):
    assert ids(server, "words=cups") == [CUP_MS]
    assert ids(server, "camera=rear") == [DOG_MS]
    assert ids(server, "since=2026-09-21T14:13:25Z") == [DOG_MS]
    assert ids(server, "until=2026-09-21T14:13:20Z&since=2026-09-21T14:13:20Z") == [CUP_MS]
    assert ids(server, "near=0,0.5&radius=1.5") == [CUP_MS]
    assert ids(server, "near=9,9") == [DOG_MS]
    assert ids(server, "words=dog&camera=front") == []
    assert ids(server, "words=cup&min_calibrated_confidence=0.625") == [CUP_MS]
    assert ids(server, "words=cup&min_calibrated_confidence=0.63") == []
    assert ids(server, "words=%22%27)+OR+1%3D1&robot=") == []


def test_the_pages_of_a_result_have_every_caption_once_the_newest_first(server):
    pages = [found(server)]
    while pages[-1]["before"] is not None:
        pages.append(found(server, f"before={pages[-1]['before']}"))
    assert [len(page["captions"]) for page in pages] == [ROWS_A_PAGE, MANY + 2 - ROWS_A_PAGE]
    times = [caption["id"] for page in pages for caption in page["captions"]]
    assert times == sorted(set(times), reverse=True)
    assert len(times) == MANY + 2


def test_a_caption_is_shown_as_a_live_one(server):
    shown = json.loads(get(server, f"/log/{CUP_MS}.json")[1])
    assert shown["text"] == "a red cup on a table"
    assert shown["objects"][0] == {"class_name": "cup", "class_id": 0, "score": 0.9, "box_xyxy": [0, 0, 9, 9]}
    assert shown["named_objects"][0] == [0]
    assert (shown["image_size"], shown["picture"]) == ([640, 480], f"log/{CUP_MS}.jpg")
    assert (shown["time_ms"], shown["robot"], shown["place"]) == (CUP_MS, "robot1", "map 0.50, 0.50, 0.00")
    assert (shown["status"], shown["calibrated_confidence"]) == ("low confidence", 0.625)


def test_a_frame_is_downloaded_with_its_caption_and_boxes(server):
    status, body, headers = get(server, f"/log/{CUP_MS}/drawn.jpg")
    assert status == 200
    assert headers["content-disposition"] == f'attachment; filename="caption-{CUP_MS}.jpg"'
    drawn = decode_image_bytes(body.encode("latin-1"))
    assert drawn.shape[1] == 320
    assert drawn.shape[0] > 240, "the caption is below the frame"
    # The boxes are (0, 0, 9, 9) in a frame of 640 pixels, and half as large on the picture.
    assert abs(int(drawn[100, 100].mean()) - 90) < 3, "the frame"
    assert drawn[:6, :6].std() > 20, "its outline"


def test_what_was_found_is_downloaded_as_a_table(server):
    status, table, headers = get(server, "/log/captions.csv?camera=rear")
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/csv")
    assert headers["content-disposition"] == 'attachment; filename="captions.csv"'
    assert [line["text"] for line in csv.DictReader(io.StringIO(table))] == ["a dog <b>"]


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/log/captions.json?words=???", 400, "there is no word in the search '???'"),
        ("/log/captions.json?since=soon", 400, "'soon' is not a time: write 2026-11-22"),
        ("/log/captions.json?near=here", 400, "'here' is not a place: write x,y"),
        ("/log/captions.json?near=0,0&radius=inf", 400, "radius is not a number: 'inf'"),
        ("/log/captions.json?near=0,0&radius=-1", 400, "must be a positive number"),
        ("/log/captions.json?min_calibrated_confidence=62", 400, "confidence is between 0 and 1, not 62"),
        ("/log/captions.json?before=x", 400, "before is not a number: 'x'"),
        ("/log/captions.json?near=0,0&frame=odom", 400, "is in the frame 'odom': map"),
        ("/log/captions.html", 404, "There is no such page."),
        ("/log/captions.csv?words=???", 400, "there is no word"),
        ("/log/1.json", 404, "This caption is not in the log any more."),
        ("/log/1.jpg", 404, "not in the log any more"),
        (f"/log/{10**25}.jpg", 404, "not in the log any more"),
        (f"/log/{'1' * 5000}.jpg", 414, "This address is too long."),
        (f"/log/{DOG_MS}.jpg", 404, "The log has no picture of this caption."),
        (f"/log/{DOG_MS}/drawn.jpg", 404, "The log has no picture of this caption."),
        ("/log/-1.json", 404, "There is no such page."),
        ("/log/captions.db", 404, "There is no such page."),
    ],
)
def test_what_makes_no_sense_is_one_sentence(server, path, status, sentence):
    answer, body, _ = get(server, path)
    assert answer == status
    assert sentence in body
    assert body.count("\n") == 1


def test_the_log_is_behind_the_token_and_is_not_written(log):
    with PageServer(Hub(), Access(make_token()), log=log) as locked:
        for path in ("/log.json", "/log/captions.json", f"/log/{CUP_MS}.jpg", "/log/captions.csv"):
            assert get(locked, path)[0] == 401
    with PageServer(Hub(), Access(), log=log) as server:
        assert get(server, "/log/captions.json", method="POST")[0] == 405


def test_a_picture_that_is_damaged_is_not_drawn(tmp_path):
    with CaptionLog(tmp_path / "captions.db") as log:
        number = log.append(full(), b"no picture")  # with bytes that are no picture
    with PageServer(Hub(), Access(), log=log.path) as server:
        status, body, _ = get(server, f"/log/{number}/drawn.jpg")
    assert status == 404
    assert body.startswith("The picture of this caption is damaged: ")
