"""Measure the accuracy and speed of object detectors on photographs.

    OMP_NUM_THREADS=1 python -m benchmarks.detection DETECTOR.onnx|BUNDLE ... [--images FOLDER --annotations FILE]
        [--household ROOT] [--json FILE] [--record]

AP is the COCO toolkit's (pycocotools) over all scores from 0.01. Precision and recall are at one score and IoU 0.5.
``common`` has the AP50 of each class that all detectors have, and ``share``, the ratio of the mean to that of the first
detector. By default the photographs are the validation part of coco_mini in the shared data. ``--household`` takes
rendered sequences in ACVR's layout. ``by_score`` is for choosing the score of ``python -m export --detector-score``.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.coco_annotations import household_annotations
from benchmarks.detection_scores import (
    average_precision,
    compare_common_classes,
    precision_and_recall,
    precision_by_class,
)
from benchmarks.environment import describe_environment, report
from smart_caption_ros.captioning import Bundle, BundleError, Captioner, Detector, DetectorError, EngineError
from smart_caption_ros.captioning.bundle import write_manifest
from smart_caption_ros.captioning.vision_detector import VisionDetector
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.sources.source import SourceError
from training.command_line import JsonOption, run_command
from training.data.json_files import read_json
from training.errors import DataError
from training.paths import data_folder

LOWEST_SCORE = 0.01
SCORES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
ENGINE = "onnxruntime-cpu"


def detection(
    detectors: Annotated[list[Path], typer.Argument(help="ONNX files, or bundles with a detector; teacher first.")],
    images: Annotated[Path | None, typer.Option(help="Folder of the photographs.")] = None,
    annotations: Annotated[Path | None, typer.Option(help="Their instances_*.json.")] = None,
    household: Annotated[
        Path | None, typer.Option(metavar="ROOT", help="Sequences in ACVR's layout, in place of both.")
    ] = None,
    score: Annotated[float, typer.Option(help="Score for precision and recall.")] = 0.35,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    output: JsonOption = None,
    write_record: Annotated[
        bool, typer.Option("--record", help="Write the figures into the bundles' manifests.")
    ] = False,
) -> None:
    """Measure the accuracy and speed of object detectors on photographs."""
    opened = {str(path): open_detector(path, threads) for path in detectors}
    with tempfile.TemporaryDirectory() as temporary:
        folder, coco_mini = Path(temporary), data_folder() / "coco_mini"
        if household is not None:
            truth, images, what = household_annotations(household, folder), household, household.name
        else:
            truth, images = annotations or coco_mini / "instances_val2017.json", images or coco_mini / "images"
            what = truth.name
        measured = measure(opened, truth, images, score)
    if write_record:
        for path in detectors:
            if path.is_dir():
                record(Bundle.load(path), what, measured[str(path)])
    report(
        {**describe_environment(seed=0), "annotations": what, "threads": threads, "detectors": measured},
        output,
    )


def measure(
    detectors: Mapping[str, Detector | VisionDetector], annotations: Path, images: Path, score: float
) -> dict[str, Any]:
    """Measure all detectors on one set of images.

    Args:
        detectors: by name.
        annotations: file in COCO's format.
        images: folder of the images.
        score: for precision and recall.

    Returns:
        The figures by name.

    Raises:
        EngineError: a detector cannot be run.
        DataError, OSError: the images or their annotations cannot be read.
    """
    measured: dict[str, Any] = {}
    precisions = {}
    for name, detector in detectors.items():
        found = detect_all(detector, annotations, images)
        precisions[name] = precision_by_class(annotations, found["objects"])
        measured[name] = {
            "layout": detector.layout,
            **average_precision(annotations, found["objects"]),
            **precision_and_recall(annotations, found["objects"], score),
            "by_score": [precision_and_recall(annotations, found["objects"], score) for score in SCORES],
            "wall_ms_median": found["wall_ms_median"],
            "cpu_ms_median": found["cpu_ms_median"],
        }
    known = set.intersection(*(set(detector.class_names) for detector in detectors.values()))
    for name, common in compare_common_classes(precisions, known).items():
        measured[name]["common"] = common
    return measured


def open_detector(path: Path, threads: int) -> Detector | VisionDetector:
    """Open the detector in an ONNX file or a bundle.

    Raises:
        BundleError, DetectorError, EngineError: there is no detector, or it cannot be run.
    """
    if not path.is_dir():
        return Detector.from_onnx(path, engine=ENGINE, threads=threads, minimum_score=LOWEST_SCORE)
    found = Captioner.from_bundle(path, engine=ENGINE, threads=threads, minimum_score=LOWEST_SCORE).detector
    if found is None:
        raise DetectorError(f"{path}: this bundle has no detector")
    return found


def record(bundle: Bundle, what: str, figures: Mapping[str, Any]) -> None:
    """Write the figures into a bundle's manifest, where ``smart-caption bundle inspect`` shows them."""
    common = figures["common"]
    kept = {key: figures[key] for key in ("images", "ap", "ap50")}
    kept |= {"classes": len(common["classes"]), "ap50_of_classes": common["ap50"], "date": time.strftime("%Y-%m-%d")}
    scores = {**bundle.manifest.get("scores", {}), f"detection {what}": kept}
    write_manifest(bundle.path, {**bundle.manifest, "scores": scores})


def detect_all(detector: Detector | VisionDetector, annotations: Path, images: Path) -> dict[str, Any]:
    """Detect the objects of all annotated images.

    Returns:
        ``objects`` in COCO's format of results, ``wall_ms_median`` and ``cpu_ms_median`` of an image.

    Raises:
        OSError: an image cannot be read.
    """
    content = read_json(annotations)
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
        for item in detected:
            if item.class_name in categories:
                left, top, right, bottom = item.box_xyxy
                objects.append(
                    {
                        "image_id": image["id"],
                        "category_id": categories[item.class_name],
                        "bbox": [left, top, right - left, bottom - top],
                        "score": item.score,
                    }
                )
    return {
        "objects": objects,
        "wall_ms_median": round(statistics.median(wall_ms), 2),
        "cpu_ms_median": round(statistics.median(cpu_ms), 2),
    }


def main() -> int:
    """Run the command and return its exit status."""
    errors = (BundleError, DataError, DetectorError, EngineError, SourceError)
    return run_command(detection, "python -m benchmarks.detection", errors)


if __name__ == "__main__":
    sys.exit(main())
