"""The overlay: a frame with boxes drawn on it and its caption in a strip below."""

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning import Caption
from smart_caption_ros.grounding.named_objects import Grounding
from smart_caption_ros.imaging import check_image
from smart_caption_ros.viewing.box_drawing import draw_boxes
from smart_caption_ros.viewing.colours import BACKGROUND, clip
from smart_caption_ros.viewing.strip import draw_strip, facts_of
from smart_caption_ros.viewing.styled_words import class_colours, styled_words

MIN_STRIP_WIDTH_PX = 200


def draw_overlay(
    image_bgr: NDArray[np.uint8],
    caption: Caption,
    header: str | None = None,
    grounding: Grounding | None = None,
) -> NDArray[np.uint8]:
    """Draw a caption and its evidence on a copy of the frame.

    The strip under the frame shows the caption. A word of low probability is greyer; the line at the top of the strip
    shows the confidence of the whole sentence.

    With objects and `grounding`, each class that the caption names has a colour, as in Fig. 2 of the SMArT paper: its
    objects are framed and the noun is underlined in it. The other objects are framed in grey.

    Without them, the bar under each word shows its probability, and each of the first content words has a colour in
    which the region that it attended to most is framed. Objects are then framed in white.

    Args:
        image_bgr: uint8 (H, W, 3) BGR; not modified.
        header: a line above the caption, such as the name of the camera or of the file.

    Returns:
        uint8 (H + strip, max(W, 200), 3) BGR. The frame is at the top left, so boxes keep their coordinates.

    Raises:
        ValueError: the frame is not a uint8 (H, W, 3) array with at least one pixel.
    """
    check_image(image_bgr)
    height, width = image_bgr.shape[:2]
    colours = None
    if grounding is not None and caption.objects:
        colours = class_colours(caption.objects, grounding.nouns)
    words = styled_words(caption, grounding.nouns if grounding is not None else (), colours)
    # Readable on a thumbnail, in proportion on a large frame.
    text_size = round(clip(0.031 * min(width, 2 * height), 15, 110))
    facts = facts_of(caption, grounding)
    strip = draw_strip(words, caption.confidence, facts, header, width=max(width, MIN_STRIP_WIDTH_PX), size=text_size)
    canvas = np.empty((height + strip.shape[0], strip.shape[1], 3), np.uint8)
    canvas[:height, :width] = image_bgr
    canvas[:height, width:] = BACKGROUND[::-1]
    canvas[height:] = strip
    draw_boxes(canvas[:height, :width], words, caption.objects, colours, text_size)
    return canvas
