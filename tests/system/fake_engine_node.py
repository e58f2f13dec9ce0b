"""The caption node as a process, with a fake captioner; the parameter `bundle` names the kind of captioner."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.running import run_node
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage

LOADS, SLOW, DETECTS = "loads", "slow", "detects"
"""Kinds of captioners: one takes minutes to load, as when an engine is built; one takes 0.2 s for a frame; one finds a
wall in every image."""


def load(path, *chosen):
    kind = path.name if path else ""
    if kind == LOADS:
        time.sleep(600)
    captioner = FakeCaptioner(path, *chosen, delay_s=0.2 if kind == SLOW else 0.0)
    if kind == DETECTS:
        captioner.detector = SimpleNamespace(path=Path("bundle"), layout="fake layout", class_names=("wall",))
    return captioner


if __name__ == "__main__":
    options = {"load_captioner": load, "load_coverage": lambda *chosen: FakeCoverage()}
    sys.exit(run_node("fake_engine_node", lambda: CaptionNode(**options), None))
