"""The publisher of one camera of the caption node: adds evidence to captions, publishes and counts them.

It publishes on `<topic>` and `<topic>/text`, and while they have subscribers also on `<topic>/image` (:mod:`.overlay`),
`<topic>/detections` and `<topic>/annotations`. Each camera has a thread that waits for the detections of its captions,
so that neither the worker nor another camera has to wait.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header, String

from smart_caption_ros import msg
from smart_caption_ros.caption_messages import to_message
from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.grounding.text_filter import TextFilter
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.caption.annotations import to_annotations
from smart_caption_ros.nodes.caption.detection_buffer import ExpectedDetections
from smart_caption_ros.nodes.caption.detection_messages import to_vision
from smart_caption_ros.nodes.caption.evidence import Evidence, ObjectOrigin, collect_evidence
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.overlay import Overlay
from smart_caption_ros.nodes.caption.records import ReceivedImage
from smart_caption_ros.nodes.caption.statistics import Statistics
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.record import CaptionRecord, CaptionStatus, Trust
from smart_caption_ros.text import visible

try:
    import vision_msgs.msg as vision_msgs
except ImportError:  # not part of the ROS 2 core
    vision_msgs = None
try:
    import foxglove_msgs.msg as foxglove_msgs
except ImportError:
    foxglove_msgs = None

MAX_IMAGES = 16
"""Maximum number of captions of a camera that keep their image for the overlay while they wait for detections."""

_LOG_PERIOD_S = 5.0


class Publisher:
    """Publishes the captions of one camera.

    Attributes:
        name: name of the camera; empty for the only camera of a node.
        topic: topic of the captions, after remapping.
    """

    def __init__(self, node: LifecycleNode, name: str, parameters: Parameters) -> None:
        self.name = name
        self._given_topic = f"{name}/caption" if name else "robot/caption"
        self.topic: str = node.resolve_topic_name(self._given_topic)
        self.statistics = Statistics()
        self._node = node
        self._parameters = parameters
        self._texts = TextFilter()
        self._publishers: dict[str, LifecyclePublisher] = {}
        self._overlay: Overlay | None = None
        self._submitted = self._completed = 0  # each counted on one thread
        self._due_s: float | None = None
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="publisher")

    @property
    def in_work_s(self) -> float:
        """Time for which the caption in progress has been in work after its wait for detections, seconds; else 0."""
        due_s = self._due_s
        return 0.0 if due_s is None else max(0.0, time.monotonic() - due_s)

    @property
    def is_watched(self) -> bool:
        return any(map(self._is_watched, self._publishers))

    def create_topics(self) -> None:
        """Create lifecycle publishers, which the node activates and deactivates with itself."""
        # The unremapped name: rclpy applies remappings when it creates the publisher.
        self._publishers = {
            "": self._create(Caption, self._given_topic),
            "text": self._create(String, f"{self.topic}/text"),
            "image": self._create(Image, f"{self.topic}/image", 1),
            "jpeg": self._create(CompressedImage, f"{self.topic}/image/compressed", 1),
        }
        if vision_msgs is not None:
            self._publishers["detections"] = self._create(vision_msgs.Detection2DArray, f"{self.topic}/detections")
        if foxglove_msgs is not None:
            self._publishers["annotations"] = self._create(foxglove_msgs.ImageAnnotations, f"{self.topic}/annotations")
        self._overlay = Overlay(self._node, self._publishers["image"], self._publishers["jpeg"])

    def destroy_topics(self) -> None:
        """End the thread that draws, and destroy the publishers."""
        if self._overlay is not None:
            self._overlay.close()
        for publisher in self._publishers.values():
            self._node.destroy_lifecycle_publisher(publisher)
        self._publishers, self._overlay = {}, None

    def wait_until_idle(self) -> None:
        """Wait until all captions and overlays are published."""
        self._executor.submit(lambda: None).result()
        if self._overlay is not None:
            self._overlay.wait_until_idle()

    def forget(self) -> None:
        """Forget the last text, so that the next one is published whatever its meaning."""
        self._texts.forget()

    def close(self, timeout_s: float) -> bool:
        """Publish the captions in progress and end the threads; return whether they have ended in time."""
        is_idle = bool(wait([self._executor.submit(lambda: None)], timeout_s).done)
        self._executor.shutdown(wait=is_idle, cancel_futures=True)
        if self._overlay is not None:
            self._overlay.close()
        return is_idle

    def publish(self, image: ReceivedImage, record: CaptionRecord, model: Model | None) -> None:
        """Publish the caption of an image on the thread of the camera, as soon as its detections have arrived.

        Args:
            record: the record of the caption, without the detections of the topic and without nouns.
            model: the model that captioned the image; None while the node is unconfigured.

        Raises:
            RuntimeError: the thread has ended.
        """
        if self._overlay is None or not self._overlay.is_watched or self._submitted - self._completed >= MAX_IMAGES:
            record = replace(record, image=None)
        # Not the image message, whose pixels would stay in memory during the wait.
        given = (image.message.header, image.received_s, image.detections, record, model)
        self._submitted += 1
        self._executor.submit(self._complete_and_publish, *given)

    def count_failure(self, reason: str) -> None:
        """Count an image whose caption could not be published as an error, and log the reason."""
        self._node.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
        self.statistics.count_answer(CaptionStatus.ERROR, reason, latency_s=0.0, work_s=0.0)

    def complete(
        self, record: CaptionRecord, header: Header, detections: ExpectedDetections | None, model: Model | None
    ) -> tuple[CaptionRecord, Caption]:
        """Complete a record with :func:`complete_record`, count the evidence, and log problems; never raises."""
        record, message, evidence = complete_record(record, header, detections, model, trust_of(self._parameters))
        logger = self._node.get_logger()
        if evidence is not None:
            # Missing detections are reported once a detector has published, even if it has stopped since.
            if detections is None or not detections.are_expected:
                evidence = replace(evidence, missing_reason="")
            self.statistics.count_evidence(evidence)
            if evidence.coverage_error:
                logger.error(evidence.coverage_error, throttle_duration_sec=_LOG_PERIOD_S)
            elif evidence.missing_reason:
                objects = "no objects" if evidence.origin is ObjectOrigin.NONE else "objects of the node's own detector"
                logger.warning(
                    f"a caption goes out with {objects}: {evidence.missing_reason}",
                    throttle_duration_sec=_LOG_PERIOD_S,
                )
        if record.status is CaptionStatus.ERROR:
            logger.error(record.status_message, throttle_duration_sec=_LOG_PERIOD_S)
        elif record.status is CaptionStatus.STALE:
            logger.warning(record.status_message, throttle_duration_sec=_LOG_PERIOD_S)
        return record, message

    def _complete_and_publish(
        self,
        header: Header,
        received_s: float,
        detections: ExpectedDetections | None,
        record: CaptionRecord,
        model: Model | None,
    ) -> None:
        self._due_s = max(time.monotonic(), detections.until_s if detections is not None else 0.0)
        has_detector = model is not None and model.captioner.detector is not None
        own_objects = record.caption.objects if has_detector and record.caption.image_size[0] else None
        try:
            record, message = self.complete(record, header, detections, model)
            self._publish(record, message, own_objects)
            status, reason = record.status, record.status_message
        except Exception as error:
            status, reason = CaptionStatus.ERROR, f"cannot publish the caption: {error_description(error)}"
            self._node.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
        finally:
            self._due_s = None
            self._completed += 1
        # Counted from the arrival if the age is unknown, or wrong because the clock of the camera is ahead.
        age_s = record.age_s
        latency_s = time.monotonic() - received_s if age_s is None or age_s < 0 else age_s
        self.statistics.count_answer(status, reason, latency_s=latency_s, work_s=record.caption.timing.total_s)

    def _publish(self, record: CaptionRecord, message: Caption, own_objects: Sequence[DetectedObject] | None) -> None:
        """Publish a record, its text if there is one, and what has subscribers of detections, annotations and overlay.

        With `text_on_change`, the text is published only if its meaning differs from that of the last text.
        """
        header = message.header
        self._publishers[""].publish(message)
        if record.caption.text:
            nouns = record.grounding.nouns if record.grounding is not None else ()
            is_new = self._texts.is_new(record.caption.text, [noun.lemma for noun in nouns])
            if is_new or not self._parameters.values["text_on_change"]:
                self._publishers["text"].publish(String(data=record.caption.text))
        if own_objects is not None and self._is_watched("detections"):
            self._publishers["detections"].publish(to_vision(own_objects, header, vision_msgs))
        if self._is_watched("annotations"):
            self._publishers["annotations"].publish(to_annotations(record, header, foxglove_msgs))
        if self._overlay is not None and record.image is not None:
            self._overlay.publish(header, record)

    def _is_watched(self, name: str) -> bool:
        return name in self._publishers and self._publishers[name].get_subscription_count() > 0

    def _create(self, kind: type, topic: str, depth: int = 10) -> LifecyclePublisher:
        return self._node.create_lifecycle_publisher(
            kind,
            topic,
            # Reliable, which RViz requests by default and best-effort subscribers accept. Each publisher has its own
            # profile, because rclpy writes the overrides into it.
            QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE),
            # A separate group, because an event that arrives during the destruction blocks its group for ever.
            callback_group=MutuallyExclusiveCallbackGroup(),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )


def trust_of(parameters: Parameters) -> Trust:
    """Return the rule of the node's parameters by which captions are refused."""
    return Trust(parameters.values["min_calibrated_confidence"], parameters.values["list_objects"])


