"""Image captions for a robot's camera, with a small model that runs on the robot."""

from pkgutil import extend_path

# In a checkout the modules are in this folder, and the generated messages (`msg`, `srv`) in the installed package.
# This line adds the installed package to the search path of `smart_caption_ros.*`.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"
