"""How much of what is in front of the camera a caption names (SMArT, Sec. IV-B, Eq. 10).

Knows neither ROS nor torch. spaCy and scipy are imported by :meth:`NounCoverage.load`, not by importing this package.
"""

from smart_caption_ros.coverage.class_words import ClassWords
from smart_caption_ros.coverage.errors import CoverageError
from smart_caption_ros.coverage.matching import CoverageOptions, CoverageResult, Match
from smart_caption_ros.coverage.noun_coverage import NounCoverage
from smart_caption_ros.coverage.nouns import Noun
from smart_caption_ros.coverage.word_vectors import WordVectors

__all__ = [
    "ClassWords",
    "CoverageError",
    "CoverageOptions",
    "CoverageResult",
    "Match",
    "Noun",
    "NounCoverage",
    "WordVectors",
]
