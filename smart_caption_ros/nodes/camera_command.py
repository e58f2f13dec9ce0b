"""The command `smart-caption-camera`, which runs the camera node."""

import sys
from functools import partial

from smart_caption_ros.nodes.node_command import run_command

main = partial(run_command, "smart-caption-camera", "camera.node", "CameraNode")

if __name__ == "__main__":
    sys.exit(main())
