"""What a worker keeps in memory from shard to shard."""

from __future__ import annotations

from functools import lru_cache

from smart_caption_ros.bags.message_captioner import MessageCaptioner, ModelSettings
from smart_caption_ros.captioning import Captioner


@lru_cache(maxsize=1)
def loaded_captioner(model: ModelSettings) -> Captioner:
    """Load a captioner; raises what :meth:`Captioner.from_bundle` raises."""
    return model.load_captioner()


@lru_cache(maxsize=1)
def loaded_message_captioner(model: ModelSettings) -> MessageCaptioner:
    """Load what captions image messages; raises what :func:`loaded_captioner` raises, and CoverageError."""
    return MessageCaptioner(loaded_captioner(model), model.trust)
