"""Run a node as a process, from its command line to its exit status."""

import argparse
import logging
import os
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, Protocol

import rclpy
from rclpy.exceptions import InvalidHandle, ParameterException
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.nodes.allocator import keep_freed_memory
from smart_caption_ros.nodes.rclpy_private import wait_for_callbacks
from smart_caption_ros.signals import EndSignals
from smart_caption_ros.text import visible

_POLL_S = 0.05  # longest delay until a signal is handled
_CALLBACK_TIMEOUT_S = 3.0
_DEFAULTS = {
    "RMW_IMPLEMENTATION": ("", "rmw_fastrtps_cpp"),
    "ROS_LOCALHOST_ONLY": ("", "0"),
    "ROS_AUTOMATIC_DISCOVERY_RANGE": ("", "SUBNET", "SYSTEM_DEFAULT"),
    "ROS_STATIC_PEERS": ("",),
    "ROS_DISCOVERY_SERVER": ("",),
    "FASTDDS_DEFAULT_PROFILES_FILE": ("",),
    "FASTDDS_BUILTIN_TRANSPORTS": ("",),
    "RMW_FASTRTPS_USE_QOS_FROM_XML": ("",),
}
"""Environment variables that choose middleware, isolation, discovery or profile, with their default values."""
# More than MAX_WAITING_REQUESTS of the caption node, so that lifecycle, images, parameters and diagnostics go on while
# that many service calls wait for the engine. A thread is started when it is needed.
_THREADS = 24
_MAX_SENTENCE = 2000


class RunnableNode(Protocol):
    """Members of a node that :func:`run_node` uses in addition to those of :class:`rclpy.node.Node`.

    Its constructor takes the arguments of that class (namespace, parameter_overrides, context ...), and raises
    ValueError, with one sentence, if a parameter is invalid or names something that cannot be opened.
    """

    exit_status: int | None
    """Exit status of the process, which ends as soon as it is set; None while the node runs."""

    def interrupt(self) -> None:
        """Let callbacks in progress return soon; called once, before :meth:`close`."""

    def close(self) -> bool:
        """Finish the work in progress and stop all threads; called once, after the last callback.

        Return whether all threads have ended; if some have not, the process ends without waiting for them.
        """


def run_node(name: str, make_node: Callable[[], RunnableNode], args: Sequence[str] | None) -> int:
    """Run a node until it sets its exit status, or until SIGINT or SIGTERM.

    Args:
        make_node: raises ValueError for invalid parameters.

    Returns:
        The exit status: 0 after a signal, that of the node if it set one, 1 if the node could not be created, 2 if
        there are arguments other than ROS arguments.
    """
    argv = list(sys.argv if args is None else [name, *args])
    parser = argparse.ArgumentParser(
        prog=name,
        usage="%(prog)s [--help] [--ros-args [-p NAME:=VALUE] [--params-file FILE] [-r FROM:=TO] ...]",
        description="Run a ROS 2 node; its topics, services and parameters are in docs/nodes.md.",
    )
    try:
        parser.parse_args(remove_ros_args(argv)[1:])
        return _run(name, make_node, argv)
    except SystemExit as end:
        return int(end.code or 0)
    except RuntimeError as error:  # the ROS arguments are malformed
        print(f"{name}: {visible(str(error), _MAX_SENTENCE)}", file=sys.stderr)
        return 1


def _run(name: str, make_node: Callable[[], RunnableNode], argv: list[str]) -> int:
    logging.basicConfig(level=logging.WARNING, format=f"{name}: %(message)s")
    keep_freed_memory()
    _choose_fast_dds_profile()
    _choose_log_folder(name)
    # rclpy's own handlers shut the context down at once, while a node may still be starting or publishing.
    with EndSignals() as signals:
        try:
            rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
            node = make_node()
        except (RuntimeError, ValueError, ParameterException) as error:  # rclpy's other errors are RuntimeErrors
            print(f"{name}: {visible(str(error), _MAX_SENTENCE)}", file=sys.stderr)
            rclpy.try_shutdown()
            return 1
        assert isinstance(node, Node)
        executor = MultiThreadedExecutor(num_threads=_THREADS)
        executor.add_node(node)
        ended = threading.Event()
        # The executor spins on a thread without a timeout, because every call of spin_once() rebuilds its wait set.
        spinning = threading.Thread(target=_spin, args=(executor, node, ended), name="executor", daemon=True)
        spinning.start()
        while node.exit_status is None and not signals.arrived:
            time.sleep(_POLL_S)
        status = 0 if node.exit_status is None or signals.arrived else node.exit_status
        node.interrupt()
        ended.set()
        executor.shutdown()
        spinning.join()
        if not wait_for_callbacks(executor, _CALLBACK_TIMEOUT_S):
            _end_process(status)  # a callback hangs, and the node must not be destroyed under it
        threads_have_ended = node.close()
        node.destroy_node()
        rclpy.try_shutdown()
        if not threads_have_ended:
            _end_process(status)
        return status


def _choose_fast_dds_profile() -> None:
    """Choose shared memory with room for images, unless the user has chosen anything about the middleware.

    A profile overrides the whitelists by which ROS isolates a node, and other transports. The profile of the publisher
    matters most: of the images of 640x480 at 30 Hz, 25 % arrived on a busy machine without the profile, 10 % with the
    profile in the subscriber alone, and 100 % with the profile in the camera (two cores, 2026-11-25).
    """
    given = os.environ.get(PROFILE_VARIABLE)
    if given == "":
        del os.environ[PROFILE_VARIABLE]  # Fast DDS would print an error
    elif given is None and all(os.environ.get(name, "") in values for name, values in _DEFAULTS.items()):
        os.environ[PROFILE_VARIABLE] = str(config_file(FAST_DDS_PROFILE))


def _choose_log_folder(name: str) -> None:
    """Let ROS log to a temporary folder if its own cannot be written, because rclpy.init() would fail."""
    folder = Path(os.environ.get("ROS_LOG_DIR") or Path(os.environ.get("ROS_HOME") or "~/.ros", "log"))
    try:
        folder = folder.expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        writable = False
    if not writable:
        os.environ["ROS_LOG_DIR"] = str(_temporary_log_folder())
        print(f"{name}: {folder} cannot be written; ROS logs to {os.environ['ROS_LOG_DIR']}", file=sys.stderr)
    elif not os.environ.get("HOME"):  # rcl needs this variable; Python asks the system for the home folder
        os.environ["ROS_LOG_DIR"] = str(folder)


def _temporary_log_folder() -> Path:
    """Return a folder for the logs of this user, the same one at every start unless another user has created it."""
    folder = Path(tempfile.gettempdir(), f"ros_log_{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="ros_log_"))
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if is_ours else Path(tempfile.mkdtemp(prefix="ros_log_"))


def _end_process(status: int) -> NoReturn:
    """End the process at once; Python would wait for threads that load a model or hang in a driver."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _spin(executor: MultiThreadedExecutor, node: Node, ended: threading.Event) -> None:
    """Run the callbacks; an exception in one is logged and does not end the node."""
    while not ended.is_set():
        try:
            executor.spin_once()
        except InvalidHandle:
            pass  # the event is of an entity that has been destroyed
        except Exception:
            if not ended.is_set():  # the executor loses its handles while it is shut down
                node.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
