"""Captioning of single images with a bundle; without ROS and torch."""

from smart_caption_ros.captioning.bundle import Bundle, BundleError, default_bundle_path
from smart_caption_ros.captioning.captioner import Alternative, Caption, Captioner, Timing, Word
from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.detection.class_names import DetectorError
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.engines.base import EngineError

__all__ = [
    "Alternative",
    "Bundle",
    "BundleError",
    "Caption",
    "Captioner",
    "DetectedObject",
    "Detector",
    "DetectorError",
    "EngineError",
    "Timing",
    "Word",
    "default_bundle_path",
]
