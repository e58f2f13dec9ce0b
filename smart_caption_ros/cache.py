"""Where what can be made again is kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/smart_caption_ros``, by default in ``~/.cache``; not made by asking for it."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    # The specification has relative paths ignored.
    return (Path(chosen) if chosen.startswith("/") else Path.home() / ".cache") / "smart_caption_ros"
