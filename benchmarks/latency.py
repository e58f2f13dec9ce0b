"""Image to caption on the CPU: the bundle beside torch with the same weights.

    python -m benchmarks.latency [--bundle FOLDER] [--checkpoint FILE] [--json FILE]

Frames are captioned one at a time. The variants take turns on every frame, so that a busy moment affects all alike.
Without a checkpoint only the bundle is measured.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from benchmarks.environment import describe_environment, report
from benchmarks.timing import measure
from smart_caption_ros.captioning import BundleError, Captioner, EngineError

Variant = Callable[[np.ndarray], object]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", type=Path, help="default: the bundle that ships")
    parser.add_argument("--checkpoint", type=Path, help="best.safetensors that the bundle was exported from")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--size", default="640x480", help="of the frames")
    parser.add_argument("--rounds", type=int, default=10, help="times that each frame is captioned")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    width, height = (int(side) for side in arguments.size.split("x"))
    try:
        captioner = Captioner.from_bundle(arguments.bundle, engine="onnxruntime-cpu", threads=arguments.threads)
    except (BundleError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    variants: dict[str, Variant] = {"bundle_onnxruntime": captioner.caption}
    if arguments.checkpoint:
        variants["torch_eager"] = torch_variant(arguments.checkpoint, captioner, arguments.threads)
    frames = sample_frames(width, height)
    result = {
        **describe_environment(seed=0),
        "model": captioner.model,
        "frames": f"{len(frames)} photographs of scikit-image at {width}x{height}",
        "threads": arguments.threads,
        "beam_size": captioner.bundle.beam_size,
        "variants": measure(variants, frames, arguments.rounds),
    }
    report(result, arguments.json)
    return 0


def sample_frames(width: int, height: int) -> list[np.ndarray]:
    """Read the demo's photographs, (height, width, 3) uint8 BGR."""
    from smart_caption_ros.sources import open_source

    return [cv2.resize(frame.image_bgr, (width, height)) for frame in open_source("sample:photographs")]


def torch_variant(checkpoint: Path, captioner: Captioner, threads: int) -> Variant:
    """Caption with the same model in torch: cached keys and values, the same beam search with early exit."""
    import torch

    from training.engine.trained_captioner import TrainedCaptioner

    torch.set_num_threads(threads)
    trained = TrainedCaptioner.load(checkpoint)

    def caption(image_bgr: np.ndarray) -> object:
        squashed = cv2.resize(image_bgr, (224, 224), interpolation=cv2.INTER_AREA)
        found = trained.caption_images(squashed[None], captioner.bundle.beam_size, captioner.bundle.max_words)
        return trained.sentences(found)

    return caption


if __name__ == "__main__":
    sys.exit(main())
