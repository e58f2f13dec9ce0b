"""The messages without ROS: the same definitions, hashes and bytes as those of rclpy."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (extra [bags])")

from smart_caption_ros import files
from smart_caption_ros.bags.message_types import CAPTION, message_types, typestore


def test_fields_that_are_not_given_have_the_defaults_of_ros():
    caption = message_types().Caption(text="a cup")
    assert (caption.text, caption.camera, caption.status, caption.words) == ("a cup", "", 0, [])
    assert caption.coverage.valid is False
    assert caption.timing.total_ms == 0.0
    back = typestore().deserialize_cdr(typestore().serialize_cdr(caption, CAPTION), CAPTION)
    assert back == caption


def test_definitions_are_found_in_a_package_that_pip_installed(tmp_path, monkeypatch):
    installed = tmp_path / "site-packages" / "smart_caption_ros"
    (installed / "interfaces" / "msg").mkdir(parents=True)
    monkeypatch.setattr(files, "__file__", str(installed / "files.py"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    with pytest.raises(FileNotFoundError, match=r"msg/Caption\.msg is not installed"):
        files.message_definitions()
    (installed / "interfaces" / "msg" / "Caption.msg").write_text("string text\n")
    assert list(files.message_definitions()) == ["Caption"]


@pytest.mark.needs_ros
def test_rclpy_reads_what_rosbags_wrote_and_has_the_same_type_hash():
    from rclpy.serialization import deserialize_message
    from smart_caption_ros.msg import Caption

    store, types = typestore(), message_types()
    word = types.CaptionWord(text="cup", log_probability=-0.5, box=types.BoundingBox(x2=4.0))
    raw = bytes(store.serialize_cdr(types.Caption(text="cup", words=[word], score=-1.5), CAPTION))
    read = deserialize_message(raw, Caption)
    assert (read.text, read.score, read.words[0].box.x2) == ("cup", -1.5, 4.0)
    described = Path(sys.prefix, "share", "smart_caption_ros", "msg", "Caption.json")
    if described.is_file():  # Humble has no type hashes
        hashes = {
            type_hash["type_name"]: type_hash["hash_string"]
            for type_hash in json.loads(described.read_text())["type_hashes"]
        }
        assert store.hash_rihs01(CAPTION) == hashes[CAPTION]
