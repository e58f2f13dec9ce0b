"""What captions bags in tests."""

import pytest

from smart_caption_ros.bags.message_captioner import MessageCaptioner, ModelSettings


@pytest.fixture(scope="session")
def message_captioner(detecting_bundle):
    return MessageCaptioner(ModelSettings(bundle=detecting_bundle, threads=1).load_captioner())
