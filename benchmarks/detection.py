"""How well and how fast detectors find the objects of photographs, side by side.

    OMP_NUM_THREADS=1 python -m benchmarks.detection DETECTOR.onnx|BUNDLE ... [--images FOLDER --annotations FILE]
        [--household ROOT | --labels FILE] [--json FILE] [--record]

AP is the COCO toolkit's (pycocotools) over all scores from 0.01. Precision and recall are at one score and IoU 0.5,
each box of the ground truth (without crowds) matched once, best score first. ``common`` has the AP50 of every class
that all the detectors know and the photographs show, and ``share``, the mean of those over the first detector's.
Without a folder the photographs are the validation part of coco_mini in the shared data; ``--household`` takes rendered
sequences in ACVR's layout, ``--labels`` photographs of a dev split with a teacher's boxes: by what it says the score of
``python -m export --detector-score`` is chosen (``by_score``), on no photograph that is kept for measuring.
"""

import argparse
import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from benchmarks.environment import describe_environment, report
from smart_caption_ros.captioning import Bundle, BundleError, Captioner, Detector, DetectorError, EngineError
from smart_caption_ros.captioning.bundle import write_manifest
from smart_caption_ros.captioning.vision_detector import VisionDetector
from smart_caption_ros.detection.boxes import box_iou
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.sources.acvr import ACVR_CLASSES, AcvrSequences
from smart_caption_ros.sources.source import SourceError
from training.configs.schema import DataConfig
from training.data.datasets import open_dataset
from training.detection.labels import read_labels
from training.errors import DataError
from training.paths import data_folder
from training.vision.detection_classes import DETECTION_CLASSES

LOWEST_SCORE = 0.01
SCORES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
ENGINE = "onnxruntime-cpu"


