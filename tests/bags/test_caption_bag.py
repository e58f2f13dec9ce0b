"""Bags into bags of captions, in process and with a tiny bundle."""

import resource
from contextlib import contextmanager

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (extra [bags])")

from rosbags.highlevel import AnyReader

from smart_caption_ros.bags.caption_bag import BagOptions, caption_bag
from smart_caption_ros.files import OutputError
from smart_caption_ros.sources import SourceError
from tests.bags.bag_files import PERIOD_NS, START_NS, compressed, image, storage_file, string, write_bag

TWO_CAMERAS = {"/front/image_raw": image, "/chatter": string, "/rear/image/compressed": compressed}


def read(path):
    """Topic, time and message of everything in a bag, by a reader that knows only what the bag itself says."""
    with AnyReader([path]) as reader:
        return [
            (connection.topic, recorded_ns, reader.deserialize(raw, connection.msgtype))
            for connection, recorded_ns, raw in reader.messages()
        ]


def on(messages, topic):
    return [message for name, _, message in messages if name == topic]


@pytest.fixture(params=["MCAP", "SQLITE3"])
def plugin(request):
    return str(request.param)


@pytest.fixture(params=[".mcap", ".db3"])
def suffix(request):
    return str(request.param)


@pytest.fixture
def bag(tmp_path):
    return write_bag(tmp_path / "run", TWO_CAMERAS)


def test_every_camera_is_captioned_with_the_headers_and_times_of_its_images(
    tmp_path, plugin, suffix, message_captioner
):
    bag = write_bag(tmp_path / "run", TWO_CAMERAS, plugin=plugin)
    output = tmp_path / f"out{suffix}"
    report = caption_bag(bag, output, message_captioner, BagOptions())
    assert (report.images, report.failed) == (8, 0)
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
        f"/{camera}/caption{end}" for camera in ("front", "rear") for end in ("", "/text")
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, "run"]


def test_images_are_copied_beside_their_captions_on_demand(bag, message_captioner):
    output = bag.parent / "out.mcap"
    options = BagOptions(topics=("front/image_raw",), every=2, with_images=True)
    caption_bag(bag, output, message_captioner, options)
    messages = read(output)
    images = [message for message in messages if message[0] == "/front/image_raw"]
    source = [message for message in read(bag) if message[0] == "/front/image_raw"]
    assert [(ns, bytes(message.data)) for _, ns, message in images] == [(ns, bytes(m.data)) for _, ns, m in source]
    assert len(on(messages, "/front/caption")) == 2
    assert not on(messages, "/rear/caption")
    assert [message[1] for message in messages] == sorted(message[1] for message in messages)


@contextmanager
def files_limited_to(size):
    """As on a disk that is full: files cannot grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_ends_with_one_sentence_and_leaves_nothing(tmp_path, suffix, message_captioner):
    bag = write_bag(tmp_path / "big", {"/front/image_raw": image}, count=60)
    output = tmp_path / f"out{suffix}"
    with files_limited_to(128 * 1024), pytest.raises(SourceError, match=rf"out\{suffix} cannot be written: "):
        caption_bag(bag, output, message_captioner, BagOptions(every=30, with_images=True))
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_of_a_bag_that_was_cut_off_everything_readable_is_captioned(tmp_path, plugin, message_captioner):
    # More than one chunk of an mcap file, and many pages of a sqlite3 file.
    bag = write_bag(tmp_path / "run", {"/front/image_raw": image}, count=600, plugin=plugin)
    file = storage_file(bag)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size * 6 // 10)
    options = BagOptions(every=100)
    for number, spec in enumerate((bag, file)):
        report = caption_bag(spec, tmp_path / f"{number}.mcap", message_captioner, options)
        assert 1 <= report.images <= 4
        assert f"{spec.name} is cut off or damaged" in report.damage
        assert "of its messages can be read" in report.damage
        assert [c.header.stamp for c in on(read(report.output), "/front/caption")] == [
            image(100 * index).header.stamp for index in range(report.images)
        ]


def test_an_image_that_cannot_be_decoded_has_its_answer_and_is_counted(tmp_path, message_captioner):
    def odd(number):
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


def test_depth_and_the_second_transport_of_a_camera_are_left_out_with_a_sentence(tmp_path, message_captioner):
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


@pytest.mark.parametrize("with_images", [False, True])
def test_one_topic_may_have_images_of_both_types_and_other_messages(tmp_path, message_captioner, *, with_images):
    bag = write_bag(tmp_path / "run", [("/cam/image", string), ("/cam/image", compressed), ("/cam/image", image)])
    report = caption_bag(bag, tmp_path / "out.mcap", message_captioner, BagOptions(with_images=with_images))
    assert (report.images, report.failed, report.caption_topics) == (8, 0, ("/cam/caption",))
    messages = read(report.output)
    captions = on(messages, "/cam/caption")
    assert [caption.header.stamp for caption in captions[::2]] == [image(number).header.stamp for number in range(4)]
    assert [caption.text for caption in captions[::2]] == [caption.text for caption in captions[1::2]]
    assert len(on(messages, "/cam/image")) == (8 if with_images else 0)


@pytest.mark.parametrize(
    ("topics", "named"),
    [
        (("/stereo/left", "/stereo/right"), ("/stereo/left", "/stereo/right")),
        (("/image", "/a", "/a/b"), ("/image", "/a", "/a/b")),
        (("/cam/image", "/cam/image/compressed"), ("/cam/image", "/cam/image/compressed")),
        (("/a/x/compressed", "/a/y/compressed", "/b/image"), ("/a/x", "/a/y", "/b")),
    ],
)
def test_cameras_of_one_namespace_are_told_apart_by_their_topics(tmp_path, message_captioner, topics, named):
    makes = {topic: compressed if topic.endswith("/compressed") else image for topic in topics}
    bag = write_bag(tmp_path / "run", makes, count=1)
    report = caption_bag(bag, tmp_path / "out.mcap", message_captioner, BagOptions(topics=topics))
    assert report.caption_topics == tuple(f"{name}/caption" for name in named)


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
def test_a_bag_without_such_images_says_what_it_has(tmp_path, topics, given, sentence, message_captioner):
    bag = write_bag(tmp_path / "run", topics, count=1)
    with pytest.raises(SourceError, match=sentence):
        caption_bag(bag, tmp_path / "out.mcap", message_captioner, BagOptions(topics=given))


def test_an_output_that_cannot_be_written_or_is_something_else_is_refused(bag, message_captioner):
    for output, sentence in (
        (bag.parent / "nowhere" / "out.mcap", "No such file or directory"),
        (bag.parent / "out.bag", r"must end in \.mcap or \.db3"),
        (storage_file(bag), "become a part of the bag"),
        (bag / "out.mcap", "become a part of the bag"),
    ):
        with pytest.raises(SourceError, match=sentence):
            caption_bag(bag, output, message_captioner, BagOptions(force=True))
    with pytest.raises(OutputError, match="is also an input"):
        caption_bag(storage_file(bag), storage_file(bag), message_captioner, BagOptions(force=True))
