"""What captions bags in tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_caption_ros.bags.journal import Entry
from smart_caption_ros.bags.message_captioner import MessageCaptioner, ModelSettings
from smart_caption_ros.sources.bag_storage import StoredMessage


@pytest.fixture(scope="session")
def message_captioner(detecting_bundle: Path) -> MessageCaptioner:
    """Captions with the tiny bundle that detects objects."""
    settings = ModelSettings(bundle=detecting_bundle, threads=1)
    return MessageCaptioner(settings.load_captioner(), settings)


class InterruptedCaptioner(MessageCaptioner):
    """Captions a few images, and then the process ends."""

    def __init__(self, captioner: MessageCaptioner, images: int) -> None:
        vars(self).update(vars(captioner))
        self._left = images

    def caption(self, stored: StoredMessage, camera: str) -> Entry:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        return super().caption(stored, camera)
