"""Stand-ins for what the launch files use of launch, which is not among the Python wheels."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

_MEMBERS = {
    "launch": "LaunchContext LaunchDescription",
    "launch.actions": "DeclareLaunchArgument ExecuteProcess GroupAction IncludeLaunchDescription OpaqueFunction "
    "Shutdown",
    "launch.conditions": "IfCondition",
    "launch.events": "",
    "launch.events.process": "ProcessExited",
    "launch.launch_description_sources": "PythonLaunchDescriptionSource",
    "launch.substitutions": "LaunchConfiguration",
    "launch_ros": "",
    "launch_ros.actions": "LifecycleNode Node",
}


class StandIn:
    """An action or event of launch: keeps what it was given."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        self.positional = positional
        self.name = positional[0] if positional else ""
        self.default_value = ""
        vars(self).update(named)

    def perform(self, context: SimpleNamespace) -> str:
        """Return the value of an argument."""
        value: str = context.launch_configurations[self.name]
        return value


class NotFoundError(Exception):
    """Stands for PackageNotFoundError."""


def install(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Let launch files be imported; returns the packages that are installed, to which a test may add."""
    packages: set[str] = set()

    def prefix(package: str) -> str:
        if package not in packages:
            raise NotFoundError
        return "/opt/ros"

    for module, members in _MEMBERS.items():
        stand_in = ModuleType(module)
        vars(stand_in).update({name: type(name, (StandIn,), {}) for name in members.split()})
        monkeypatch.setitem(sys.modules, module, stand_in)
    index = ModuleType("ament_index_python.packages")
    share = {"get_package_share_directory": lambda package: str(ROOT), "get_package_prefix": prefix}
    vars(index).update(share, PackageNotFoundError=NotFoundError)
    monkeypatch.setitem(sys.modules, "ament_index_python", ModuleType("ament_index_python"))
    monkeypatch.setitem(sys.modules, "ament_index_python.packages", index)
    return packages


def actions_of(name: str, function: str, given: dict[str, str]) -> tuple[dict[str, Any], list[Any]]:
    """Run a launch file; returns its names, and what one of its functions creates with the given arguments."""
    file = runpy.run_path(str(ROOT / "launch" / f"{name}.launch.py"))
    defaults = {argument.name: argument.default_value for argument in file["ARGUMENTS"]}
    return file, file[function](SimpleNamespace(launch_configurations={**defaults, **given}))
