"""Captions for a robot's camera: a small model says in one sentence what the robot sees."""

from pkgutil import extend_path

# In a checkout the modules come from here and the generated messages (`msg`, `srv`) from the installed
# package, which this line adds to the places where Python looks for `smart_caption_ros.*`.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"
