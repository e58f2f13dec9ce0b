"""The files of `config/` are found, and the Fast DDS profile fits images."""

import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from smart_caption_ros import files
from smart_caption_ros.files import FAST_DDS_PROFILE, config_file

ROOT = Path(__file__).resolve().parents[1]


def test_an_installed_package_uses_the_files_of_its_prefix(tmp_path, monkeypatch):
    prefix = tmp_path / "prefix"
    module = prefix / "lib" / "site-packages" / "smart_caption_ros" / "files.py"
    monkeypatch.setattr(files, "__file__", str(module))
    installed = prefix / "share" / "smart_caption_ros" / "config" / "caption.yaml"
    installed.parent.mkdir(parents=True)
    shutil.copy(ROOT / "config" / "caption.yaml", installed)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'elsewhere'}:{prefix}")
    assert config_file("caption.yaml") == installed
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    monkeypatch.setattr(sys, "prefix", str(prefix))
    assert config_file("caption.yaml") == installed
    with pytest.raises(FileNotFoundError, match=re.escape("config/other.yaml is not installed")):
        config_file("other.yaml")


def test_the_fast_dds_profile_has_room_for_whole_images_and_keeps_udp():
    root = ElementTree.parse(ROOT / "config" / FAST_DDS_PROFILE).getroot()
    space = {"": "http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"}
    transports = {
        found.findtext("type", namespaces=space): found for found in root.iterfind(".//transport_descriptor", space)
    }
    assert set(transports) == {"SHM", "UDPv4"}
    full_hd_bytes = 1920 * 1080 * 3
    segment = int(transports["SHM"].findtext("segment_size", "0", space))
    message = int(transports["SHM"].findtext("maxMessageSize", "0", space))
    assert message > full_hd_bytes
    assert segment > 3 * full_hd_bytes
    participant = root.find("participant", space)
    assert participant.get("is_default_profile") == "true"
    assert participant.findtext("rtps/useBuiltinTransports", namespaces=space) == "false"
    used = {element.text for element in participant.iterfind("rtps/userTransports/transport_id", space)}
    assert used == {found.findtext("transport_id", namespaces=space) for found in transports.values()}
