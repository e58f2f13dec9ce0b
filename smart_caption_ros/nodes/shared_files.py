"""Where the files of `config/` are: in the checkout, or where the package was installed. Needs no rclpy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = "smart_caption_ros"
FAST_DDS_PROFILE = "fastdds_shared_memory.xml"
PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
"""The variable that the Fast DDS of Jazzy reads; it ignores FASTDDS_DEFAULT_PROFILES_FILE."""


def config_file(name: str) -> Path:
    """The path of a file that the package ships in `config/`.

    Raises:
        FileNotFoundError: it is nowhere; one sentence.
    """
    checkout = Path(__file__).resolve().parents[2]
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    folders = [checkout] if (checkout / "package.xml").is_file() else []
    folders += [Path(prefix, "share", PACKAGE) for prefix in prefixes]
    for folder in folders:
        if (path := folder / "config" / name).is_file():
            return path
    raise FileNotFoundError(f"config/{name} is not installed: it is not in {' or '.join(map(str, folders))}")
