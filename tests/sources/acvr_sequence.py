"""Sequences in ACVR's layout with drawn shapes: rectangles and ellipses on a wall and a floor, the same every time."""

import json
from dataclasses import dataclass

import cv2
import numpy as np

COLOURS_BGR = ((60, 60, 200), (60, 170, 60), (200, 120, 40), (40, 180, 220), (180, 60, 160), (120, 120, 30))


@dataclass(frozen=True)
class Drawn:
    """An object to draw: a filled rectangle, or the ellipse in it."""

    class_name: str
    instance: int
    mask_id: int
    box: tuple[int, int, int, int]
    """Left, top, right, bottom; inclusive, as in labels.json."""
    round: bool = False

    def draw(self, picture, colour):
        left, top, right, bottom = self.box
        if self.round:
            centre, axes = ((left + right) // 2, (top + bottom) // 2), ((right - left) // 2, (bottom - top) // 2)
            cv2.ellipse(picture, centre, axes, 0, 0, 360, colour, -1)
        else:
            cv2.rectangle(picture, (left, top), (right, bottom), colour, -1)


def write_sequence(
    folder, frames, size=(100, 100), *, mask_bits=8, with_boxes=True, with_masks=True, image_name="rgb_{:06d}.png"
):
    """Draw frames and write them with their masks and labels.

    Args:
        folder: made for the sequence.
        frames: by number, what is in them; later objects hide earlier ones. A frame without objects has no mask.
        size: width and height.
        mask_bits: 8 or 16.
        with_boxes: whether labels have bounding boxes.
        with_masks: whether mask files are written; labels name them all the same.
        image_name: how RGB frames are called.

    Returns:
        What labels.json holds.
    """
    folder.mkdir(parents=True)
    width, height = size
    labels = {}
    for number, objects in frames.items():
        picture = np.full((height, width, 3), (205, 215, 220), np.uint8)
        picture[2 * height // 3 :] = (120, 140, 150)
        mask = np.zeros((height, width), {8: np.uint8, 16: np.uint16}[mask_bits])
        record = {"_metadata": {"mask_name": f"{number}.png", "mask_channel": 0}} if objects else {}
        for drawn in objects:
            drawn.draw(picture, COLOURS_BGR[drawn.instance % len(COLOURS_BGR)])
            drawn.draw(mask, drawn.mask_id)
            box = {"bounding_box": list(drawn.box)} if with_boxes else {}
            record[f"{drawn.instance:06d}"] = {"class": drawn.class_name, "mask_id": drawn.mask_id, **box}
        for drawn in objects:
            record[f"{drawn.instance:06d}"]["num_pixels"] = int((mask == drawn.mask_id).sum())
        labels[f"{number:06d}"] = record
        cv2.imwrite(str(folder / image_name.format(number)), picture)
        if objects and with_masks:
            cv2.imwrite(str(folder / f"{number}.png"), mask)
    (folder / "labels.json").write_text(json.dumps(labels))
    return labels


def write_rooms(root):
    """Two sequences of eight frames: a camera that moves past a table, and one past a couch."""
    for sequence, bits, things in (
        ("000000", 8, (("dining table", 40, 110, 260, 210), ("cup", 90, 80, 120, 112), ("chair", 270, 100, 310, 220))),
        ("000001", 16, (("sofa", 20, 110, 200, 220), ("tv", 220, 30, 310, 90), ("person", 120, 40, 170, 200))),
    ):
        frames = {
            3 * step: [
                Drawn(name, number, 250 + 10 * number if bits == 16 else number, box, round=name in ("cup", "person"))
                for number, (name, left, top, right, bottom) in enumerate(things, 1)
                if (box := (max(left - 12 * step, 0), top, right - 12 * step, bottom))[2] > box[0]
            ]
            for step in range(8)
        }
        write_sequence(root / sequence, frames, (320, 240), mask_bits=bits)
