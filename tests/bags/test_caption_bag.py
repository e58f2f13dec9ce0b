"""Bags into bags of captions, in process and with a tiny bundle."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("rosbags", reason="rosbags is not installed (extra [bags])")

from rosbags.highlevel import AnyReader

from smart_caption_ros.bags.bag_writer import PROVENANCE_TOPIC
from smart_caption_ros.bags.cameras import Thinning
from smart_caption_ros.bags.caption_bag import BagOptions, caption_bag
from smart_caption_ros.bags.message_captioner import MessageCaptioner
from smart_caption_ros.sources import SourceError
from tests.bags.bag_files import PERIOD_NS, START_NS, compressed, image, storage_file, string, write_bag
from tests.bags.conftest import InterruptedCaptioner

TWO_CAMERAS = {"/front/image_raw": image, "/chatter": string, "/rear/image/compressed": compressed}


def read(path: Path) -> list[tuple[str, int, Any]]:
    """Topic, time and message of everything in a bag, by a reader that knows only what the bag itself says."""
    with AnyReader([path]) as reader:
        return [
            (connection.topic, recorded_ns, reader.deserialize(raw, connection.msgtype))
            for connection, recorded_ns, raw in reader.messages()
        ]


def on(messages: list[tuple[str, int, Any]], topic: str) -> list[Any]:
    return [message for name, _, message in messages if name == topic]


@pytest.fixture(params=["MCAP", "SQLITE3"])
def plugin(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    return write_bag(tmp_path / "run", TWO_CAMERAS)


@pytest.mark.parametrize("suffix", [".mcap", ".db3"])
def test_every_camera_is_captioned_with_the_headers_and_times_of_its_images(
    tmp_path: Path, plugin: str, suffix: str, message_captioner: MessageCaptioner
) -> None:
    bag = write_bag(tmp_path / "run", TWO_CAMERAS, plugin=plugin)
    output = tmp_path / f"out{suffix}"
    report = caption_bag(bag, output, message_captioner, BagOptions())
    assert (report.images, report.captioned, report.failed) == (8, 8, 0)
    assert report.caption_topics == ("/front/caption", "/rear/caption")
    assert report.recording_s == pytest.approx(0.3)

    messages = read(output)
    assert [message[1] for message in messages] == sorted(message[1] for message in messages)
    for camera, place in (("front", 0), ("rear", 2)):
        captions = [message for message in messages if message[0] == f"/{camera}/caption"]
        assert [message[1] for message in captions] == [START_NS + number * PERIOD_NS + place for number in range(4)]
        for number, (_, _, caption) in enumerate(captions):
            assert caption.header.stamp == image(number).header.stamp
            assert (caption.header.frame_id, caption.camera) == ("optical", camera)
            assert (caption.image_width, caption.image_height) == (48, 32)
        texts = [caption.text for *_, caption in captions if caption.status == caption.STATUS_OK]
        assert texts
        assert [text.data for text in on(messages, f"/{camera}/caption/text")] == texts
    # The same picture has the same caption, raw or compressed.
    assert [c.text for c in on(messages, "/front/caption")] == [c.text for c in on(messages, "/rear/caption")]
    assert {message[0] for message in messages} <= {
        PROVENANCE_TOPIC,
        *(f"/{camera}/caption{end}" for camera in ("front", "rear") for end in ("", "/text")),
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, "run"]


def test_images_are_copied_beside_their_captions_on_demand(bag: Path, message_captioner: MessageCaptioner) -> None:
    output = bag.parent / "out.mcap"
    options = BagOptions(topics=("front/image_raw",), thinning=Thinning(every=2), with_images=True)
    caption_bag(bag, output, message_captioner, options)
    messages = read(output)
    images = [message for message in messages if message[0] == "/front/image_raw"]
    source = [message for message in read(bag) if message[0] == "/front/image_raw"]
    assert [(ns, bytes(message.data)) for _, ns, message in images] == [(ns, bytes(m.data)) for _, ns, m in source]
    assert len(on(messages, "/front/caption")) == 2
    assert not on(messages, "/rear/caption")
    assert [message[1] for message in messages] == sorted(message[1] for message in messages)


@pytest.mark.parametrize("suffix", [".mcap", ".db3"])
def test_a_run_that_was_interrupted_goes_on_to_the_same_bytes_under_any_name(
    suffix: str, bag: Path, message_captioner: MessageCaptioner
) -> None:
    whole, resumed = (bag.parent / name / f"{name}{suffix}" for name in ("whole", "50%25 #2?"))
    for output in (whole, resumed):
        output.parent.mkdir()
    options = BagOptions(with_images=True)
    caption_bag(bag, whole, message_captioner, options)
    with pytest.raises(KeyboardInterrupt):
        caption_bag(bag, resumed, InterruptedCaptioner(message_captioner, 3), options)
    assert not resumed.exists()
    report = caption_bag(bag, resumed, message_captioner, options)
    assert (report.kept, report.captioned, report.speed) == (3, 5, None)
    assert "3 of them by an earlier run" in report.sentences()[0]
    assert resumed.read_bytes() == whole.read_bytes()
    assert [path.name for path in resumed.parent.iterdir()] == [resumed.name]


def test_other_settings_go_on_with_neither_a_journal_nor_an_output(
    bag: Path, message_captioner: MessageCaptioner
) -> None:
    output = bag.parent / "out.mcap"
    every_second = BagOptions(thinning=Thinning(every=2))
    with pytest.raises(KeyboardInterrupt):
        caption_bag(bag, output, InterruptedCaptioner(message_captioner, 1), BagOptions())
    with pytest.raises(SourceError, match=r"holds the beginning of a run with another every: .*--force"):
        caption_bag(bag, output, message_captioner, every_second)
    assert caption_bag(bag, output, message_captioner, replace(every_second, force=True)).images == 4

    again = caption_bag(bag, output, message_captioner, every_second)
    assert (again.was_complete, again.captioned, again.images) == (True, 0, 4)
    assert "complete already" in again.sentences()[0]
    with pytest.raises(SourceError, match=r"out\.mcap exists and was made with another every: .*--force"):
        caption_bag(bag, output, message_captioner, BagOptions())
    other = InterruptedCaptioner(message_captioner, 0)
    other.facts = {**other.facts, "bundle": "another one"}
    with pytest.raises(SourceError, match="was made with another bundle"):
        caption_bag(bag, output, other, every_second)


def test_two_processes_do_not_caption_into_the_same_file(bag: Path, message_captioner: MessageCaptioner) -> None:
    output = bag.parent / "out.mcap"

    class Nested(InterruptedCaptioner):
        def caption(self, stored: Any, camera: str) -> Any:
            caption_bag(bag, output, message_captioner, BagOptions())

    with pytest.raises(SourceError, match="is in use: another process captions the same bag"):
        caption_bag(bag, output, Nested(message_captioner, 1), BagOptions())


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """As on a disk that is full: files cannot grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_ends_with_one_sentence_and_loses_no_caption(
    bag: Path, message_captioner: MessageCaptioner
) -> None:
    output = bag.parent / "out.db3"
    options = BagOptions(with_images=True)
    with files_limited_to(8 * 4096), pytest.raises(SourceError, match=r"captions cannot be kept in .*journal"):
        caption_bag(bag, output, message_captioner, options)
    assert not output.exists()
    assert caption_bag(bag, output, message_captioner, options).images == 8

    output = bag.parent / "out.mcap"
    big = write_bag(bag.parent / "big", {"/front/image_raw": image}, count=60)
    with (
        files_limited_to(128 * 1024),
        pytest.raises(SourceError, match=r"out\.mcap cannot be written: File too large; .* kept"),
    ):
        caption_bag(big, output, message_captioner, replace(options, thinning=Thinning(every=30)))
    assert caption_bag(big, output, message_captioner, replace(options, thinning=Thinning(every=30))).kept == 2


