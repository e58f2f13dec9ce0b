"""coco_photographs' layout with six drawn pictures."""

import json
import zipfile

import cv2
import numpy as np

DEV = {
    "dev_0.jpg": (True, ["A dog sits on a couch.", "a brown dog indoors", "The dog is on the sofa"], ["dog"]),
    "dev_1.jpg": (False, ["A cat sits on the grass.", "a black cat outside", "The cat in a garden"], ["cat"]),
    "dev_2.jpg": (True, ["A man cooks.", "a man in a kitchen", "Someone at the stove"], ["person"]),
    "dev_3.jpg": (False, ["A man rides a horse.", "a rider on a beach", "The horse runs by the sea"], ["person"]),
}


def make_coco_photographs(folder):
    """Write ``coco_photographs/`` below a folder and return it: four dev and two train photographs."""
    root = folder / "coco_photographs"
    root.mkdir(parents=True)
    entries = [
        {"image": image, "coco_id": number, "part": "dev", "indoor": indoor, "sentences": said, "objects": objects}
        for number, (image, (indoor, said, objects)) in enumerate(DEV.items())
    ]
    train = [
        {"image": "train_0.jpg", "sentences": ["a dog runs", "the dog"]},
        {"image": "train_1.jpg", "sentences": []},
    ]
    entries[1:1] = [
        {"coco_id": 10 + number, "part": "train", "indoor": False, "objects": ["dog"], **entry}
        for number, entry in enumerate(train)
    ]
    (root / "captions.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    random = np.random.default_rng(0)
    with zipfile.ZipFile(root / "images_256.zip", "w") as archive:
        for entry in entries:
            drawn = np.full((256, 256, 3), random.integers(256, size=3), np.uint8)
            cv2.circle(drawn, (128, 128), int(random.integers(20, 100)), random.integers(256, size=3).tolist(), -1)
            archive.writestr(str(entry["image"]), cv2.imencode(".jpg", drawn)[1].tobytes())
    return root
