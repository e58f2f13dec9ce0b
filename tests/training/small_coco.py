"""COCO's layout with a dozen drawn pictures, and features of them in two formats."""

import json

import cv2
import numpy as np
import yaml

from tests.training.region_files import WIDTH, write_npz
from tests.training.small_flickr8k import COLOURS, SHAPES, draw
from training.data.feature_store import StoreWriter

SPLITS = {"train": 8, "restval": 2, "val": 3, "test": 2}


def make_coco(root):
    """Under ``root``: ``coco/`` with photographs and ``dataset_coco.json``; a folder of features and a store."""
    random = np.random.default_rng(0)
    (root / "coco" / "val2014").mkdir(parents=True)
    images = []
    for split, count in SPLITS.items():
        for _ in range(count):
            number = 100 + len(images)
            colour, shape = random.choice(list(COLOURS)), random.choice(SHAPES)
            name = f"COCO_val2014_{number:012d}.jpg"
            picture = cv2.resize(draw(colour, shape, random), (320, 240))
            cv2.imwrite(str(root / "coco" / "val2014" / name), picture)
            texts = (f"A {colour} {shape} .", f"There is a {shape}, and it is {colour} .", f"One {shape}")
            images.append(
                {
                    "cocoid": number, "filename": name, "filepath": "val2014", "split": split,
                    "sentences": [{"raw": text} for text in texts],
                }
            )  # fmt: skip
    (root / "coco" / "dataset_coco.json").write_text(json.dumps({"images": images}))
    features = {}
    for image in images:
        count = int(random.integers(1, 7))
        features[str(image["cocoid"])] = {
            "features": random.normal(size=(count, WIDTH)).astype(np.float32),
            "boxes": random.uniform(0, 200, (count, 4)).astype(np.float32),
        }
    write_npz(root, features)
    with StoreWriter(root / "store", {"made_by": "a test"}, WIDTH, shard_images=4) as store:
        for name, arrays in features.items():
            store.add(name, arrays["features"], arrays["boxes"], 320, 240)
    return root


def features_config(kind):
    """What an experiment says of the features that :func:`make_coco` made."""
    return {kind: {"npz": "features", "store": "store"}[kind], "width": WIDTH}


def write_coco_config(path, **changes):
    """An experiment of seconds on the features or photographs that ``changes`` give."""
    xe = {"name": "xe", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4}
    scst = {
        **xe, "name": "scst", "objective": "self_critical", "schedule": "constant", "beam_size": 2,
    }  # fmt: skip
    experiment = {
        "name": "small-coco",
        "precision": "fp32",
        "model": {"d_model": 16, "heads": 2, "d_ff": 32, "memory_slots": 2},
        "data": {
            "dataset": "coco", "options": {"karpathy": "coco/dataset_coco.json"}, "minimum_count": 1, "max_words": 10,
        },
        "phases": [xe, scst],
        **changes,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(experiment))
    return path
