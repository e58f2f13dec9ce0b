"""Image in, caption out. Knows neither ROS nor torch."""

from smart_caption_ros.captioning.bundle import Bundle, default_bundle_path
from smart_caption_ros.captioning.captioner import Alternative, Caption, Captioner, Timing, Word
from smart_caption_ros.captioning.detector import Detector
from smart_caption_ros.captioning.errors import BundleError, DetectorError, EngineError
from smart_caption_ros.captioning.vision import DetectedObject

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