def complete_record(
    record: CaptionRecord,
    header: Header,
    detections: ExpectedDetections | None,
    model: Model | None,
    trust: Trust,
) -> tuple[CaptionRecord, Caption, Evidence | None]:
    """Add objects, nouns and status to the record of a caption, and build its message; never raises.

    Args:
        record: the record of a caption; the record of an image without a caption is not changed.
        detections: the expected detections of the image, for which this waits; None if there are none.

    Returns:
        The record, its message, and the evidence for the caption, which is None if the image has no caption.
    """
    if model is None or record.status in (CaptionStatus.STALE, CaptionStatus.ERROR):
        return record, to_message(msg, record, header), None
    try:
        found, waited_s = None, 0.0
        if detections is not None:
            detections.wait()
            waited_s = time.monotonic() - record.received_monotonic_s if detections.until_s else 0.0
            found = detections.find()
        evidence = collect_evidence(record.caption, model, found)
        coverage_reason, coverage_message = evidence.coverage_reason
        completed = replace(
            record,
            caption=evidence.caption,
            grounding=evidence.grounding,
            coverage_reason=coverage_reason,
            coverage_message=coverage_message,
            detection_wait_s=waited_s,
        ).judged(trust)
        return completed, to_message(msg, completed, header), evidence
    except Exception as error:
        reason = f"the caption of this image cannot be published: {error_description(error)}"
        kept = {name: getattr(record, name) for name in ("camera", "stamp_ns", "frame_id", "age_at_start_s", "dropped")}
        total_s = record.caption.timing.total_s
        record = CaptionRecord.without_caption(CaptionStatus.ERROR, reason, total_s=total_s, **kept)
        return record, to_message(msg, record, header), None


def error_description(error: Exception) -> str:
    """Return the type and the message of an exception, shortened and on one line."""
    return f"{type(error).__name__}: {visible(str(error))}"
