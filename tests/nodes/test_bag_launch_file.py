"""bag.launch.py, run with stand-ins for launch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (extra [bags])")

from tests.bags.bag_files import compressed, image, write_bag
from tests.nodes.fake_launch import actions_of, install


def rosbag2_of(topics: dict[str, int] | Exception) -> ModuleType:
    """What bag.launch.py uses of rosbag2_py, with the number of images on each topic, and an error instead."""

    def read_metadata(path: str, storage_id: str) -> SimpleNamespace:
        if isinstance(topics, Exception):
            raise topics
        images = [(name, "sensor_msgs/msg/CompressedImage", count) for name, count in topics.items()]
        return SimpleNamespace(
            topics_with_message_count=[
                SimpleNamespace(topic_metadata=SimpleNamespace(name=name, type=kind), message_count=count)
                for name, kind, count in [*images, ("/tf", "tf2_msgs/msg/TFMessage", 900)]
            ]
        )

    module = ModuleType("rosbag2_py")
    module.Info = lambda: SimpleNamespace(read_metadata=read_metadata)  # type: ignore[attr-defined]
    return module


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Returns the names in the file, and the actions that it creates with the given arguments."""
    packages = install(monkeypatch)

    def create(
        *, rosbag2: bool = False, topics: dict[str, int] | Exception | None = None, **given: str
    ) -> tuple[dict[str, Any], list[Any]]:
        packages.update({"ros2bag", "rosbag2_transport", "rosbag2_py"} if rosbag2 else ())
        monkeypatch.setitem(sys.modules, "rosbag2_py", rosbag2_of(topics or {"/front/image_raw/compressed": 2}))
        file, (group,) = actions_of("bag", "actions", given)
        return file, group.positional[0]

    return create


def test_without_rosbag2_the_camera_node_plays_at_the_rate_of_the_recording(
    launch: Callable[..., Any], tmp_path: Path
) -> None:
    bag = write_bag(tmp_path / "run", {"/front/image_raw": image}, count=11)  # 10 Hz
    _, (caption, player) = launch(bag=str(bag), rate="2")
    settings = player.parameters[0]
    assert settings["rate_hz"] == pytest.approx(20.0, rel=1e-6)
    assert (settings["source"], settings["bag_topic"], settings["loop"]) == (str(bag), "/front/image_raw", False)
    assert player.remappings == [("image", "/front/image_raw")]
    assert dict(caption.launch_arguments) == {"image_topic": "/front/image_raw", "transport": "raw"}


def test_with_rosbag2_it_plays_with_the_clock_of_the_recording_and_records(
    launch: Callable[..., Any], tmp_path: Path
) -> None:
    bag = write_bag(tmp_path / "run", {"/front/image_raw/compressed": compressed}, count=2)
    _, (recorder, caption, player) = launch(rosbag2=True, bag=str(bag), rate="0.5", output=str(tmp_path / "out"))
    play = ["ros2", "bag", "play", str(bag), "--clock", "--rate", "0.5", "--topics", "/front/image_raw/compressed"]
    assert player.cmd == play
    assert dict(caption.launch_arguments) == {
        "image_topic": "/front/image_raw",
        "transport": "compressed",
        "use_sim_time": "true",
    }
    assert recorder.cmd[:5] == ["ros2", "bag", "record", "--output", str(tmp_path / "out")]


def test_with_rosbag2_the_topic_is_found_without_rosbags(
    launch: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rosbags", None)
    _, (_, player) = launch(rosbag2=True, bag=str(tmp_path), topics={"/front/image_raw": 7, "/rear/image_raw": 0})
    assert player.cmd[-1] == "/front/image_raw"
    with pytest.raises(
        ValueError, match=r"^bag: the bag .* has several image topics; name one as the topic: /a .3., /b"
    ):
        launch(rosbag2=True, bag=str(tmp_path), topics={"/a": 3, "/b": 4})
    with pytest.raises(ValueError, match=r"^bag: .* cannot be read: no storage id$"):
        launch(rosbag2=True, bag=str(tmp_path), topics=RuntimeError("no\nstorage id"))


def test_the_launch_ends_with_the_bag_and_fails_with_the_player(launch: Callable[..., Any], tmp_path: Path) -> None:
    file, _ = launch(bag=str(write_bag(tmp_path / "run", {"/image": image}, count=1)))
    (end,) = file["end_with_the_player"](SimpleNamespace(returncode=0, process_name="player"), None)
    assert end.reason == "the bag has been played"
    with pytest.raises(RuntimeError, match="player ended with status 1"):
        file["end_with_the_player"](SimpleNamespace(returncode=1, process_name="player"), None)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"rate": "0"}, "rate must be a number above 0, not '0'"),
        ({"rate": "fast"}, "rate must be a number above 0, not 'fast'"),
        ({"bag": "/no/such/bag"}, "bag: there is no file or folder /no/such/bag$"),
        ({"topic": "/rear"}, "bag: .*has no image topic /rear; it has /image"),
        ({"output": "out"}, "output needs ros2 bag record"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(
    launch: Callable[..., Any], tmp_path: Path, given: dict[str, str], sentence: str
) -> None:
    bag = write_bag(tmp_path / "run", {"/image": image}, count=1)
    with pytest.raises(ValueError, match=f"^{sentence}"):
        launch(**{"bag": str(bag), **given})
