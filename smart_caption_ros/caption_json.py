"""A caption with its evidence as JSON values: the record of `describe --json`, `watch --json` and the demo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smart_caption_ros.captioning import Caption
from smart_caption_ros.grounding.named_objects import Grounding
from smart_caption_ros.json_text import rounded

FORMAT = 2
"""Version of the record, its key `format`; it grows when a key changes its meaning or goes."""


def caption_record(caption: Caption, grounding: Grounding | None) -> dict[str, Any]:
    """Return scores with 4 decimals, boxes in pixels with 1, and times in milliseconds; null for infinity and NaN."""
    timing = caption.timing
    return {
        "text": caption.text,
        "words": [
            {
                "text": word.text,
                "log_probability": rounded(word.log_probability),
                "box_xyxy": _box(word.box_xyxy),
            }
            for word in caption.words
        ],
        "score": rounded(caption.score),
        "confidence": rounded(caption.confidence),
        "calibrated_confidence": rounded(caption.calibrated_confidence),
        "objects": [
            {
                "class_name": item.class_name,
                "class_id": item.class_id,
                "score": rounded(item.score),
                "box_xyxy": _box(item.box_xyxy),
            }
            for item in caption.objects
        ],
        "nouns": [
            {
                "noun": noun.text,
                "lemma": noun.lemma,
                "word_index": noun.word_index,
                "object_index": noun.object_index,
                "similarity": rounded(noun.similarity),
            }
            for noun in (grounding.nouns if grounding else ())
        ],
        "coverage": None if grounding is None or grounding.coverage is None else _coverage(grounding),
        "timing_ms": {
            "preprocess": rounded(1000 * timing.preprocess_s, 2),
            "vision": rounded(1000 * timing.vision_s, 2),
            "decode": rounded(1000 * timing.decode_s, 2),
            "coverage": rounded(1000 * (grounding.time_s if grounding else 0), 2),
            "total": rounded(1000 * timing.total_s, 2),
        },
        "model": caption.model,
        "engine": caption.engine,
    }


def _coverage(grounding: Grounding) -> dict[str, Any]:
    return {
        "noun_coverage": rounded(grounding.coverage),
        "noun_support": rounded(grounding.noun_support),
        "missed_classes": list(grounding.missed_classes),
        "unsupported_nouns": list(grounding.unsupported_nouns),
        "out_of_vocabulary_nouns": list(grounding.out_of_vocabulary_nouns),
    }


def _box(box_xyxy: Sequence[float]) -> list[float | None]:
    return [rounded(value, 1) for value in box_xyxy]
