"""Finding captions: words in any form, time, camera, place; nothing that a person writes is an SQL error."""

import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.caption_log import CaptionLog, CaptionLogError, LogReader, Near, Query, search
from tests.caption_log.rows import JPEG, START_MS, START_NS, at, caption

CAPTIONS = (
    caption("two cups beside a red chair", 10, camera="rear", pose=at(3.0, 0.0)),
    caption("people in a kitchen", 20, nouns=[("people", "person"), ("kitchen", "kitchen")], pose=at(-7.9, 2.0, 3.0)),
    caption("a small dog", 30, objects=["dining table"], robot="robot2"),
    caption("a café at night", 40, camera="rear", pose=at(200.0, 200.0)),
)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "captions.db"
    with CaptionLog(path) as log:
        log.append(caption("a red cup on a table", pose=at(0.5, 0.5)), JPEG)
        log.add([*CAPTIONS])
    with LogReader(path) as opened:
        yield opened


def found(reader, words="", **conditions):
    """Numbers of the rows found, in their order."""
    return [(row.time_ns - START_NS) // 10**10 for row in reader.find(Query(words, **conditions))]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ("", [4, 3, 2, 1, 0]),
        ("cup", [1, 0]),
        ("red cup", [1, 0]),
        ('"red cup"', [0]),
        ("cup table", [0]),
        ("person", [2]),
        ('"dining table"', [3]),
        ("ta*", [3, 0]),
        ("caf*", [4]),
        ("zebra*", []),
        ("cafe", [4]),
        ("table AND", []),
        ("text:cup", []),
        ("cup !!!", [1, 0]),
        ("nothing", []),
    ],
)
def test_words(reader, words, numbers):
    assert found(reader, words) == numbers


@pytest.mark.parametrize(
    ("words", "marked", "reason"),
    [
        ("cups", "a red [cup] on a table", ""),
        ("red ta*", "a [red] cup on a [table]", ""),
        ('"red cup"', "a [red cup] on a table", ""),
        ("person", "people in a kitchen", "the noun person"),
        ("person kitchens", "people in a [kitchen]", "the noun person"),
        ('dog "dining table"', "a small [dog]", "the object dining table"),
        ("din*", "a small dog", "the object dining table"),
        ("cafe", "a [café] at night", ""),
        ("", "a café at night", ""),
    ],
)
def test_the_words_that_were_found_are_marked_and_what_else_was_is_the_reason(reader, words, marked, reason):
    query = Query(words)
    rows = reader.find(query)
    text = marked.replace("[", "").replace("]", "")
    found = next(h for h, row in zip(reader.highlights(query, rows), rows, strict=True) if row.text == text)
    assert "".join(f"[{piece}]" if is_match else piece for piece, is_match in found.text) == marked
    assert found.reason == reason


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("一只猫坐在沙发上", "猫", "一只[猫]坐在沙发上"),
        ("一只猫坐在沙发上", "沙发", "一只猫坐在[沙发]上"),
        ("一只猫坐在沙发上", "沙发*", "一只猫坐在[沙发]上"),
        ("桌子上有一个红色的杯子", "红色的杯子 桌子", "[桌子]上有一个[红色的杯子]"),
        ("桌子上有2个cup", "2 cups", "桌子上有[2]个[cup]"),
        ("ソファの上の犬", "犬", "ソファの上の[犬]"),
        ("ソファの上の犬", "ソファ", "[ソファ]の上の犬"),
        ("แมวนอนบนเก้าอี้", "เก้าอี้", "แมวนอนบน[เก้าอี้]"),
        ("탁자 위의 컵이 있다", "컵", "탁자 위의 [컵]이 있다"),
        ("मेज पर एक कप", "कप", "मेज पर एक [कप]"),
    ],
)
def test_each_word_of_a_script_without_spaces_finds_its_caption(tmp_path, text, words, marked):
    with CaptionLog(tmp_path / "captions.db") as log, LogReader(log.path) as reader:
        log.add([caption(text), caption("an other one", 10), caption("上沙子", 20)])
        (row,) = reader.find(Query(words))
        assert row.text == text
        (found,) = reader.highlights(Query(words), [row])
    assert "".join(f"[{piece}]" if is_match else piece for piece, is_match in found.text) == marked


