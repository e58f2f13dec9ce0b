"""Make a feature store of a folder of photographs: ``python -m training.features --bundle BUNDLE FOLDER -o STORE``.

Start the same command again to go on after a kill, or to add photographs that have come since.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from smart_caption_ros.captioning import Bundle, BundleError, EngineError
from smart_caption_ros.captioning.bundle import VISION_GRAPH
from smart_caption_ros.captioning.vision import Vision
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.engines import create_engine
from smart_caption_ros.files import sha256_of
from training.arguments import positive
from training.commands import exit_status
from training.data.feature_store import SHARD_IMAGES, StoreWriter
from training.data.photographs import read_photograph
from training.data.region_features import MAX_REGIONS
from training.data.region_tokens import pool_regions
from training.errors import DataError

VISION_GRAPH_TOKENS = "vision graph"
"""What the source of a store says under ``made_by`` where its features are a bundle's tokens as they are."""
REGION_TOKENS = "the regions of a detector"
"""The same where they are those tokens, pooled inside a detector's boxes."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
IDS = ("name", "stem", "number")
EXAMPLES = """image ids:
  name    file name, as Flickr8k has them: 1000268201_693b08cb0e.jpg
  stem    the same without suffix
  number  the number that the name ends in, as COCO has them: COCO_val2014_000000391895.jpg is 391895
"""


def main() -> int:
    arguments = _parser().parse_args()
    said = (BundleError, DataError, DetectorError, EngineError)
    return exit_status(lambda: run(arguments), said, arguments.output, "stopped; the same command goes on")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.features", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path, help="of photographs, folders in it included")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="STORE", help="folder of the store")
    parser.add_argument("--bundle", type=Path, help="whose vision graph sees them (default: the one that ships)")
    parser.add_argument("--detector", type=Path, metavar="ONNX", help="pool the tokens inside the boxes it finds")
    parser.add_argument("--minimum-score", type=float, default=0.2, help="of what the detector finds (default: 0.2)")
    parser.add_argument("--ids", choices=IDS, default="name", help="image ids from file names (default: name)")
    parser.add_argument("--engine", default="auto", help="default: the fastest that works here")
    parser.add_argument("--threads", type=positive, help="CPU threads of the engine (default: its own choice)")
    parser.add_argument(
        "--save-every", type=positive, default=SHARD_IMAGES, metavar="N",
        help=f"write after so many photographs, which a kill may lose (default: {SHARD_IMAGES})",
    )  # fmt: skip
    parser.add_argument("--batch-size", type=positive, default=16, help="photographs at once (default: 16)")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Fill the store; photographs that cannot be read are left out and named.

    Returns:
        0, or 1 where a photograph was left out.

    Raises:
        DataError: no photographs, two of one id, or the store is of another source.
        BundleError, EngineError: the bundle is wrong or cannot be run.
    """
    photographs = find_photographs(arguments.folder, arguments.ids)
    bundle = Bundle.load(arguments.bundle)
    vision = Vision(bundle, create_engine(arguments.engine, arguments.threads))
    source: dict[str, Any] = {
        "made_by": VISION_GRAPH_TOKENS,
        "bundle": bundle.name,
        "vision_sha256": bundle.manifest["files"][VISION_GRAPH]["sha256"],
    }
    detector = None
    if arguments.detector:
        if not 0 <= arguments.minimum_score <= 1:
            raise DataError(f"--minimum-score must lie between 0 and 1, not {arguments.minimum_score}")
        detector = Detector.from_onnx(arguments.detector, arguments.engine, arguments.threads, arguments.minimum_score)
        source |= {
            "made_by": REGION_TOKENS,
            "detector": arguments.detector.name,
            "detector_sha256": sha256_of(arguments.detector),
            "minimum_score": arguments.minimum_score,
        }
    broken: dict[Path, str] = {}
    writing = StoreWriter(arguments.output, source, bundle.token_width, arguments.save_every)
    with writing as writer, ThreadPoolExecutor() as readers:
        todo = [image for image in photographs if image not in writer]
        done = len(photographs) - len(todo)
        with tqdm(total=len(photographs), initial=done, desc="features", unit="image") as progress:
            for batch in _batches(todo, arguments.batch_size):
                read = readers.map(lambda image: _try_to_read(photographs[image], image), batch)
                frames = dict(zip(batch, read, strict=True))
                broken.update({photographs[i]: why for i, why in frames.items() if isinstance(why, str)})
                seen = {image: frame for image, frame in frames.items() if isinstance(frame, np.ndarray)}
                if seen:
                    tokens = vision.tokens(np.concatenate([vision.preprocess(frame) for frame in seen.values()]))
                    for (image, frame), rows in zip(seen.items(), tokens, strict=True):
                        height, width = frame.shape[:2]
                        boxes = vision.boxes(width, height)
                        if detector is not None:
                            # One token is of the whole photograph; what is found comes surest first.
                            found = [found.box_xyxy for found in detector.detect(frame)[: MAX_REGIONS - 1]]
                            rows, boxes = pool_regions(rows, bundle.grid, found, width, height)
                        writer.add(image, rows, boxes, width, height)
                progress.update(len(batch))
    for why in broken.values():
        print(f"left out: {why}", file=sys.stderr)
    there = len(photographs) - len(broken)
    print(f"{there} photographs of {arguments.folder} are in {arguments.output}, {len(broken)} could not be read")
    return 1 if broken else 0


def find_photographs(folder: Path, ids: str) -> dict[str, Path]:
    """The photographs in and below a folder by image id, in order of their paths.

    Args:
        ids: one of :data:`IDS`.

    Raises:
        DataError: no photographs, a name without the number that is its id, or two photographs of one id.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    photographs: dict[str, Path] = {}
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES):
        image = _image_id(path, ids)
        if image in photographs:
            raise DataError(f"{path}: image id {image} is that of {photographs[image]} as well; --ids chooses others")
        photographs[image] = path
    if not photographs:
        raise DataError(f"{folder}: no photographs in it ({', '.join(SUFFIXES)})")
    return photographs


def _image_id(path: Path, ids: str) -> str:
    if ids == "name":
        return path.name
    if ids == "stem":
        return path.stem
    if (number := re.search(r"\d+$", path.stem)) is None:
        raise DataError(f"{path}: its name does not end in a number; --ids chooses other image ids")
    return str(int(number[0]))


def _try_to_read(path: Path, image: str) -> np.ndarray | str:
    """The photograph, or why there is none."""
    try:
        return read_photograph(path, image)
    except DataError as error:
        return str(error)


def _batches(images: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(images), size):
        yield list(images[start : start + size])


if __name__ == "__main__":
    sys.exit(main())
