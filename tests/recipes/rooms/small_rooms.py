"""A small data folder for ``python -m recipes.rooms``; the pixels of its photographs encode ADE20K's classes."""

import json
import zipfile
from pathlib import Path

import cv2
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.detection.tiny_detectors import write_yolox

CLASSES = ["wall", "building", "sky", "floor", "tree", "ceiling", "road", "bed", "windowpane", "grass", "cabinet"]
WALL, SKY, FLOOR, BED, WINDOW, GRASS = (
    CLASSES.index(n) + 1 for n in ["wall", "sky", "floor", "bed", "windowpane", "grass"]
)

QUESTIONS = {
    "file": "image1.jpg",
    "questions": [
        {"question": "what is on the table?", "answer": "lamp, book"},
        {"question": "how many chairs are there?", "answer": "2"},
        {"question": "what is the colour of the table?", "answer": "brown"},
    ],
}
SCENES = [
    {
        "file": "000001.jpg",
        "scene": "kitchen",
        "descriptions": ["There is a sink under the window.", "The walls are white."],
        "captions": [],
    },
    {"file": "000002.jpg", "scene": "beach", "descriptions": [], "captions": []},
    {"file": "000003.jpg", "scene": "bedroom", "descriptions": [], "captions": []},
    {"file": "000004.jpg", "scene": "bedroom", "descriptions": [], "captions": ["A bedroom with a bed."]},
]
POOL = [
    "A bed next to a window in a bedroom.",
    "A kitchen with a sink under the window, and the walls are white.",
    "A table with a lamp and a book, and two chairs.",
    "There is a brown table with a lamp and two chairs.",
]
WITHHELD = "A bedroom with a bed and a window."


def painted(*bands: tuple[int, float]) -> NDArray[np.uint8]:
    """Make a photograph of bands from top to bottom, each a class and its share of the height; red is the class."""
    image = np.zeros((100, 120, 3), np.uint8)
    top = 0.0
    for number, part in bands:
        image[round(100 * top) : round(100 * (top + part)), :, 2] = number
        top += part
    return image


def make_rooms(folder: Path) -> Path:
    """Write the data folder and return it."""
    _archive(folder / "nyu_rooms", {"image1.jpg": painted((WALL, 0.6), (FLOOR, 0.4))})
    _lines(folder / "nyu_rooms" / "questions.jsonl", [QUESTIONS])
    bedroom = painted((WALL, 0.3), (WINDOW, 0.2), (BED, 0.4), (FLOOR, 0.1))
    _archive(
        folder / "scenes",
        {
            "000001.jpg": painted((WALL, 0.7), (WINDOW, 0.1), (FLOOR, 0.2)),
            "000002.jpg": painted((SKY, 0.5), (GRASS, 0.5)),
            "000003.jpg": bedroom,
            "000004.jpg": bedroom,
        },
    )
    _lines(folder / "scenes" / "scenes.jsonl", SCENES)
    coco = folder / "coco_val2017_captions"
    (coco / "images").mkdir(parents=True)
    (coco / "images" / "000000000007.jpg").write_bytes(_encoded(painted((WALL, 1.0))))
    captions = [(7, "A dog on a couch.")] + [(8, text) for text in POOL for _ in range(3)] + [(9, WITHHELD)] * 3
    _coco(coco / "captions_val2017.json", captions)
    (folder / "coco_mini").mkdir()
    _coco(folder / "coco_mini" / "captions_val2017.json", [(9, WITHHELD)])
    detectors = folder / "detectors"
    detectors.mkdir()
    write_yolox(detectors / "yolox_nano.onnx")
    write_segmenter(detectors / "deeplabv3_mnv2_ade20k_uint8.onnx")
    rows = [f"{number}\t0.1\t1\t1\t{name}, other word" for number, name in enumerate(CLASSES, 1)]
    (detectors / "ade20k_classes.txt").write_text("\n".join(["Idx\tRatio\tTrain\tVal\tName", *rows]) + "\n")
    return folder


def write_segmenter(path: Path) -> None:
    """Write a segmenter whose class of a pixel is its red value; 0 is the background."""
    nodes = [
        helper.make_node("Slice", ["image", "start", "end", "axis"], ["red"]),
        helper.make_node("Squeeze", ["red", "axis"], ["classes"]),
        helper.make_node("Cast", ["classes"], ["ArgMax"], to=TensorProto.INT32),
    ]
    constants = {"start": 0, "end": 1, "axis": 3}
    graph = helper.make_graph(
        nodes,
        "segmenter",
        [helper.make_tensor_value_info("image", TensorProto.UINT8, [1, 512, 512, 3])],
        [helper.make_tensor_value_info("ArgMax", TensorProto.INT32, [1, 512, 512])],
        [numpy_helper.from_array(np.array([value], np.int64), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(path))


def _archive(folder: Path, images: dict[str, NDArray[np.uint8]]) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for name, image in images.items():
            archive.writestr(name, _encoded(image))


def _encoded(image: NDArray[np.uint8]) -> bytes:
    # PNG, because JPEG would change the classes; readers decide by the content, not by the file name.
    return cv2.imencode(".png", image)[1].tobytes()


def _lines(path: Path, entries: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def _coco(path: Path, captions: list[tuple[int, str]]) -> None:
    images = [{"id": image, "file_name": f"{image:012d}.jpg"} for image in sorted({image for image, _ in captions})]
    annotations = [{"id": n, "image_id": image, "caption": text} for n, (image, text) in enumerate(captions)]
    path.write_text(json.dumps({"images": images, "annotations": annotations}))
