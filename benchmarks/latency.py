"""Image to caption on the CPU: the bundle beside torch with the same weights.

    python -m benchmarks.latency [--bundle FOLDER] [--checkpoint FILE] [--json FILE]

Frames are captioned one at a time. The variants take turns on every frame, so that a busy moment affects all alike.
Without a checkpoint only the bundle is measured.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import typer

from benchmarks.environment import describe_environment, parsed_size, report
from benchmarks.timing import measure
from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.grounding import guide_words
from smart_caption_ros.imaging import resize_image
from training.command_line import JsonOption, run_command
from training.errors import CheckpointError

Variant = Callable[[np.ndarray], object]


def latency(
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="best.safetensors that the bundle was exported from, to measure torch as well.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    size: Annotated[str, typer.Option(metavar="WIDTHxHEIGHT", help="Size of the frames in pixels.")] = "640x480",
    rounds: Annotated[int, typer.Option(min=1, help="Number of times that each frame is captioned.")] = 10,
    json_file: JsonOption = None,
) -> None:
    """Measure image to caption on the CPU: a bundle beside torch with the same weights."""
    width, height = parsed_size(size)
    captioner = Captioner.from_bundle(bundle, engine="onnxruntime-cpu", threads=threads)
    variants: dict[str, Variant] = {"bundle_onnxruntime": captioner.caption}
    guided = guide_words(Captioner.from_bundle(bundle, engine="onnxruntime-cpu", threads=threads))
    if guided.guide is not None:
        variants["bundle_guided_by_objects"] = guided.caption
    if checkpoint:
        variants["torch_eager"] = torch_variant(checkpoint, captioner, threads)
    frames = sample_frames(width, height)
    result = {
        **describe_environment(seed=0),
        "model": captioner.model,
        "frames": f"{len(frames)} photographs of scikit-image at {width}x{height}",
        "threads": threads,
        "beam_size": captioner.bundle.search.beam_size,
        "variants": measure(variants, frames, rounds),
    }
    report(result, json_file)


def main() -> int:
    return run_command(latency, "python -m benchmarks.latency", (BundleError, CheckpointError, EngineError))


def sample_frames(width: int, height: int) -> list[np.ndarray]:
    """Read the demo's photographs, (height, width, 3) uint8 BGR."""
    from smart_caption_ros.sources import open_source

    return [cv2.resize(frame.image_bgr, (width, height)) for frame in open_source("sample:photographs")]


def torch_variant(checkpoint: Path, captioner: Captioner, threads: int) -> Variant:
    """Caption with the same model in torch, on frames of the bundle's size.

    It has cached keys and values, and the same beam search with early exit.

    Raises:
        CheckpointError: the file is missing or malformed, or its captioner has no backbone.
    """
    import torch

    from training.engine.trained_captioner import TrainedCaptioner

    torch.set_num_threads(threads)
    trained = TrainedCaptioner.load(checkpoint)
    if trained.backbone is None:
        raise CheckpointError(f"{checkpoint} was trained on stored features; give one that has a backbone")
    side = captioner.bundle.manifest["preprocessing"]["width"]
    trained.set_image_size(side)

    def caption(image_bgr: np.ndarray) -> object:
        squashed = resize_image(image_bgr, (side, side))
        found = trained.caption_images(
            squashed[None], captioner.bundle.search.beam_size, captioner.bundle.search.max_words
        )
        return trained.sentences(found.words)

    return caption


if __name__ == "__main__":
    sys.exit(main())
