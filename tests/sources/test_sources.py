"""Each source on real files, through `open_source`."""

from __future__ import annotations

import io
import logging
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from smart_caption_ros.sources import SourceError, open_source

COLOURS = [(200, 40, 30), (30, 180, 60), (20, 60, 220)]


def picture(number: int, height: int = 48, width: int = 64) -> NDArray[np.uint8]:
    return np.full((height, width, 3), COLOURS[number % len(COLOURS)], np.uint8)


# --- images and folders ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    root.mkdir()
    for number, name in enumerate(["image1.png", "image2.PNG", "image10.bmp"]):
        cv2.imwrite(str(root / name), picture(number))
    (root / "notes.txt").write_text("not an image")
    (root / ".hidden.png").write_bytes((root / "image1.png").read_bytes())
    (root / "sub.png").mkdir()
    return root


def test_a_folder_gives_its_images_in_natural_order_and_nothing_else(folder: Path) -> None:
    source = open_source(folder)
    frames = list(source)
    assert [frame.name for frame in frames] == ["image1.png", "image2.PNG", "image10.bmp"]
    assert [frame.index for frame in frames] == [0, 1, 2]
    assert [frame.stamp_s for frame in frames] == [None] * 3
    for number, frame in enumerate(frames):
        np.testing.assert_array_equal(frame.image_bgr, picture(number))
    assert len(source) == source.known_length == 3
    assert source.address_of(frames[2]) == str(folder / "image10.bmp")
    assert "3 images" in source.description


def test_a_broken_image_in_a_folder_is_skipped_with_a_warning_and_counted_each_pass(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "image3.jpg").write_bytes(b"not a JPEG")
    source = open_source(folder)
    with caplog.at_level(logging.WARNING):
        names = [frame.name for frame in source]
    assert names == ["image1.png", "image2.PNG", "image10.bmp"]
    assert source.skipped == 1
    assert source.skipped_frames[0].name == "image3.jpg"
    assert f"skipped {folder / 'image3.jpg'}: it is damaged" in caplog.text
    assert [frame.index for frame in source] == [0, 1, 3]
    assert source.skipped == 1


def test_no_image_of_a_folder_is_left_out_in_silence(tmp_path: Path) -> None:
    data = cv2.imencode(".png", picture(1))[1].tobytes()
    for name in ("a.png", "without_suffix"):
        (tmp_path / name).write_bytes(data)
    gif = io.BytesIO()
    Image.fromarray(picture(2)[..., ::-1]).save(gif, "GIF")
    (tmp_path / "b.gif").write_bytes(gif.getvalue())
    (tmp_path / "c.heic").write_bytes(b"\0\0\0\x18ftypheic and more")
    (tmp_path / "d.jpg").symlink_to(tmp_path / "nowhere.jpg")
    for name in ("notes", "notes.txt", ".hidden.png"):
        (tmp_path / name).write_text("no image")
    (tmp_path / "folder.png").mkdir()
    source = open_source(tmp_path)
    assert [frame.name for frame in source] == ["a.png", "b.gif", "without_suffix"]
    assert [(skipped.name, skipped.reason.partition(":")[0]) for skipped in source.skipped_frames] == [
        ("c.heic", "it is damaged or not an image in a format that OpenCV and Pillow read"),
        ("d.jpg", "No such file or directory"),
    ]


def test_a_folder_with_broken_images_alone_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(SourceError, match=r"no frame could be read from folder .*: it is empty"):
        list(open_source(tmp_path))


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(SourceError, match=r"no images in the folder .*\.jpg.*sub-folders are not searched"):
        open_source(tmp_path)


def test_a_single_image_is_a_source_of_one_frame(folder: Path) -> None:
    source = open_source(folder / "image2.PNG")
    (frame,) = source
    assert (frame.name, len(source)) == ("image2.PNG", 1)
    assert source.address_of(frame) == str(folder / "image2.PNG")


def test_an_image_is_known_by_its_content_where_the_suffix_says_nothing(folder: Path) -> None:
    renamed = (folder / "image1.png").rename(folder / "snapshot")
    (frame,) = open_source(renamed)
    np.testing.assert_array_equal(frame.image_bgr, picture(0))


