"""What captions bags in tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_caption_ros.bags.message_captioner import MessageCaptioner, ModelSettings


@pytest.fixture(scope="session")
def message_captioner(detecting_bundle: Path) -> MessageCaptioner:
    """Captions with the tiny bundle that detects objects."""
    return MessageCaptioner(ModelSettings(bundle=detecting_bundle, threads=1).load_captioner())
