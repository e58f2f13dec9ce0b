"""The caption node as a process, with a captioner whose bundle has a detector of its own."""

import sys
from pathlib import Path
from types import SimpleNamespace

from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.running import run_node
from tests.nodes.fake_captioner import FakeCaptioner


def load(*chosen):
    """Loads the captioner, which finds a wall in every image."""
    captioner = FakeCaptioner(*chosen)
    captioner.detector = SimpleNamespace(path=Path("bundle"), layout="fake layout", class_names=("wall",))
    return captioner


if __name__ == "__main__":
    sys.exit(run_node("detecting_engine_node", lambda: CaptionNode(load_captioner=load), None))