@pytest.mark.parametrize("share", [0.6])
def test_of_a_bag_that_was_cut_off_everything_readable_is_captioned(
    tmp_path: Path, plugin: str, share: float, message_captioner: MessageCaptioner
) -> None:
    # More than one chunk of an mcap file, and many pages of a sqlite3 file.
    bag = write_bag(tmp_path / "run", {"/front/image_raw": image}, count=600, plugin=plugin)
    file = storage_file(bag)
    with file.open("r+b") as opened:
        opened.truncate(int(file.stat().st_size * share))
    options = BagOptions(thinning=Thinning(every=100))
    for number, spec in enumerate((bag, file)):
        report = caption_bag(spec, tmp_path / f"{number}.mcap", message_captioner, options)
        assert 1 <= report.images <= 6 * share + 1
        assert f"{spec.name} is cut off or damaged" in report.damage
        assert "of its messages can be read" in report.damage
        assert [c.header.stamp for c in on(read(report.output), "/front/caption")] == [
            image(100 * index).header.stamp for index in range(report.images)
        ]


def test_nothing_is_left_of_a_bag_that_was_cut_at_its_beginning(bag: Path, message_captioner: MessageCaptioner) -> None:
    file = storage_file(bag)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(Exception, match="cannot read the bag"):
        caption_bag(bag, bag.parent / "out.mcap", message_captioner, BagOptions())