@pytest.mark.parametrize("text", ["", "1", "1,2,3,4", "a,b", "1;2"])
def test_a_place_is_two_or_three_numbers(text):
    assert Near.parse("1,-2.5,3", 2.0, "map") == Near(1.0, -2.5, 3.0, 2.0, "map")
    assert Near.parse("1,2").z is None
    with pytest.raises(CaptionLogError, match="is not a place: write x,y or x,y,z in metres"):
        Near.parse(text)


def test_the_beginning_of_a_word_is_found_whatever_its_stem(tmp_path):
    """The stem of `agreed` is agre, whose own stem is agr; that of `plays` is plai."""
    with CaptionLog(tmp_path / "captions.db") as log, LogReader(log.path) as reader:
        log.add([caption("they agreed"), caption("a playground", 10), caption("a player plays", 20)])
        assert found(reader, "agre*") == [0]
        assert found(reader, "play*") == [2, 1]
        assert found(reader, "players play*") == [2]
        assert found(reader, "a-play*") == [2, 1]
        log.add([*(caption(f"play{number}x", 10 * number) for number in range(3, 23))])
        assert found(reader, "play*", limit=1000) == [*range(22, 0, -1)]
        assert found(reader, "play1*", limit=1000) == [*range(19, 9, -1)]


def test_the_best_have_the_words_side_by_side(reader):
    assert found(reader, "red cup", order="best") == [0, 1]
    assert found(reader, "red cup", order="best", limit=1) == [0]
    assert found(reader, "two red chair", order="best") == [1]
    assert found(reader, "blue red chair", order="best") == [], "two of the three words are no match"
    assert found(reader, order="best") == [4, 3, 2, 1, 0]


def test_captions_of_which_too_few_are_true_or_nobody_knows_are_left_out(tmp_path):
    with CaptionLog(tmp_path / "captions.db") as log:
        for at_s, share in enumerate((0.5, 0.75, None)):
            record = caption("a cup", 10.0 * at_s)
            log.append(replace(record, caption=replace(record.caption, calibrated_confidence=share)))
    with LogReader(tmp_path / "captions.db") as reader:
        assert found(reader) == [2, 1, 0]
        assert found(reader, min_calibrated_confidence=0.5) == [1, 0]
        assert found(reader, "cup", min_calibrated_confidence=0.6) == [1]
        assert reader.overview(Query(min_calibrated_confidence=0.6)).captions == 1


def test_time_camera_robot_and_limit(reader):
    assert found(reader, since_ns=START_NS + 10 * 10**9, until_ns=START_NS + 30 * 10**9) == [3, 2, 1]
    assert found(reader, since_ns=START_NS + 10 * 10**9 + 1) == [4, 3, 2]
    assert found(reader, camera="rear") == [4, 1]
    assert found(reader, "cup", camera="rear") == [1]
    assert found(reader, robot="robot2") == [3]
    assert found(reader, camera="rea") == []
    assert found(reader, camera="Rear") == []
    assert found(reader, limit=2) == [4, 3]


@pytest.mark.parametrize("camera", ["!!!", "front/left", 'a "quoted" one', "Kamera für oben", "\U0001f4f7"])
def test_a_camera_is_found_by_any_name(tmp_path, camera):
    with CaptionLog(tmp_path / "captions.db") as log, LogReader(log.path) as reader:
        log.add([caption(camera=camera), caption(at_s=10, camera=f"{camera} 2")])
        assert found(reader, camera=camera) == found(reader, "cup", camera=camera) == [0]


