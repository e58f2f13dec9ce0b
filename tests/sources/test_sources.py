"""Each source on real files, through `open_source`."""

import os
import re
import shutil
import stat
import struct
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from smart_caption_ros.sources import SourceError, open_source

COLOURS = [(200, 40, 30), (30, 180, 60), (20, 60, 220)]


def picture(number, height=48, width=64):
    return np.full((height, width, 3), COLOURS[number % len(COLOURS)], np.uint8)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "photos"
    root.mkdir()
    for number, name in enumerate(["image1.png", "image2.PNG", "image10.bmp"]):
        cv2.imwrite(str(root / name), picture(number))
    (root / "notes.txt").write_text("not an image")
    (root / ".hidden.png").write_bytes((root / "image1.png").read_bytes())
    for name in ("sub.png", ".ipynb_checkpoints"):
        (root / name).mkdir()
        (root / name / "image1-checkpoint.png").write_bytes((root / "image1.png").read_bytes())
    return root


def test_a_folder_gives_its_images_in_natural_order_and_nothing_else(folder):
    source = open_source(folder)
    frames = list(source)
    assert [(frame.name, frame.index) for frame in frames] == [("image1.png", 0), ("image2.PNG", 1), ("image10.bmp", 2)]
    assert [frame.stamp_ns for frame in frames] == [None] * 3
    for number, frame in enumerate(frames):
        np.testing.assert_array_equal(frame.image_bgr, picture(number))
    assert source.known_length == 3
    assert source.address_of(frames[2]) == str(folder / "image10.bmp")
    assert "3 images" in source.description


def test_no_image_of_a_folder_is_left_out_in_silence(folder, caplog):
    (folder / "without_suffix").write_bytes((folder / "image1.png").read_bytes())
    Image.fromarray(picture(2)[..., ::-1]).save(folder / "b.gif")
    (folder / "c.heic").write_bytes(b"\0\0\0\x18ftypheic and more")
    (folder / "d.jpg").symlink_to(folder / "nowhere.jpg")
    os.mkfifo(folder / "e.jpg")
    (folder / "notes").write_text("no image")
    source = open_source(folder)
    for _ in range(2):
        names = [frame.name for frame in source]
        assert names == ["b.gif", "image1.png", "image2.PNG", "image10.bmp", "without_suffix"]
        assert [(skipped.name, skipped.reason.partition(":")[0]) for skipped in source.skipped_frames] == [
            ("c.heic", "it is damaged or not an image in a format that OpenCV and Pillow read"),
            ("d.jpg", "No such file or directory"),
            ("e.jpg", "it is not a file"),
        ]
    assert f"skipped {folder / 'c.heic'}: it is damaged" in caplog.text


@pytest.mark.parametrize("name", ["image2.PNG", "snapshot"])
def test_a_single_image_is_a_source_of_one_frame(folder, name):
    """Known by its content where the suffix says nothing."""
    (folder / "image2.PNG").rename(folder / name)
    source = open_source(folder / name)
    (frame,) = source
    assert (frame.name, source.known_length, source.address_of(frame)) == (name, 1, str(folder / name))
    np.testing.assert_array_equal(frame.image_bgr, picture(1))


def test_images_may_have_names_that_are_not_utf_8(tmp_path):
    data = cv2.imencode(".png", picture(1))[1].tobytes()
    (tmp_path / "caf\udce9.png").write_bytes(data)
    assert [frame.name for frame in open_source(tmp_path)] == ["caf\udce9.png"]
    (tmp_path / "caf\udce9").write_bytes(data)
    assert len(list(open_source(tmp_path / "caf\udce9"))) == 1


