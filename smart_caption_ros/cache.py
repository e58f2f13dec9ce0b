"""Where what can be made again is kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The package's folder in the user's cache; nobody has made it yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smart_caption_ros"
