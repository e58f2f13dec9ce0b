"""A frame with its caption and boxes drawn on it, to be downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smart_caption_ros.caption_log.times import local_time
from smart_caption_ros.imaging import decode_image_bytes
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.viewing import draw_overlay, encode_picture


def drawn_jpeg(live: CaptionRecord, picture: bytes) -> bytes:
    """Draw a caption on its frame.

    Args:
        live: the caption.
        picture: JPEG of its frame, of any size; the boxes are scaled to it.

    Returns:
        A JPEG file's bytes.

    Raises:
        ImageError: the picture cannot be decoded.
    """
    image_bgr = decode_image_bytes(picture)
    width, height = live.caption.image_size
    scales = (image_bgr.shape[1] / max(width, 1), image_bgr.shape[0] / max(height, 1))

    def scaled(box_xyxy: Sequence[float]) -> tuple[float, float, float, float]:
        x1, y1, x2, y2 = box_xyxy
        return x1 * scales[0], y1 * scales[1], x2 * scales[0], y2 * scales[1]

    caption = replace(
        live.caption,
        objects=tuple(replace(item, box_xyxy=scaled(item.box_xyxy)) for item in live.caption.objects),
        words=tuple(replace(word, box_xyxy=scaled(word.box_xyxy)) for word in live.caption.words),
    )
    header = f"{live.camera}  {local_time(round(live.received_s * 1e9))}"
    return encode_picture(draw_overlay(image_bgr, caption, header, live.grounding), ".jpg")