@pytest.mark.parametrize(
    ("spec", "content", "sentence"),
    [
        ("nowhere.mp4", None, "there is no file or folder nowhere.mp4"),
        ("nowhere/", None, "there is no file or folder nowhere/"),
        ("", None, "no image source was named"),
        ("notes.txt", b"some text", r"notes\.txt is not an image, a video or a ROS 2 bag"),
        (".", b"x", r"no images in the folder .*\.jpg.*sub-folders are not searched"),
        ("old.bag", b"#ROSBAG V2.0\n", "is a ROS 1 bag; convert it: rosbags-convert"),
        ("a.png", b"\x89PNG\r\n\x1a\n and then nothing", r"cannot read the image a\.png: it is damaged"),
        ("half.jpg", cv2.imencode(".jpg", picture(0, 640, 480))[1].tobytes()[:900], "the JPEG data is truncated"),
        ("97", None, "cannot open camera 97 .*video devices on this machine"),
        ("sample:videos", None, "there is no sample 'sample:videos'; there are sample:household"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path, monkeypatch, spec, content, sentence):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("x.txt" if spec == "." else spec).write_bytes(content)
    with pytest.raises(SourceError, match=sentence):
        list(open_source(spec))


def test_a_folder_with_broken_images_alone_is_an_error_and_no_endless_loop(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(SourceError, match=r"no frame could be read from folder .*: it is empty"):
        list(open_source(tmp_path))


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    path = tmp_path_factory.mktemp("video") / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10.0, (64, 48))
    for number in range(7):
        writer.write(picture(number))
    writer.release()
    return path


def test_a_video_gives_every_frame_with_its_time_twice_over(video):
    source = open_source(video)
    assert source.known_length == 7
    for _ in range(2):
        frames = list(source)
        assert [frame.index for frame in frames] == list(range(7))
        assert [frame.stamp_ns for frame in frames] == [number * 10**8 for number in range(7)]
        for number, frame in enumerate(frames):
            np.testing.assert_allclose(frame.image_bgr.astype(int), picture(number).astype(int), atol=6)
    assert frames[3].name == "clip.avi#000003"
    assert source.address_of(frames[3]) == f"{video}#3"


@pytest.mark.parametrize("name", ["run:1.avi", "http:clip.avi", "50%03d.avi", "a?b#c", "caf\udce9.avi"], ids=ascii)
def test_a_video_may_have_any_name(video, tmp_path, name, monkeypatch):
    """The last name is not UTF-8."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(video, name)
    source = open_source(name)
    assert len(list(source)) == 7
    assert source.address_of(next(iter(source))) == f"{name}#0"


def test_a_video_that_ends_early_is_read_to_there_with_a_warning(tmp_path, caplog):
    path = tmp_path / "damaged.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10.0, (128, 128))
    noise = np.random.default_rng(0).integers(0, 256, (128, 128, 3), dtype=np.uint8)
    for _ in range(10):
        writer.write(noise)
    writer.release()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    source = open_source(path)
    count = len(list(source))
    assert 3 <= count <= 6
    assert source.notes == [f"{path} ended after {count} of {source.known_length} frames"] == caplog.messages


def test_a_frame_that_is_damaged_is_skipped_and_those_after_it_are_read(video, tmp_path, caplog):
    data = bytearray(video.read_bytes())
    starts = [match.start() for match in re.finditer(b"\xff\xd8\xff", data)]
    for place in range(starts[3], starts[4] - 40):
        data[place] = 0x41
    path = tmp_path / "broken.avi"
    path.write_bytes(data)
    source = open_source(path)
    assert [frame.index for frame in source] == [0, 1, 2, 4, 5, 6]
    assert [skipped.index for skipped in source.skipped_frames] == [3]
    assert "the frame is damaged" in caplog.text


def test_a_video_that_does_not_say_its_length_is_no_live_source(tmp_path):
    """Nor is a stream of JPEG pictures a photograph."""
    path = tmp_path / "clip.mjpeg"
    path.write_bytes(b"".join(cv2.imencode(".jpg", picture(number))[1].tobytes() for number in range(5)))
    source = open_source(path)
    assert (source.known_length, source.is_live) == (None, False)
    assert len(list(source)) == 5


class FakeCapture:
    """cv2.VideoCapture of a camera that gives three frames and is then pulled out."""

    opened = 0

    def __init__(self, index):
        FakeCapture.opened += 1
        self.left = 3 if index == 0 else 0
        self.index = index
        self.released = False

    def isOpened(self):  # noqa: N802
        return self.index == 0

    def set(self, *_):
        return True

    def read(self):
        self.left -= 1
        return (True, picture(0)) if self.left >= 0 else (False, None)

    def release(self):
        self.released = True


@pytest.mark.parametrize("spec", ["0", "/dev/video0"])
def test_a_camera_has_no_length_and_says_when_it_stops(monkeypatch, spec):
    monkeypatch.setattr(cv2, "VideoCapture", FakeCapture)
    FakeCapture.opened = 0
    source = open_source(spec)
    assert source.known_length is None
    camera = iter(source)
    frames = [next(camera) for _ in range(3)]
    with pytest.raises(SourceError, match="camera 0 stopped giving frames after 3"):
        next(camera)
    assert [frame.name for frame in frames] == ["camera0#000000", "camera0#000001", "camera0#000002"]
    assert frames[0].stamp_ns is not None
    assert FakeCapture.opened == 1
    next(iter(source))
    assert FakeCapture.opened == 2
    assert source.is_live


@pytest.mark.skipif(os.geteuid() != 0, reason="a device can be made by root alone")
def test_a_camera_may_be_named_by_its_device_or_a_link_to_it(tmp_path):
    device, link = tmp_path / "front", tmp_path / "usb-Cam_0042-video-index0"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(81, 0))
    except OSError:
        pytest.skip("no device can be made here")
    link.symlink_to(device)
    for spec in (device, link):
        with pytest.raises(SourceError, match=f"cannot open camera {spec} "):
            open_source(spec)


def test_an_rtsp_address_is_a_stream_and_its_password_is_not_repeated():
    with pytest.raises(SourceError, match=r"^cannot open the stream rtsp://127\.0\.0\.1:9/live$"):
        open_source("rtsp://me:secret@127.0.0.1:9/live")


# --- bags -----------------------------------------------------------------------------------------

rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (extra [bags])")

from tests.bags.bag_files import PERIOD_NS, START_NS, compressed, image, storage_file, string, write_bag  # noqa: E402


def second_malformed(number):
    return image(number, "h264" if number == 1 else "bgr8")


@pytest.fixture(params=["SQLITE3", "MCAP"])
def plugin(request):
    return str(request.param)


@pytest.fixture
def bag(tmp_path, plugin):
    """Three pictures on one topic (the second malformed) among messages of another type."""
    topics = {"/camera/image_raw": second_malformed, "/chatter": string}
    return write_bag(tmp_path / "bag", topics, count=3, plugin=plugin)


def test_the_only_image_topic_of_a_bag_is_picked_and_read_with_stamps_to_the_nanosecond(bag):
    source = open_source(bag)
    assert source.known_length == 3
    assert "/camera/image_raw" in source.description
    for _ in range(2):
        frames = list(source)
        assert [frame.index for frame in frames] == [0, 2]
        assert [frame.name for frame in frames] == ["camera_image_raw#000000", "camera_image_raw#000002"]
        for frame in frames:
            stamp = image(frame.index).header.stamp
            assert frame.stamp_ns == stamp.sec * 10**9 + stamp.nanosec
        np.testing.assert_array_equal(frames[1].image_bgr, image(2).data.reshape(32, 48, 3))
        (skipped,) = source.skipped_frames
        assert "unknown encoding 'h264'" in skipped.reason


def test_an_image_without_a_stamp_has_the_time_of_the_recording(tmp_path, plugin):
    def unstamped(number):
        message = compressed(number)
        message.header.stamp.sec = message.header.stamp.nanosec = 0
        return message

    source = open_source(write_bag(tmp_path / "bag", {"/image/compressed": unstamped}, count=2, plugin=plugin))
    assert [frame.stamp_ns for frame in source] == [START_NS, START_NS + PERIOD_NS]


def mcap_record(kind, content):
    return bytes([kind]) + struct.pack("<Q", len(content)) + content


def mcap_text(text):
    return struct.pack("<I", len(text)) + text.encode()


@pytest.mark.parametrize("plugin", ["MCAP"], indirect=True)
def test_an_mcap_file_may_have_channels_of_other_encodings(bag, tmp_path):
    """As tools other than rosbag2 write them: odometry and images as JSON beside those of ROS."""
    records = storage_file(bag).read_bytes()[8:]
    foreign = b"".join(
        mcap_record(3, struct.pack("<H", number) + mcap_text(schema) + mcap_text("jsonschema") + mcap_text("{}"))
        + mcap_record(
            4, struct.pack("<HH", number, number) + mcap_text(topic) + mcap_text("json") + struct.pack("<I", 0)
        )
        + mcap_record(5, struct.pack("<HIQQ", number, 0, 1, 1) + b"{}")
        for number, topic, schema in ((200, "/odom", "Odometry"), (201, "/json_image", "sensor_msgs/msg/Image"))
    )
    header_end = 9 + struct.unpack("<Q", records[1:9])[0]
    # Without the index of the whole file, which would be wrong now; readers scan the records.
    data_end = next(end for end in range(len(records)) if records[end:].startswith(mcap_record(0x0F, bytes(4))))
    magic = b"\x89MCAP0\r\n"
    mixed = tmp_path / "mixed.mcap"
    footer = mcap_record(0x0F, bytes(4)) + mcap_record(2, bytes(20))
    mixed.write_bytes(magic + records[:header_end] + foreign + records[header_end:data_end] + footer + magic)
    source = open_source(mixed)
    assert source.description == f"bag {mixed}, topic /camera/image_raw (3 images)"
    assert [frame.index for frame in source] == [0, 2]


@pytest.mark.parametrize("name", ["run 1", "run:1", "run#1", "run?1", "100%25"])
def test_a_bag_may_have_any_name(bag, tmp_path, name):
    storage = storage_file(bag)
    folder = tmp_path / name
    folder.mkdir()
    for path in (storage.rename(folder / f"{name}{storage.suffix}"), folder):
        assert [frame.index for frame in open_source(path)] == [0, 2]


@pytest.mark.parametrize(
    "change",
    [
        *(("mcap", ""), ("sqlite3", "''"), ("relative_file_paths:", "files:"), ("bag.", "other."), ("cdr", "json")),
        *(("message_count: 3", "message_count: 30"), ("/camera/image_raw", "/other"), ("starting_time", "start")),
    ],
)
def test_a_whole_file_is_read_whatever_its_metadata_says(bag, change):
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace(*change))
    (bag / f"._hidden{storage_file(bag).suffix}").write_bytes(b"of the Finder")
    source = open_source(bag)
    assert source.description == f"bag {bag}, topic /camera/image_raw (3 images)"
    assert [frame.index for frame in source] == [0, 2]


@pytest.mark.parametrize("mode", ["FILE", "MESSAGE"])
def test_compressed_bags_are_read(tmp_path, mode):
    settings = {"mode": rosbag2.CompressionMode[mode], "fmt": rosbag2.CompressionFormat.ZSTD}
    bag = write_bag(tmp_path / "bag", {"/camera/image_raw": image}, count=1, plugin="SQLITE3", **settings)
    (frame,) = open_source(bag)
    np.testing.assert_array_equal(frame.image_bgr, image(0).data.reshape(32, 48, 3))


def test_files_of_a_bag_are_read_in_the_order_of_their_numbers(tmp_path, plugin):
    folder = tmp_path / "run"
    folder.mkdir()
    for number in (0, 2, 10):
        topics = {"/camera/image_raw": lambda _, number=number: image(number)}
        part = storage_file(write_bag(tmp_path / f"part_{number}", topics, count=1, plugin=plugin))
        part.rename(folder / f"run_{number}{part.suffix}")
    (folder / "metadata.yaml").write_text("nothing of the files")
    expected = [START_NS + number * PERIOD_NS - 5_000_000 for number in (0, 2, 10)]
    assert [frame.stamp_ns for frame in open_source(folder)] == expected


def test_a_bag_one_of_whose_files_is_missing_is_not_taken_for_a_whole_one(bag):
    metadata, storage = bag / "metadata.yaml", storage_file(bag)
    metadata.write_text(
        metadata.read_text().replace(f"- {storage.name}", f"- {storage.name}\n  - second{storage.suffix}")
    )
    with pytest.raises(SourceError, match=r"of the 2 storage files in metadata\.yaml, 1 are there"):
        open_source(bag)


def test_a_storage_file_is_opened_without_its_folder(bag):
    storage = storage_file(bag)
    assert len(list(open_source(storage))) == 2
    (bag / "metadata.yaml").unlink()  # as after a recording that was killed
    assert len(list(open_source(bag))) == 2
    (bag / f"second{storage.suffix}").write_bytes(storage.read_bytes())
    with pytest.raises(SourceError, match=r"metadata\.yaml and 2 storage files; name one.*ros2 bag reindex"):
        open_source(bag)


def test_several_image_topics_are_listed_and_one_is_named(tmp_path, plugin):
    topics = {"/left/image": image, "/right/image": lambda number: image(number + 5)}
    path = write_bag(tmp_path / "bag", topics, count=1, plugin=plugin)
    with pytest.raises(
        SourceError, match=r"several image topics; name one as the topic: /left/image \(1\), /right/image \(1\)"
    ):
        open_source(path)
    for topic in ("/right/image", "right/image"):
        (frame,) = open_source(path, topic=topic)
        np.testing.assert_array_equal(frame.image_bgr, image(5).data.reshape(32, 48, 3))
    with pytest.raises(SourceError, match=r"has no image topic /depth; it has /left/image \(1\)"):
        open_source(path, topic="/depth")


def test_bags_without_images_or_without_their_end_are_refused_with_one_sentence(bag, tmp_path):
    with pytest.raises(SourceError, match="has no topic of type Image or CompressedImage"):
        open_source(write_bag(tmp_path / "other", {"/chatter": string}))
    storage = storage_file(bag)
    storage.write_bytes(storage.read_bytes()[:100])
    for spec in (bag, storage):
        with pytest.raises(SourceError, match="cannot read the bag") as caught:
            list(open_source(spec))
        assert "\n" not in str(caught.value)


def test_without_rosbags_the_error_says_what_to_install(bag, monkeypatch):
    monkeypatch.setitem(sys.modules, "rosbags", None)
    monkeypatch.delitem(sys.modules, "rosbags.rosbag2", raising=False)
    with pytest.raises(SourceError, match=r"pip install 'smart_caption_ros\[bags\]'"):
        open_source(bag)


def test_the_sample_photographs_are_eight_of_scikit_image():
    data = pytest.importorskip("skimage.data", reason="scikit-image is not installed (extra [test])")
    source = open_source("sample:photographs")
    frames = {Path(frame.name).stem: frame.image_bgr for frame in source}
    assert list(frames) == ["astronaut", "brick", "camera", "chelsea", "clock_motion", "coffee", "coins", "rocket"]
    assert source.known_length == 8
    assert source.address_of(next(iter(source))) == "sample:photographs#astronaut.png"
    for name in ("astronaut", "chelsea", "coffee"):
        np.testing.assert_array_equal(frames[name][..., ::-1], getattr(data, name)())


def test_without_scikit_image_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SourceError, match="pip install scikit-image"):
        open_source("sample:photographs")
