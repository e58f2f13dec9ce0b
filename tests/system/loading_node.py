"""The caption node as a process, with a captioner that takes minutes to load, as an engine that is built does."""

import sys
import time

from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.running import run_node


def load(*chosen):
    """Loads for longer than any test waits."""
    time.sleep(600)


if __name__ == "__main__":
    sys.exit(run_node("loading_node", lambda: CaptionNode(load_captioner=load), None))
