"""The caption node as a process, with a captioner that takes a fifth of a second for a frame."""

import functools
import sys

from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.running import run_node
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage

if __name__ == "__main__":
    load = functools.partial(FakeCaptioner, delay_s=0.2)
    sys.exit(
        run_node(
            "slow_engine_node",
            lambda: CaptionNode(load_captioner=load, load_coverage=lambda *chosen: FakeCoverage()),
            None,
        )
    )