def main() -> int:
    arguments = _parser().parse_args()
    try:
        result = measure(arguments)
    except (BundleError, DataError, DetectorError, EngineError, SourceError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    report(result, arguments.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=__doc__.splitlines()[0])
    parser.add_argument("detectors", nargs="+", type=Path, help="ONNX files, or bundles with a detector; teacher first")
    parser.add_argument("--images", type=Path, help="folder of the photographs")
    parser.add_argument("--annotations", type=Path, help="their instances_*.json")
    parser.add_argument("--household", type=Path, metavar="ROOT", help="sequences in ACVR's layout, in place of both")
    parser.add_argument(
        "--labels", type=Path, metavar="FILE",
        help="of python -m training.label_objects; the photographs are those of the data set's dev split",
    )  # fmt: skip
    parser.add_argument("--dataset", default="flickr8k", choices=("flickr8k", "rooms"), help="that --labels are of")
    parser.add_argument("--photographs", type=int, default=300, help="of --labels, the first ones (default: 300)")
    parser.add_argument("--score", type=float, default=0.35, help="for precision and recall; what counts of --labels")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--record", action="store_true", help="write the figures into the bundles' manifests")
    return parser


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """All detectors on one set of photographs.

    Raises:
        BundleError, DetectorError, EngineError: a detector is missing, wrong or cannot be run.
        DataError, SourceError, OSError: the photographs or their annotations cannot be read.
    """
    detectors = {str(path): open_detector(path, arguments.threads) for path in arguments.detectors}
    with tempfile.TemporaryDirectory() as folder:
        coco_mini = data_folder() / "coco_mini"
        annotations = arguments.annotations or coco_mini / "instances_val2017.json"
        images, what = arguments.images or coco_mini / "images", annotations.name
        if arguments.household:
            annotations = household_annotations(arguments.household, Path(folder))
            images, what = arguments.household, arguments.household.name
        elif arguments.labels:
            annotations, images = labelled_photographs(arguments, Path(folder)), Path(folder)
            what = f"{arguments.dataset}, dev, by {arguments.labels.name}"
        measured: dict[str, Any] = {}
        precisions = {}
        for name, detector in detectors.items():
            found = detect_all(detector, annotations, images)
            precisions[name] = precision_by_class(annotations, found["objects"])
            measured[name] = {
                "layout": detector.layout,
                **average_precision(annotations, found["objects"]),
                **precision_and_recall(annotations, found["objects"], arguments.score),
                "by_score": [precision_and_recall(annotations, found["objects"], score) for score in SCORES],
                "wall_ms_median": found["wall_ms_median"],
                "cpu_ms_median": found["cpu_ms_median"],
            }
    known = set.intersection(*(set(detector.class_names) for detector in detectors.values()))
    for name, common in in_common(precisions, known).items():
        measured[name]["common"] = common
    if arguments.record:
        for path in arguments.detectors:
            if path.is_dir():
                record(Bundle.load(path), what, measured[str(path)])
    environment = describe_environment(seed=0)
    return {**environment, "annotations": what, "threads": arguments.threads, "detectors": measured}


def open_detector(path: Path, threads: int) -> Detector | VisionDetector:
    """The detector in an ONNX file, or that of a bundle.

    Raises:
        BundleError, DetectorError, EngineError: there is none, or it cannot be run.
    """
    if not path.is_dir():
        return Detector.from_onnx(path, engine=ENGINE, threads=threads, minimum_score=LOWEST_SCORE)
    found = Captioner.from_bundle(path, engine=ENGINE, threads=threads, minimum_score=LOWEST_SCORE).detector
    if found is None:
        raise DetectorError(f"{path}: this bundle has no detector")
    return found


class _Truth:
    """Boxes of photographs, for a file in COCO's format."""

    def __init__(self, categories: Mapping[int, str]) -> None:
        """``categories``: names by number."""
        self._categories = [{"id": number, "name": name} for number, name in categories.items()]
        self._images: list[dict[str, Any]] = []
        self._boxes: list[dict[str, Any]] = []

    def add_image(self, name: str, width: int, height: int) -> None:
        """``name``: of the file, absolute or below the folder of the photographs."""
        self._images.append({"id": len(self._images), "file_name": name, "width": width, "height": height})

    def add_box(self, category: int, box_xyxy: Sequence[float]) -> None:
        """In the last image, in pixels."""
        left, top, right, bottom = box_xyxy
        width, height = right - left, bottom - top
        self._boxes.append({
            "id": len(self._boxes) + 1, "image_id": self._images[-1]["id"], "category_id": category,
            "bbox": [left, top, width, height], "area": width * height, "iscrowd": 0,
        })  # fmt: skip

    def write(self, path: Path) -> Path:
        content = {"images": self._images, "categories": self._categories, "annotations": self._boxes}
        path.write_text(json.dumps(content), encoding="utf-8")
        return path


def household_annotations(root: Path, folder: Path) -> Path:
    """The ground truth of sequences in ACVR's layout as a file in COCO's format, written into ``folder``.

    Raises:
        SourceError: there is no sequence, or one is damaged.
    """
    categories = {number: name for number, name in enumerate(ACVR_CLASSES) if number}
    numbers = {name: number for number, name in categories.items()}
    truth = _Truth(categories)
    for frame in AcvrSequences(root).frames():
        truth.add_image(str(frame.image_path.resolve()), frame.width, frame.height)
        for thing in frame.objects:
            truth.add_box(numbers[thing.class_name], thing.box_xyxy)
    return truth.write(folder / "household.json")


def labelled_photographs(arguments: argparse.Namespace, folder: Path) -> Path:
    """Photographs of a dev split, and what a teacher has surely seen in them in COCO's format, written into ``folder``.

    Raises:
        DataError: the data set or its labels are missing or malformed.
    """
    dataset = open_dataset(DataConfig(dataset=arguments.dataset), data_folder())
    labels = read_labels([str(arguments.labels)], Path(), DETECTION_CLASSES)
    names = [name for name in dataset.split("dev") if name in labels.boxes][: arguments.photographs]
    if not names:
        raise DataError(f"{arguments.labels}: no photograph of the dev split has labels; label it with --splits dev")
    truth = _Truth(dict(enumerate(labels.class_names)))
    for number, name in enumerate(names):
        frame, boxes = dataset.read_images([name])[0], labels.boxes[name]
        cv2.imwrite(str(folder / f"{number}.png"), frame)
        height, width = frame.shape[:2]
        truth.add_image(f"{number}.png", width, height)
        sure = boxes.select(boxes.scores >= arguments.score)
        for box, class_id in zip(sure.xyxy, sure.class_ids.tolist(), strict=True):
            truth.add_box(class_id, (box * [width, height, width, height]).tolist())
    return truth.write(folder / "labelled.json")


def in_common(precisions: Mapping[str, Mapping[str, float]], known: Collection[str]) -> dict[str, dict[str, Any]]:
    """What can be compared of several detectors.

    Args:
        precisions: by detector the AP50 of every class that is there to be found.
        known: classes that all the detectors know.

    Returns:
        By detector ``ap50`` (the mean over the classes), ``share`` (of the first detector's) and ``classes``.
    """
    found: dict[str, dict[str, Any]] = {}
    first = None
    for name, values in precisions.items():
        classes = {each: value for each, value in values.items() if each in known}
        mean = statistics.fmean(classes.values()) if classes else 0.0
        first = mean if first is None else first
        share = round(mean / first, 4) if first else None
        found[name] = {"ap50": round(mean, 4), "share": share, "classes": classes}
    return found


def record(bundle: Bundle, what: str, figures: Mapping[str, Any]) -> None:
    """Put the figures into a bundle's manifest, where ``smart-caption bundle inspect`` shows them."""
    common = figures["common"]
    kept = {key: figures[key] for key in ("images", "ap", "ap50")}
    kept |= {"classes": len(common["classes"]), "ap50_of_classes": common["ap50"], "date": time.strftime("%Y-%m-%d")}
    scores = {**bundle.manifest.get("scores", {}), f"detection {what}": kept}
    write_manifest(bundle.path, {**bundle.manifest, "scores": scores})


def detect_all(detector: Detector | VisionDetector, annotations: Path, images: Path) -> dict[str, Any]:
    """Objects of all annotated photographs in COCO's format of results, and milliseconds a photograph.

    Raises:
        OSError: a file cannot be read.
    """
    content = json.loads(annotations.read_text(encoding="utf-8"))
    categories = {normalise(category["name"]): category["id"] for category in content["categories"]}
    objects, wall_ms, cpu_ms = [], [], []
    for image in content["images"]:
        path = images / image["file_name"]
        try:
            image_bgr = read_image(path)
        except ImageError as error:
            raise OSError(f"cannot read {path}: {error}") from error
        started, used = time.perf_counter(), time.process_time()
        detected = detector.detect(image_bgr)
        wall_ms.append((time.perf_counter() - started) * 1e3)
        cpu_ms.append((time.process_time() - used) * 1e3)
        for each in detected:
            if each.class_name in categories:
                left, top, right, bottom = each.box_xyxy
                objects.append(
                    {
                        "image_id": image["id"],
                        "category_id": categories[each.class_name],
                        "bbox": [left, top, right - left, bottom - top],
                        "score": each.score,
                    }
                )
    return {
        "objects": objects,
        "wall_ms_median": round(statistics.median(wall_ms), 2),
        "cpu_ms_median": round(statistics.median(cpu_ms), 2),
    }


def average_precision(annotations: Path, objects: list[dict[str, Any]]) -> dict[str, float]:
    """``images``, ``ap`` (IoU 0.50 to 0.95) and ``ap50`` by the COCO toolkit."""
    evaluation = _evaluation(annotations, objects)
    return {
        "images": len(evaluation.cocoGt.imgs),
        "ap": round(float(evaluation.stats[0]), 4),
        "ap50": round(float(evaluation.stats[1]), 4),
    }


def precision_by_class(annotations: Path, objects: list[dict[str, Any]]) -> dict[str, float]:
    """AP50 of every class that the annotations have a box of, by its normalised name."""
    evaluation = _evaluation(annotations, objects)
    # (IoU thresholds, recalls, classes, sizes, most detections); -1 where there is no box of the class.
    values = evaluation.eval["precision"][0, :, :, 0, -1]
    names = [normalise(evaluation.cocoGt.cats[each]["name"]) for each in evaluation.params.catIds]
    return {name: round(float(of.mean()), 4) for name, of in zip(names, values.T, strict=True) if of.min() >= 0}


def _evaluation(annotations: Path, objects: list[dict[str, Any]]) -> COCOeval:
    with contextlib.redirect_stdout(io.StringIO()):  # the toolkit is talkative
        truth = COCO(str(annotations))
        # The toolkit cannot read an empty list of results, but an empty set of annotations is the same.
        found = truth.loadRes(objects) if objects else COCO()
        evaluation = COCOeval(truth, found, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def precision_and_recall(annotations: Path, objects: list[dict[str, Any]], score: float) -> dict[str, float]:
    """``precision`` and ``recall`` of the objects from that score on, at IoU 0.5."""
    content = json.loads(annotations.read_text(encoding="utf-8"))
    truth: dict[tuple[int, int], list[list[float]]] = defaultdict(list)
    for each in content["annotations"]:
        if not each["iscrowd"]:
            truth[each["image_id"], each["category_id"]].append(each["bbox"])
    total, right, given = sum(map(len, truth.values())), 0, 0
    for each in sorted(objects, key=lambda each: -float(each["score"])):
        if each["score"] < score:
            break
        given += 1
        boxes = truth[each["image_id"], each["category_id"]]
        overlaps = box_iou(_xyxy([each["bbox"]]), _xyxy(boxes))
        if overlaps.size and overlaps.max() >= 0.5:
            boxes.pop(int(overlaps.argmax()))
            right += 1
    return {
        "score": score,
        "precision": round(right / given, 4) if given else 0.0,
        "recall": round(right / total, 4) if total else 0.0,
    }


def _xyxy(boxes_xywh: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    boxes = np.array(boxes_xywh, np.float64).reshape(-1, 4)
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


if __name__ == "__main__":
    sys.exit(main())
