"""A feed of the captions that running nodes publish, for programs that do not have a node."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence

import rclpy
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from smart_caption_ros.live import FeedError
from smart_caption_ros.nodes.live.caption_feed import PoseLookup, RosCaptionFeed
from smart_caption_ros.record import ACCEPT_ALL, Trust
from smart_caption_ros.text import shortened

_SPIN_S = 0.1
_JOIN_TIMEOUT_S = 5.0


@contextlib.contextmanager
def standalone_feed(
    topics: Sequence[str] = (),
    cameras: Sequence[str] = (),
    *,
    are_images_wanted: Callable[[], bool] = lambda: False,
    make_pose_lookup: Callable[[Node], PoseLookup] | None = None,
    node_name: str = "caption_feed",
    trust: Trust = ACCEPT_ALL,
) -> Iterator[RosCaptionFeed]:
    """Follow captions with a node, on a thread and in an rclpy context that end with the feed.

    Args:
        topics: as of :class:`RosCaptionFeed`, like the next two.
        make_pose_lookup: called once with the node; returns the argument `pose_lookup` of :class:`RosCaptionFeed`.
        node_name: name of the node; the process id is appended.

    Raises:
        FeedError: ROS 2 does not start, or a name is not one of a topic.
    """
    context = Context()
    try:
        rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
        name = f"{node_name}_{os.getpid()}"
        node = Node(name, context=context, enable_rosout=False, start_parameter_services=False)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        pose_lookup = None if make_pose_lookup is None else make_pose_lookup(node)
        feed = RosCaptionFeed(
            node, topics, cameras, are_images_wanted=are_images_wanted, pose_lookup=pose_lookup, trust=trust
        )
    except Exception as error:  # of many types: an invalid domain, a missing middleware
        context.try_shutdown()
        if isinstance(error, FeedError):
            raise
        raise FeedError(f"ROS 2 does not start: {shortened(' '.join(str(error).split()))}") from error
    ended = threading.Event()
    thread = threading.Thread(target=_spin, args=(executor, node, feed, ended), name="captions", daemon=True)
    thread.start()
    try:
        yield feed
    finally:
        feed.close()
        ended.set()
        thread.join(_JOIN_TIMEOUT_S)


def _spin(executor: SingleThreadedExecutor, node: Node, feed: RosCaptionFeed, ended: threading.Event) -> None:
    try:
        while not ended.is_set():
            with contextlib.suppress(InvalidHandle):  # the event is of a subscription that has been destroyed
                executor.spin_once(timeout_sec=_SPIN_S)
    except ExternalShutdownException:
        feed.close("ROS 2 was shut down")
    except Exception as error:
        text = f"receiving captions failed: {type(error).__name__}: {shortened(str(error))}"
        feed.close(failure=FeedError(text))
    finally:
        with contextlib.suppress(Exception):  # some of it may have been destroyed already
            executor.shutdown()
            node.destroy_node()
        node.context.try_shutdown()
