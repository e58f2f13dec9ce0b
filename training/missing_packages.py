"""Report a package that is not installed in one sentence; called by the packages whose modules ``python -m`` runs."""

import sys
from functools import partial
from importlib.util import find_spec
from types import TracebackType

_ROS = "rclpy"


def report_missing_packages(extra: str) -> None:
    """Let the command that ``python -m`` runs end with one sentence where a package is missing, without a traceback.

    A program that imports the calling package as a library gets the exception as it is.
    ``extra``: that of this project that has the packages.
    """
    if sys.argv[0] == "-m":  # until Python has found the module that it runs
        sys.excepthook = partial(_report, extra)


def _report(extra: str, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if not name or name in sys.modules or find_spec(name) is not None:
        sys.__excepthook__(kind, error, traceback)
        return
    remedy = "source /opt/ros/DISTRO/setup.bash" if name == _ROS else f"pip install '.[{extra}]'"
    print(f"error: this command needs {name}, which is not installed: {remedy}", file=sys.stderr)
