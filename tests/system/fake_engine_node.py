"""The caption node as a process, with a captioner whose answers are known beforehand."""

import sys

from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.running import run_node
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage

if __name__ == "__main__":
    sys.exit(
        run_node(
            "fake_engine_node",
            lambda: CaptionNode(load_captioner=FakeCaptioner, load_coverage=lambda *chosen: FakeCoverage()),
            None,
        )
    )
