"""The log node: writes captions into a database when their meaning changes, and finds them again."""

import contextlib
import threading
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from smart_caption_ros.caption_log import Bounds, CaptionLog, CaptionLogError, LogReader
from smart_caption_ros.caption_log.recording import Recorder, record
from smart_caption_ros.caption_log.schema import default_log_path
from smart_caption_ros.live import EventKind, FeedError, FeedEvent
from smart_caption_ros.nodes.caption_log.parameters import CAPTION_LOG_PARAMETERS
from smart_caption_ros.nodes.caption_log.search_service import to_logged_caption, to_query
from smart_caption_ros.nodes.diagnostics_publisher import DiagnosticsPublisher, diagnostic_status
from smart_caption_ros.nodes.live import RosCaptionFeed
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.nodes.robot_pose import RobotPoseLookup
from smart_caption_ros.srv import FindCaptions
from smart_caption_ros.text import MAX_SENTENCE, visible

_END_TIMEOUT_S = 10.0
_FIND_TIMEOUT_S = 2.0
_BYTES_PER_MB, _S_PER_DAY = 10**6, 86_400.0


class CaptionLogNode(Node):
    """Writes captions into one file and serves searches; docs/caption_log.md describes it."""

    def __init__(self, **node_options: Any) -> None:
        """Open the log and start to write; see :class:`smart_caption_ros.nodes.running.RunnableNode`."""
        super().__init__("caption_log_node", **node_options)
        self.exit_status: int | None = None
        self._settings = Parameters(self, CAPTION_LOG_PARAMETERS)
        values = self._settings.values
        self._path = Path(values["path"] or default_log_path()).expanduser()
        bounds = (values["max_size_mb"] * _BYTES_PER_MB, values["max_age_days"] * _S_PER_DAY)
        try:
            self._log = CaptionLog(self._path, Bounds(*bounds))
        except CaptionLogError as error:
            raise ValueError(str(error)) from error
        self._recorder = Recorder(
            self._log,
            robot=values["robot"] or self.get_namespace().strip("/"),
            picture_side_px=values["picture_side_px"],
            on_problem=self.get_logger().warning,
        )
        lookup = None
        if values["map_frame"]:
            lookup = RobotPoseLookup(self, values["map_frame"], values["robot_frame"], self.get_logger().warning)
        has_pictures = values["picture_side_px"] > 0
        try:
            self._feed = RosCaptionFeed(
                self, values["caption_topics"], are_images_wanted=lambda: has_pictures, pose_lookup=lookup
            )
        except FeedError as error:
            self._log.close()
            raise ValueError(str(error)) from error
        self._failure = ""
        self._stopping = threading.Event()
        # A separate group, so that a search does not delay parameters and diagnostics.
        self.create_service(FindCaptions, "~/find", self._find, callback_group=MutuallyExclusiveCallbackGroup())
        self._diagnostics = DiagnosticsPublisher(self, self._statuses)
        # A separate thread, because a transaction may wait for the disk while the service has to answer.
        self._writer = threading.Thread(target=self._write, name="caption log", daemon=True)
        self._writer.start()
        self.get_logger().info(f"writing {self._feed.description} to {self._path}")

    def interrupt(self) -> None:
        self._stopping.set()

    def close(self) -> bool:
        """Wait for the row in progress and close the log; return whether the writing thread has ended."""
        self._stopping.set()
        self._feed.close()
        self._writer.join(_END_TIMEOUT_S)
        if self._writer.is_alive():
            return False
        self._log.close()
        return True

    def _write(self) -> None:
        try:
            record(self._feed, self._recorder, self._stopping.is_set, self._report)
        except Exception as error:  # a FeedError has a sentence for the user; any other is a fault to be reported, too
            self._failure = str(error) if isinstance(error, FeedError) else f"{type(error).__name__}: {error}"
            self.get_logger().error(self._failure)
            self.exit_status = 1

    def _report(self, event: FeedEvent) -> None:
        text = visible(event.text, MAX_SENTENCE)
        with contextlib.suppress(Exception):  # a failed report must not stop the writing
            # rclpy allows one severity per line of code.
            if event.kind is EventKind.ERROR:
                self.get_logger().warning(text)
            elif event.kind is not EventKind.DIAGNOSTICS:
                self.get_logger().info(text)

    def _find(self, request: FindCaptions.Request, response: FindCaptions.Response) -> FindCaptions.Response:
        try:
            query = to_query(request)
            with LogReader(self._path) as reader:
                rows = reader.find(query, with_pictures=request.with_images, timeout_s=_FIND_TIMEOUT_S)
            response.captions = [to_logged_caption(row) for row in rows]
            response.success = True
        except CaptionLogError as error:
            response.message = str(error)
        return response

    def _statuses(self) -> list[DiagnosticStatus]:
        recorder, cameras = self._recorder, self._feed.cameras
        online = [camera for camera in cameras if camera.is_online]
        problem = self._failure or recorder.problem
        conditions = [(DiagnosticStatus.ERROR, problem)] if problem else []
        if recorder.note:
            conditions.append((DiagnosticStatus.WARN, recorder.note))
        if not online:
            reason = "; ".join(self._feed.waiting_for)
            conditions.append((DiagnosticStatus.WARN, f"no captions are published: {reason}"))
        conditions.append((DiagnosticStatus.OK, f"{recorder.captions} captions of {len(cameras)} cameras"))
        values = {
            "log": self._path,
            "captions in the log": recorder.captions,
            "size (MB)": f"{recorder.used_bytes / _BYTES_PER_MB:.1f}",
            "written": recorder.written,
            "unchanged": recorder.unchanged,
            "not written": recorder.failed,
            "lost before they were written": sum(camera.lost for camera in cameras),
            "cameras": ", ".join(visible(camera.camera) for camera in online),
            "last error": problem or recorder.note,
        }
        return [diagnostic_status(f"{self.get_name()}: log", conditions, values)]
