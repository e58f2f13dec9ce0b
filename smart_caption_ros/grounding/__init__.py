"""Noun coverage (SMArT, Sec. IV-B, Eq. 10): which objects in the image a caption names.

Needs neither ROS nor torch. :meth:`NounCoverage.load` imports spaCy and SciPy; importing this package does not.
"""

from smart_caption_ros.errors import CoverageError
from smart_caption_ros.grounding.assignment import CoverageOptions, CoverageResult
from smart_caption_ros.grounding.class_words import ClassWords
from smart_caption_ros.grounding.noun_coverage import NounCoverage
from smart_caption_ros.grounding.nouns import Noun
from smart_caption_ros.grounding.objects_guide import ObjectsGuide, guide_words
from smart_caption_ros.grounding.word_vectors import WordVectors

__all__ = [
    "ClassWords",
    "CoverageError",
    "CoverageOptions",
    "CoverageResult",
    "Noun",
    "NounCoverage",
    "ObjectsGuide",
    "WordVectors",
    "guide_words",
]
