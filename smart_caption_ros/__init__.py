"""Image captions for a robot's camera, with a small model that runs on the robot."""

import os
from pkgutil import extend_path

# In a checkout the modules are in this folder, and the generated messages (`msg`, `srv`) in the installed package.
# This line adds the installed package to the search path of `smart_caption_ros.*`.
__path__ = extend_path(__path__, __name__)

# ONNX Runtime 1.29 and later reports usage to its vendor on Linux. Its import alone writes to ~/.cache/Microsoft and
# looks up a server, so that disable_telemetry_events() after the import is too late. `training`, `export`,
# `benchmarks` and the tests import this package first.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__version__ = "0.1.0"