def test_place(reader):
    assert found(reader, near=Near(0.0, 0.0, radius_m=1.0)) == [0]
    assert found(reader, near=Near(0.0, 0.0, radius_m=3.0)) == [1, 0]
    assert found(reader, "red", near=Near(3.0, 0.0, radius_m=0.5, frame_id="map")) == [1]
    assert found(reader, near=Near(-8.0, 2.0, 0.0, radius_m=1.0)) == []
    assert found(reader, near=Near(-8.0, 2.0, 3.0, radius_m=1.0)) == [2]
    assert found(reader, near=Near(0.0, 0.0, radius_m=5000.0)) == [4, 2, 1, 0]
    with pytest.raises(CaptionLogError, match=r"no pose in .* is in the frame 'odom': map"):
        found(reader, near=Near(0.0, 0.0, frame_id="odom"))


def test_poses_in_several_frames_need_one_to_be_named(tmp_path):
    with CaptionLog(tmp_path / "captions.db") as log, LogReader(log.path) as reader:
        with pytest.raises(CaptionLogError, match=r"no caption in .* has a pose"):
            found(reader, near=Near(0.0, 0.0))
        log.add([caption(pose=at(0.0, 0.0)), caption(at_s=10, pose=at(0.0, 0.0, frame_id="odom"))])
        with pytest.raises(CaptionLogError, match="in several frames, name one of them: map, odom"):
            found(reader, near=Near(0.0, 0.0))
        assert found(reader, near=Near(0.0, 0.0, frame_id="odom")) == [1]


@settings(max_examples=50)
@given(st.text(max_size=40) | st.text(alphabet='"*()-+^:{}ANDORNEARcup \x00\n', max_size=40))
def test_no_text_is_an_sql_error(reader, words):
    if words.strip() and not any(map(str.isalnum, words)):
        with pytest.raises(CaptionLogError, match="there is no word in the search"):
            reader.find(Query(words))
    else:
        reader.find(Query(words))


def test_a_search_that_takes_too_long_ends_with_a_sentence(reader, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(search, "_STEPS_BETWEEN_CLOCKS", 1)
        with pytest.raises(CaptionLogError, match="the search took longer than 0 s: give more words"):
            reader.find(Query("cup"), timeout_s=0.0)
    assert len(reader.find(Query("cup"), timeout_s=60.0)) == 2


@pytest.mark.parametrize("record", ["[", "[3]", "{}", '{"text": "a cup", "nouns": [3]}'])
def test_a_damaged_row_is_named(tmp_path, record):
    with CaptionLog(tmp_path / "captions.db") as log, LogReader(log.path) as reader:
        number = log.append(caption())
        connection = sqlite3.connect(log.path)
        with connection:
            connection.execute("UPDATE caption SET record = ?", (record,))
        connection.close()
        for read in (lambda: reader.find(Query("cup")), lambda: list(reader.all_rows())):
            with pytest.raises(CaptionLogError, match=rf"the caption {number} in .*captions\.db is damaged: "):
                read()


def test_the_overview_counts_by_origin_what_a_query_finds_and_follows_deletions(tmp_path):
    with CaptionLog(tmp_path / "captions.db") as log, LogReader(log.path) as reader:
        assert (reader.overview().captions, reader.overview().first_ms) == (0, None)
        log.add([caption(pose=at(0.5, 0.5)), *CAPTIONS])
        overview = reader.overview()
        assert [(o.robot, o.camera, o.pose_frame, o.captions) for o in overview.origins] == [
            ("robot1", "front", "map", 2),
            ("robot1", "rear", "map", 2),
            ("robot2", "front", "", 1),
        ]
        assert (overview.first_ms, overview.last_ms) == (START_MS, START_MS + 40_000)
        cups = reader.overview(Query("cups", limit=1))
        assert ([o.captions for o in cups.origins], cups.last_ms) == ([1, 1], START_MS + 10_000)
        assert reader.overview(Query("elephant")).captions == 0
        connection = sqlite3.connect(log.path)
        with connection:
            connection.execute("DELETE FROM caption WHERE robot = 'robot2'")
        connection.close()
        assert [o.robot for o in reader.overview().origins] == ["robot1", "robot1"]
        assert found(reader, "dog") == []
