"""The command `smart-caption-node`, which runs the caption node."""

import sys
from functools import partial

from smart_caption_ros.nodes.node_command import run_command

main = partial(run_command, "smart-caption-node", "caption.node", "CaptionNode")

if __name__ == "__main__":
    sys.exit(main())
