"""Flickr8k's layout with a dozen drawn pictures: enough to run the real training command."""

import csv
import zipfile

import cv2
import numpy as np
import yaml

from tests.tiny_model import tiny_trained

COLOURS = {"red": (40, 40, 220), "green": (60, 200, 60), "blue": (220, 80, 40)}
SHAPES = ("ball", "box")
SIZES = {"train": 12, "dev": 4, "test": 2}


def draw(colour, shape, random):
    image = np.full((224, 224, 3), random.integers(90, 160), np.uint8)
    x, y = (int(v) for v in random.integers(70, 150, 2))
    if shape == "ball":
        cv2.circle(image, (x, y), 50, COLOURS[colour], -1)
    else:
        cv2.rectangle(image, (x - 45, y - 45), (x + 45, y + 45), COLOURS[colour], -1)
    return image


def save_convolutions(path, convolutions):
    """Write the weights of convolutions in their order as ONNX, which is what the reader of released files uses."""
    import onnx
    from onnx import helper, numpy_helper

    nodes, weights = [], []
    for index, convolution in enumerate(convolutions):
        assert convolution.bias is not None
        names = [f"{kind}{index}" for kind in ("weight", "bias")]
        for name, values in zip(names, (convolution.weight, convolution.bias), strict=True):
            weights.append(numpy_helper.from_array(values.detach().numpy(), name))
        nodes.append(helper.make_node("Conv", [f"x{index}", *names], [f"x{index + 1}"]))
    onnx.save(helper.make_model(helper.make_graph(nodes, "convolutions", [], [], weights)), str(path))


def save_backbone(path):
    """Write a MobileNetV2 with random weights."""
    backbone = tiny_trained().backbone
    save_convolutions(path, backbone.convolutions())


def make_data(root):
    """Write ``flickr8k/`` and ``backbones/mobilenetv2_float32.onnx`` (random weights) below ``root`` and return it."""
    random = np.random.default_rng(0)
    (root / "flickr8k").mkdir(parents=True)
    (root / "backbones").mkdir()
    save_backbone(root / "backbones" / "mobilenetv2_float32.onnx")
    with (
        zipfile.ZipFile(root / "flickr8k" / "images_224.zip", "w") as archive,
        (root / "flickr8k" / "captions.csv").open("w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream)
        writer.writerow(["image", "caption"])
        for split, count in SIZES.items():
            names = [f"{split}_{index}.jpg" for index in range(count)]
            (root / "flickr8k" / f"{split}.txt").write_text("\n".join(names) + "\n")
            for name in names:
                colour, shape = random.choice(list(COLOURS)), random.choice(SHAPES)
                archive.writestr(name, cv2.imencode(".jpg", draw(colour, shape, random))[1].tobytes())
                for text in (f"A {colour} {shape} .", f"There is a {shape}, and it is {colour} .", f"One {shape}"):
                    writer.writerow([name, text])
    return root


def write_config(path, **changes):
    """Write an experiment of three phases that takes less than a minute."""
    experiment = {
        "name": "small",
        "backbone": "mobilenetv2_float32.onnx",
        "image_size": 96,
        "precision": "fp32",
        "checkpoint_minutes": 0,
        "log_every": 1,
        "model": {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.1},
        "data": {"minimum_count": 1, "max_words": 12},
        "phases": [
            {"name": "frozen", "epochs": 2, "learning_rate": 1e-3, "warmup_steps": 2, "images_per_batch": 4},
            {
                "name": "end_to_end", "epochs": 1, "learning_rate": 1e-4, "backbone_learning_rate": 1e-5,
                "images_per_batch": 4, "crop": 0.8, "average": 0.5,
            },
            {
                "name": "self_critical", "objective": "self_critical", "epochs": 2, "learning_rate": 1e-3,
                "schedule": "constant", "images_per_batch": 4, "beam_size": 3, "average": 0.5, "crop": 0.8,
            },
        ],
        **changes,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(experiment))
    return path
