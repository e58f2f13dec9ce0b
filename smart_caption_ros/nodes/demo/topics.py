"""The topics of the demo, and the ROS arguments that its two nodes are started with."""

import json

from smart_caption_ros.files import config_file
from smart_caption_ros.nodes.demo.plan import DemoPlan

CAPTION_TOPIC = "/robot/caption"
IMAGE_TOPIC = "/image"
DETECTIONS_TOPIC = "/detections"


def caption_node_arguments(plan: DemoPlan) -> list[str]:
    """Return ROS arguments with which the caption node answers every frame, however slow the machine is."""
    labelled_objects = [
        *("-p", "objects_from:=topic"),
        *("-p", "detection_slop_s:=0.0"),
        *("-p", "detection_wait_s:=5.0"),
        *("-p", f"qos_overrides.{DETECTIONS_TOPIC}.subscription.reliability:=reliable"),
    ]
    return [
        *("--params-file", str(config_file("caption.yaml"))),
        *("-p", "max_age_s:=0.0"),
        *("-p", f"qos_overrides.{IMAGE_TOPIC}.subscription.reliability:=reliable"),
        *("-p", f"qos_overrides.{IMAGE_TOPIC}.subscription.depth:=10"),
        *(labelled_objects if plan.knows_objects else ()),
    ]


def camera_node_arguments(source: str, rate_hz: float, plan: DemoPlan) -> list[str]:
    """Return ROS arguments with which the camera node publishes the plan once, after both subscribers are there."""
    return [
        *("--params-file", str(config_file("camera.yaml"))),
        *("-p", f"source:={json.dumps(source)}"),  # quoted: YAML would read 0 as a number
        *("-p", f"rate_hz:={float(rate_hz)}"),
        *("-p", "loop:=false"),
        *("-p", f"every:={plan.every}"),
        *("-p", f"publish_objects:={str(plan.knows_objects).lower()}"),
        *("-p", f"qos_overrides.{IMAGE_TOPIC}.publisher.reliability:=reliable"),
        *("-p", f"qos_overrides.{IMAGE_TOPIC}.publisher.depth:=10"),
        *("-p", f"qos_overrides.{DETECTIONS_TOPIC}.publisher.reliability:=reliable"),
        *("-p", "wait_for_subscribers:=2"),
    ]
