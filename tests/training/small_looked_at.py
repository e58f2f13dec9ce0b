"""looked_at's layout with drawn pictures, half of them in another data set's archive."""

import json
import zipfile

import cv2

from tests.frames import blobs

ENTRIES = [
    (
        "looked_at",
        "a.jpg",
        "train",
        "door_detect",
        ["a white door", "a door in a hallway"],
        ["door", "wall", "door knob"],
    ),
    ("looked_at", "grey.jpg", "train", "scene15_gray", ["a kitchen"], ["sink", "wall"]),
    ("nyu_rooms", "b.jpg", "train", "nyu_rooms", ["a desk with a laptop"], ["desk", "laptop", "chair"]),
    ("looked_at", "c.jpg", "dev", "spot_homes", ["a couch and a lamp", "a couch"], ["couch", "lamp", "wall"]),
    ("looked_at", "d.jpg", "dev", "messy_rooms", ["a messy bed", "a bed"], ["bed", "clothes"]),
]
"""Data set, image, part, source, captions and things of each photograph."""


def make_looked_at(data):
    """Write ``looked_at/`` and ``nyu_rooms/`` below a data folder and return the folder."""
    (data / "looked_at").mkdir(parents=True, exist_ok=True)
    (data / "nyu_rooms").mkdir(exist_ok=True)
    lines = [
        {"data_set": data_set, "image": image, "part": part, "source": source, "captions": captions, "things": things}
        | ({"grey": True} if image == "grey.jpg" else {})
        for data_set, image, part, source, captions, things in ENTRIES
    ]
    (data / "looked_at" / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for number, (data_set, image, *_) in enumerate(ENTRIES):
        with zipfile.ZipFile(data / data_set / "images.zip", "a") as archive:
            archive.writestr(image, cv2.imencode(".jpg", blobs(number, 60, 80))[1].tobytes())
    return data