def test_a_broken_single_image_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    with pytest.raises(SourceError, match=r"cannot read the image .*broken\.png: it is damaged"):
        list(open_source(path))


def test_a_truncated_jpeg_is_not_captioned_as_half_a_picture(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = cv2.imencode(".jpg", noise)[1].tobytes()
    (tmp_path / "half.jpg").write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match="the JPEG data is truncated"):
        list(open_source(tmp_path / "half.jpg"))


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_grey_and_transparent_images_become_three_channels(tmp_path: Path, suffix: str) -> None:
    cv2.imwrite(str(tmp_path / f"grey{suffix}"), np.full((8, 9), 77, np.uint8))
    cv2.imwrite(str(tmp_path / "alpha.png"), np.full((8, 9, 4), 77, np.uint8))
    for frame in open_source(tmp_path):
        np.testing.assert_array_equal(frame.image_bgr, np.full((8, 9, 3), 77, np.uint8))


# --- what cannot be opened ------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["nowhere", "nowhere.jpg", "nowhere.mp4", "nowhere.mcap", "nowhere/"])
def test_a_path_that_does_not_exist_is_named(spec: str) -> None:
    with pytest.raises(SourceError, match=f"there is no file or folder {spec}"):
        open_source(spec)


def test_an_empty_spec_is_not_the_current_folder() -> None:
    with pytest.raises(SourceError, match="no image source was named"):
        open_source("")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some text")
    with pytest.raises(SourceError, match=r"notes\.txt is not an image, a video or a ROS 2 bag"):
        open_source(tmp_path / "notes.txt")


def test_a_topic_for_something_that_is_no_bag_is_refused(folder: Path) -> None:
    with pytest.raises(SourceError, match=r"a topic was given \(/camera\), but .* is not a ROS 2 bag"):
        open_source(folder, topic="/camera")
    assert len(open_source(folder, topic="")) == 3


# --- videos ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("video") / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10.0, (64, 48))
    for number in range(7):
        writer.write(picture(number))
    writer.release()
    return path


def test_a_video_gives_every_frame_with_its_time_twice_over(video: Path) -> None:
    source = open_source(video)
    assert len(source) == 7
    for _ in range(2):
        frames = list(source)
        assert [frame.index for frame in frames] == list(range(7))
        assert [frame.stamp_s for frame in frames] == pytest.approx([number / 10 for number in range(7)])
        for number, frame in enumerate(frames):
            np.testing.assert_allclose(frame.image_bgr.astype(int), picture(number).astype(int), atol=6)
    assert frames[3].name == "clip.avi#000003"
    assert source.address_of(frames[3]) == f"{video}#3"


