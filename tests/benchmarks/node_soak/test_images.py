"""The messages of a soak are as good and as bad as they claim."""

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CompressedImage, Image

from benchmarks.node_soak.images import Answer, compressed_templates, frame_id, raw_templates
from smart_caption_ros.imaging.image_messages import ImageMessageError, decode_compressed, decode_image
from smart_caption_ros.measuring.agreement import golden_frames

pytestmark = pytest.mark.needs_ros

PICTURES = golden_frames(2, 64, 48)
RAW, COMPRESSED = raw_templates(PICTURES, seed=1), compressed_templates(PICTURES, seed=1)


TEMPLATES = [
    pytest.param(template, kind, decode, id=f"{kind.__name__}: {template.kind}")
    for templates, kind, decode in ((RAW, Image, decode_image), (COMPRESSED, CompressedImage, decode_compressed))
    for template in (*templates.good, *templates.bad)
]


@pytest.mark.parametrize(("template", "kind", "decode"), TEMPLATES)
def test_a_message_gets_the_answer_that_it_claims(template, kind, decode):
    message, stamp = template.stamped(12, now_ns=5 * 10**9 + 7)
    if template.answer is Answer.NONE:
        with pytest.raises(Exception):  # noqa: B017, PT011  # rclpy's
            deserialize_message(message, kind)
        return
    image = deserialize_message(message, kind)
    assert image.header.frame_id == frame_id(12)
    assert (image.header.stamp.sec, image.header.stamp.nanosec) == stamp
    if template.answer is Answer.ERROR:
        with pytest.raises(ImageMessageError):
            decode(image)
    else:
        assert decode(image).shape == (48, 64, 3)


def test_a_negative_stamp_is_negative():
    (template,) = [bad for bad in RAW.bad if bad.kind == "negative stamp"]
    assert template.stamped(0, now_ns=5 * 10**9)[1] == (-5, 0)
