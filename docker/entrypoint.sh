#!/bin/bash
# Run a command in the environment of ROS and of this package; the command takes the place of this script.
set -e
# shellcheck disable=SC1090,SC1091  # they are in the image
source "/opt/ros/${ROS_DISTRO}/setup.bash" --
# shellcheck disable=SC1090,SC1091
source /opt/ros2_ws/install/setup.bash --
exec "$@"
