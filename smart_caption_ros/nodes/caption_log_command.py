"""The command `smart-caption-log-node`, which runs the log node."""

import sys
from functools import partial

from smart_caption_ros.nodes.node_command import run_command

main = partial(run_command, "smart-caption-log-node", "caption_log.node", "CaptionLogNode")

if __name__ == "__main__":
    sys.exit(main())
