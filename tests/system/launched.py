"""Launch a file as `ros2 launch` does: `python -m tests.system.launched --ros-args FILE NAME:=VALUE ...`."""

import sys

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

if __name__ == "__main__":
    file, *given = sys.argv[2:]
    service = LaunchService(argv=given, noninteractive=True)
    arguments = [tuple(argument.split(":=", 1)) for argument in given]
    include = IncludeLaunchDescription(AnyLaunchDescriptionSource(file), launch_arguments=arguments)
    service.include_launch_description(LaunchDescription([include]))
    sys.exit(service.run())
