"""The topics on which the caption node publishes."""

import pytest

from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from smart_caption_ros.nodes.caption.publisher import Publisher
from smart_caption_ros.nodes.parameters import Parameters


@pytest.mark.parametrize(
    ("remappings", "caption"),
    [
        ([], "/robot/caption"),
        (["robot/caption:=/words"], "/words"),
        (["robot/caption:=/a", "/a:=/b"], "/a"),
        (["__ns:=/left"], "/left/robot/caption"),
    ],
)
def test_one_remapping_moves_all_topics_once(node_with, remappings, caption):
    node = node_with(*(part for remapping in remappings for part in ("-r", remapping)))
    publisher = Publisher(node, "", Parameters(node, CAPTION_NODE_PARAMETERS))
    publisher.create_topics()
    assert publisher.topic == caption
    published = {name for name, _ in node.get_publisher_names_and_types_by_node(node.get_name(), node.get_namespace())}
    assert {caption, f"{caption}/text", f"{caption}/image", f"{caption}/image/compressed"} <= published
    assert "/b" not in published
    publisher.destroy_topics()
    publisher.close(10)