def test_an_image_that_cannot_be_decoded_has_its_answer_and_is_counted(
    tmp_path: Path, message_captioner: MessageCaptioner
) -> None:
    def odd(number: int) -> Any:
        return image(number, "h264" if number == 1 else "bgr8")

    report = caption_bag(
        write_bag(tmp_path / "run", {"/image": odd}, count=3), tmp_path / "out.mcap", message_captioner, BagOptions()
    )
    assert report.failed == 1
    assert "captioned 2 of 3 images of 1 camera" in report.sentences()[0]
    assert any("unknown encoding 'h264'" in sentence for sentence in report.sentences())
    captions = on(read(report.output), "/robot/caption")
    assert [caption.status == caption.STATUS_ERROR for caption in captions] == [False, True, False]
    assert "h264" in captions[1].status_message
    assert len(on(read(report.output), "/robot/caption/text")) < 3


def test_depth_and_the_second_transport_of_a_camera_are_left_out_with_a_sentence(
    tmp_path: Path, message_captioner: MessageCaptioner
) -> None:
    topics = {
        "/cam/color/image_raw": image,
        "/cam/color/image_raw/compressed": compressed,
        "/cam/depth/image_raw": lambda number: image(number, "16UC1"),
    }
    bag = write_bag(tmp_path / "run", topics, count=1)
    report = caption_bag(bag, tmp_path / "out.mcap", message_captioner, BagOptions())
    assert report.caption_topics == ("/cam/color/caption",)
    assert [sentence.split(" is left out: ")[1] for sentence in report.left_out] == [
        "the same images are on /cam/color/image_raw",
        "it holds depth, not pictures",
    ]


def test_cameras_of_one_namespace_are_told_apart_by_their_topics(
    tmp_path: Path, message_captioner: MessageCaptioner
) -> None:
    bag = write_bag(tmp_path / "run", {"/stereo/left": image, "/stereo/right": image}, count=1)
    report = caption_bag(bag, tmp_path / "out.mcap", message_captioner, BagOptions())
    assert report.caption_topics == ("/stereo/left/caption", "/stereo/right/caption")


@pytest.mark.parametrize(
    ("topics", "given", "sentence"),
    [
        (
            {"/chatter": lambda _: string("hi")},
            (),
            r"has no images; it has the topics /chatter \(std_msgs/msg/String, 1\)",
        ),
        (
            {"/camera/image": image},
            ("/camera/imge",),
            r"no image topic /camera/imge; the nearest name is /camera/image;",
        ),
        ({"/camera/image": image, "/chatter": lambda _: string("x")}, ("chatter",), "is of type std_msgs/msg/String"),
    ],
)
def test_a_bag_without_such_images_says_what_it_has(
    tmp_path: Path, topics: Any, given: tuple[str, ...], sentence: str, message_captioner: MessageCaptioner
) -> None:
    bag = write_bag(tmp_path / "run", topics, count=1)
    with pytest.raises(SourceError, match=sentence):
        caption_bag(bag, tmp_path / "out.mcap", message_captioner, BagOptions(topics=given))


def test_an_output_that_cannot_be_written_or_is_something_else_is_refused(
    bag: Path, message_captioner: MessageCaptioner
) -> None:
    for output, sentence in (
        (bag.parent / "nowhere" / "out.mcap", "there is no folder"),
        (bag.parent / "out.bag", r"must end in \.mcap or \.db3"),
        (storage_file(bag), "is the bag itself|is not a bag of captions"),
    ):
        with pytest.raises(SourceError, match=sentence):
            caption_bag(bag, output, message_captioner, BagOptions())


@given(rate_hz=st.floats(0.5, 60), jitter=st.lists(st.floats(-0.004, 0.004), min_size=60, max_size=60))
def test_a_rate_is_kept_by_a_camera_that_is_not_quite_regular(rate_hz: float, jitter: list[float]) -> None:
    selection = Thinning(rate_hz=rate_hz).start()
    times = [number / 30 + shift for number, shift in enumerate(jitter)]
    selected = [time for time in times if selection.wants(START_NS + round(time * 1e9))]
    span_s = max(times) - times[0]
    assert selected[0] == times[0]
    expected = min(rate_hz, 30) * span_s
    assert len(selected) <= rate_hz * span_s + 2
    assert len(selected) >= (expected if rate_hz < 15 else 0.5 * expected) - 1