@pytest.mark.parametrize("name", ["run:1.avi", "http:clip.avi", "50%03d.avi", "a?b#c", "caf\udce9.avi"])
def test_a_video_may_have_any_name(video: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last name is not UTF-8."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(video, name)
    source = open_source(name)
    assert len(list(source)) == 7
    assert source.address_of(next(iter(source))) == f"{name}#0"


def test_images_may_have_names_that_are_not_utf_8(tmp_path: Path) -> None:
    data = cv2.imencode(".png", picture(1))[1].tobytes()
    (tmp_path / "caf\udce9.png").write_bytes(data)
    assert [frame.name for frame in open_source(tmp_path)] == ["caf\udce9.png"]
    (tmp_path / "caf\udce9").write_bytes(data)
    assert len(list(open_source(tmp_path / "caf\udce9"))) == 1


def test_a_video_that_ends_early_is_read_to_there_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
    assert f"ended after {count} of {len(source)} frames" in caplog.text


# --- cameras --------------------------------------------------------------------------------------


class FakeCapture:
    """cv2.VideoCapture of a camera that gives three frames and is then pulled out."""

    opened = 0

    def __init__(self, index: int) -> None:
        FakeCapture.opened += 1
        self.left = 3 if index == 0 else 0
        self.index = index
        self.released = False

    def isOpened(self) -> bool:  # noqa: N802
        return self.index == 0

    def set(self, *_: object) -> bool:
        return True

    def read(self) -> tuple[bool, NDArray[np.uint8] | None]:
        self.left -= 1
        return (True, picture(0)) if self.left >= 0 else (False, None)

    def release(self) -> None:
        self.released = True


@pytest.mark.parametrize("spec", ["0", "/dev/video0"])
def test_a_camera_has_no_length_and_says_when_it_stops(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.setattr(cv2, "VideoCapture", FakeCapture)
    FakeCapture.opened = 0
    source = open_source(spec)
    assert source.known_length is None
    assert bool(source)
    with pytest.raises(TypeError, match="the number of frames of camera 0 is not known"):
        len(source)
    camera = iter(source)
    frames = [next(camera) for _ in range(3)]
    with pytest.raises(SourceError, match="camera 0 stopped giving frames after 3"):
        next(camera)
    assert [frame.name for frame in frames] == ["camera0#000000", "camera0#000001", "camera0#000002"]
    assert frames[0].stamp_s is not None
    assert FakeCapture.opened == 1
    next(iter(source))
    assert FakeCapture.opened == 2


def test_a_camera_that_is_not_there_is_refused_when_it_is_named() -> None:
    with pytest.raises(SourceError, match=r"cannot open camera 97 .*video devices on this machine"):
        open_source("97")


# --- bags -----------------------------------------------------------------------------------------

rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (extra [bags])")

STAMP_S = 1_700_000_000.25


class BagWriter:
    """Writes a bag with rosbags; `write` takes the message as keyword arguments."""

    def __init__(self, path: Path, plugin: str, **compression: Any) -> None:
        from rosbags.typesys import Stores, get_typestore

        self.store = get_typestore(Stores.ROS2_JAZZY)
        self.writer = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin[plugin])
        if compression:
            self.writer.set_compression(**compression)
        self.connections: dict[str, Any] = {}

    def __enter__(self) -> BagWriter:
        self.writer.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()

    def topic(self, topic: str, msgtype: str = "sensor_msgs/msg/Image") -> None:
        self.connections[topic] = self.writer.add_connection(topic, msgtype, typestore=self.store)

    def header(self, stamp_s: float) -> Any:
        types = self.store.types
        stamp = types["builtin_interfaces/msg/Time"](sec=int(stamp_s), nanosec=int(stamp_s % 1 * 1e9))
        return types["std_msgs/msg/Header"](stamp=stamp, frame_id="camera")

    def write(self, topic: str, recorded_s: float, stamp_s: float = 0.0, **fields: Any) -> None:
        connection = self.connections[topic]
        if "data" in fields and isinstance(fields["data"], bytes):
            fields["data"] = np.frombuffer(fields["data"], np.uint8)
        if connection.msgtype != "std_msgs/msg/String":
            fields["header"] = self.header(stamp_s)
        message = self.store.types[connection.msgtype](**fields)
        raw = self.store.serialize_cdr(message, connection.msgtype)
        self.writer.write(connection, int(recorded_s * 1e9), raw)


def image_fields(image_bgr: NDArray[np.uint8]) -> dict[str, Any]:
    height, width = image_bgr.shape[:2]
    return {
        "height": height,
        "width": width,
        "encoding": "rgb8",
        "is_bigendian": 0,
        "step": 3 * width,
        "data": image_bgr[..., ::-1].tobytes(),
    }


@pytest.fixture(params=["SQLITE3", "MCAP"])
def plugin(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bag(tmp_path: Path, plugin: str) -> Path:
    """Three pictures on one topic (the second malformed) among messages of another type."""
    path = tmp_path / "bag"
    with BagWriter(path, plugin) as writer:
        writer.topic("/camera/image_raw")
        writer.topic("/chatter", "std_msgs/msg/String")
        for number in range(3):
            fields = image_fields(picture(number))
            if number == 1:
                fields["encoding"] = "h264"
            writer.write("/camera/image_raw", STAMP_S + number + 0.1, STAMP_S + number, **fields)
            writer.write("/chatter", STAMP_S + number, data="hello")
    return path


def test_the_only_image_topic_of_a_bag_is_picked_and_read(bag: Path) -> None:
    source = open_source(bag)
    assert len(source) == 3
    assert "/camera/image_raw" in source.description
    for _ in range(2):
        frames = list(source)
        assert [frame.index for frame in frames] == [0, 2]
        assert [frame.name for frame in frames] == ["camera_image_raw#000000", "camera_image_raw#000002"]
        assert [frame.stamp_s for frame in frames] == pytest.approx([STAMP_S, STAMP_S + 2], abs=1e-6)
        np.testing.assert_array_equal(frames[1].image_bgr, picture(2))
        assert source.skipped == 1
        assert "unknown encoding 'h264'" in source.skipped_frames[0].reason


def mcap_record(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + struct.pack("<Q", len(content)) + content


def mcap_text(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


@pytest.mark.parametrize("plugin", ["MCAP"], indirect=True)
def test_an_mcap_file_may_have_channels_of_other_encodings(bag: Path, tmp_path: Path) -> None:
    """As tools other than rosbag2 write them: odometry and images as JSON beside those of ROS."""
    path = next(bag.glob("*.mcap"))
    with path.open("rb") as file:
        records = file.read()[8:]
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
def test_a_bag_may_have_any_name(bag: Path, tmp_path: Path, name: str) -> None:
    (storage,) = (path for path in bag.iterdir() if path.suffix in (".mcap", ".db3"))
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
def test_a_whole_file_is_read_whatever_its_metadata_says(bag: Path, change: tuple[str, str]) -> None:
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace(*change))
    source = open_source(bag)
    assert source.description == f"bag {bag}, topic /camera/image_raw (3 images)"
    assert [frame.index for frame in source] == [0, 2]


@pytest.mark.parametrize("plugin", ["SQLITE3"], indirect=True)
@pytest.mark.parametrize("mode", ["FILE", "MESSAGE"])
def test_compressed_bags_are_read(tmp_path: Path, plugin: str, mode: str) -> None:
    settings = {"mode": rosbag2.CompressionMode[mode], "fmt": rosbag2.CompressionFormat.ZSTD}
    with BagWriter(tmp_path / "bag", plugin, **settings) as writer:
        writer.topic("/camera/image_raw")
        writer.write("/camera/image_raw", STAMP_S, STAMP_S, **image_fields(picture(1)))
    (frame,) = open_source(tmp_path / "bag")
    np.testing.assert_array_equal(frame.image_bgr, picture(1))


def test_files_of_a_bag_are_read_in_the_order_of_their_numbers(tmp_path: Path, plugin: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for number in (0, 2, 10):
        with BagWriter(tmp_path / f"part_{number}", plugin) as writer:
            writer.topic("/camera/image_raw")
            writer.write("/camera/image_raw", STAMP_S + number, STAMP_S + number, **image_fields(picture(1)))
        (part,) = (path for path in (tmp_path / f"part_{number}").iterdir() if path.suffix in (".mcap", ".db3"))
        part.rename(folder / f"run_{number}{part.suffix}")
    (folder / "metadata.yaml").write_text("nothing of the files")
    stamps_s = [frame.stamp_s for frame in open_source(folder) if frame.stamp_s is not None]
    assert stamps_s == pytest.approx([STAMP_S, STAMP_S + 2, STAMP_S + 10], abs=1e-6)


def test_a_bag_one_of_whose_files_is_missing_is_not_taken_for_a_whole_one(bag: Path) -> None:
    metadata = bag / "metadata.yaml"
    (storage,) = (path for path in bag.iterdir() if path.suffix in (".mcap", ".db3"))
    metadata.write_text(
        metadata.read_text().replace(f"- {storage.name}", f"- {storage.name}\n  - second{storage.suffix}")
    )
    with pytest.raises(SourceError, match=r"of the 2 storage files in metadata\.yaml, 1 are there"):
        open_source(bag)


def test_a_storage_file_is_opened_without_its_folder(bag: Path, tmp_path: Path) -> None:
    (storage,) = (path for path in bag.iterdir() if path.suffix in (".mcap", ".db3"))
    assert len(list(open_source(storage))) == 2
    (bag / "metadata.yaml").unlink()  # as after a recording that was killed
    assert len(list(open_source(bag))) == 2
    (bag / f"second{storage.suffix}").write_bytes(storage.read_bytes())
    with pytest.raises(SourceError, match=r"metadata\.yaml and 2 storage files; name one.*ros2 bag reindex"):
        open_source(bag)


def test_compressed_images_are_read_and_stamped_with_the_recording_time_where_the_header_has_none(
    tmp_path: Path, plugin: str
) -> None:
    path = tmp_path / "bag"
    with BagWriter(path, plugin) as writer:
        writer.topic("/image/compressed", "sensor_msgs/msg/CompressedImage")
        data = cv2.imencode(".png", picture(1))[1].tobytes()
        writer.write("/image/compressed", STAMP_S, format="png", data=data)
    (frame,) = open_source(path)
    np.testing.assert_array_equal(frame.image_bgr, picture(1))
    assert frame.stamp_s == pytest.approx(STAMP_S, abs=1e-6)


def test_several_image_topics_are_listed_and_one_is_named(tmp_path: Path, plugin: str) -> None:
    path = tmp_path / "bag"
    with BagWriter(path, plugin) as writer:
        for number, topic in enumerate(["/left/image", "/right/image", "/unused"]):
            writer.topic(topic)
            for _ in range(number if topic != "/unused" else 0):
                writer.write(topic, STAMP_S, **image_fields(picture(number)))
        writer.write("/left/image", STAMP_S, **image_fields(picture(0)))
    with pytest.raises(
        SourceError, match=r"several image topics; name one as the topic: /left/image \(1\), /right/image \(1\)"
    ):
        open_source(path)
    for topic in ("/right/image", "right/image"):
        (frame,) = open_source(path, topic=topic)
        np.testing.assert_array_equal(frame.image_bgr, picture(1))
    with pytest.raises(SourceError, match=r"has no image topic /depth; it has /left/image \(1\)"):
        open_source(path, topic="/depth")


def test_a_bag_without_images_is_refused(tmp_path: Path, plugin: str) -> None:
    path = tmp_path / "bag"
    with BagWriter(path, plugin) as writer:
        writer.topic("/chatter", "std_msgs/msg/String")
        writer.write("/chatter", STAMP_S, data="hello")
    with pytest.raises(SourceError, match="has no topic of type Image or CompressedImage"):
        open_source(path)


def test_a_damaged_bag_is_refused_with_one_sentence(bag: Path) -> None:
    (storage,) = (path for path in bag.iterdir() if path.suffix in (".mcap", ".db3"))
    storage.write_bytes(storage.read_bytes()[:100])
    for spec in (bag, storage):
        with pytest.raises(SourceError, match="cannot read the bag") as caught:
            list(open_source(spec))
        assert "\n" not in str(caught.value)


def test_a_bag_of_ros_1_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "old.bag").write_bytes(b"#ROSBAG V2.0\n")
    with pytest.raises(SourceError, match=r"is a ROS 1 bag; convert it: rosbags-convert"):
        open_source(tmp_path / "old.bag")


def test_without_rosbags_the_error_says_what_to_install(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rosbags", None)
    monkeypatch.delitem(sys.modules, "rosbags.rosbag2", raising=False)
    with pytest.raises(SourceError, match=r"pip install 'smart_caption_ros\[bags\]'"):
        open_source(bag)


# --- sample photographs ---------------------------------------------------------------------------


def test_the_sample_photographs_are_eight_of_scikit_image() -> None:
    data = pytest.importorskip("skimage.data", reason="scikit-image is not installed (extra [test])")
    source = open_source("sample:photographs")
    frames = {Path(frame.name).stem: frame.image_bgr for frame in source}
    assert list(frames) == ["astronaut", "brick", "camera", "chelsea", "clock_motion", "coffee", "coins", "rocket"]
    assert len(source) == 8
    assert source.address_of(next(iter(source))) == "sample:photographs#astronaut.png"
    for name in ("astronaut", "chelsea", "coffee"):
        np.testing.assert_array_equal(frames[name][..., ::-1], getattr(data, name)())


def test_without_scikit_image_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(_: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", find_nothing)
    with pytest.raises(SourceError, match="pip install scikit-image"):
        open_source("sample:photographs")


def test_another_sample_is_refused() -> None:
    with pytest.raises(SourceError, match="there is no sample 'sample:videos'; there are sample:household"):
        open_source("sample:videos")
