"""A frame with its caption and boxes drawn on it, to be downloaded."""

from smart_caption_ros.caption_log.times import local_time
from smart_caption_ros.imaging import decode_image_bytes
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.viewing import draw_overlay, encode_picture


def drawn_jpeg(live: CaptionRecord, picture: bytes) -> bytes:
    """Draw a caption on its frame.

    Args:
        picture: JPEG of its frame, of any size; the boxes are scaled to it.

    Returns:
        A JPEG file's bytes.

    Raises:
        ImageError: the picture cannot be decoded.
    """
    image_bgr = decode_image_bytes(picture)
    caption = live.caption.resized(image_bgr.shape[1], image_bgr.shape[0])
    header = f"{live.camera}  {local_time(round(live.received_s * 1e9))}"
    return encode_picture(draw_overlay(image_bgr, caption, header, live.grounding), ".jpg")
