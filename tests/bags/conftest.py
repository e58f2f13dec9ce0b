"""What captions bags in tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from smart_caption_ros.bags.journal import Entry
from smart_caption_ros.bags.message_captioner import MessageCaptioner, ModelSettings
from smart_caption_ros.sources.bag_storage import StoredMessage


@pytest.fixture(scope="session")
def message_captioner(detecting_bundle: Path) -> MessageCaptioner:
    """Captions with the tiny bundle that detects objects."""
    settings = ModelSettings(bundle=detecting_bundle, threads=1)
    return MessageCaptioner(settings.load_captioner(), settings)


class InterruptedCaptioner:
    """Captions a few images, and then the process ends."""

    def __init__(self, captioner: MessageCaptioner, images: int) -> None:
        self._captioner, self._left = captioner, images
        self.facts: Mapping[str, Any] = captioner.facts

    def caption(self, stored: StoredMessage, camera: str) -> Entry:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        return self._captioner.caption(stored, camera)
