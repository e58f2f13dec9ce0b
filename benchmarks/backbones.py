"""Tokens of published backbones beside those of transformers, and what a vision graph costs.

    python -m benchmarks.backbones [--only NAME ...] [--photographs FOLDER]

No released weights are needed: towers of the published sizes with random weights are saved as transformers saves them.
The tokens of 20 photographs are compared with those of transformers' image processor and network; then the graph is
exported by ``python -m export --vision-only`` and timed on one thread, in float32 and in int8. A tower takes 2 GB of
memory and about a minute.
"""

import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from benchmarks.timing import measure
from export.bundle import ExportError
from export.calibration import Photographs
from export.eyes import export_eyes
from export.options import ExportOptions
from smart_caption_ros.captioning import default_bundle_path
from smart_caption_ros.captioning.vision import Vision
from smart_caption_ros.engines import create_engine
from training.command_line import run_command
from training.errors import BackboneError
from training.vision.released_weights import open_backbone
from training.vision.torchvision_operators import declare_torchvision_operators

_CROPPED = {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}}
MODELS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "clip-vit-b32": ("CLIPVision", {}, "CLIPImageProcessor", _CROPPED),
    "siglip-b16": ("SiglipVision", {}, "SiglipImageProcessor", {"size": {"height": 224, "width": 224}}),
    "dinov2-s14": (
        "Dinov2", {"hidden_size": 384, "num_attention_heads": 6, "image_size": 518, "patch_size": 14},
        "BitImageProcessor", {**_CROPPED, "size": {"shortest_edge": 256}},
    ),
}  # fmt: skip
"""Config and model of transformers, options of the config, image processor and its options."""


def backbones(
    only: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(MODELS)}; may be repeated.")] = None,
    photographs: Annotated[Path | None, typer.Option(help="Folder of photographs (default: frames that ship).")] = None,
) -> None:
    """Compare the tokens of published backbones with transformers', and time their vision graphs."""
    declare_torchvision_operators()
    import transformers

    folder = photographs or default_bundle_path().parents[1] / "sequences"
    frames = Photographs.find(folder, {}).read(20)
    for name in only or MODELS:
        kind, options, processor_name, settings = MODELS[name]
        with tempfile.TemporaryDirectory() as temporary:
            saved = Path(temporary, name)
            torch.manual_seed(0)
            model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**options)).eval()
            model.save_pretrained(saved)
            processor = getattr(transformers, processor_name)(**settings)
            processor.save_pretrained(saved)
            difference = _compare(saved, model, processor, frames)
            print(f"{name}: tokens of {len(frames)} photographs {difference:.2%} from transformers'", flush=True)
            for precision in ("float32", "int8"):
                print(f"{name}, {precision}: {_cost(saved, precision, folder)}", flush=True)


def _compare(folder: Path, model: Any, processor: Any, photographs: list[np.ndarray]) -> float:
    """Root mean square of the difference of the tokens, a share of that of the tokens."""
    backbone = open_backbone(f"hf/{folder}", folder)
    squares = reference = 0.0
    for photograph in photographs:
        frame = torch.from_numpy(backbone.spec.preprocessing.apply(photograph))[None]
        pixels = processor(images=[np.ascontiguousarray(photograph[..., ::-1])], return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            ours, theirs = backbone.tokens(frame), model(pixels).last_hidden_state
        squares += float((ours - theirs).square().sum())
        reference += float(theirs.square().sum())
    return float((squares / reference) ** 0.5)


def _cost(folder: Path, precision: Any, photographs: Path) -> str:
    bundle = folder / precision
    options = ExportOptions(folder, bundle, precision=precision, check_images=20, calibration=photographs)
    written = export_eyes(options, f"hf/{folder}")
    vision = Vision(written.eyes, create_engine("onnxruntime-cpu", 1))
    frame = vision.preprocess(np.zeros((480, 640, 3), np.uint8))
    times = measure({precision: vision.tokens}, [frame], 5)[precision]
    size = sum(file["bytes"] for file in written.eyes.manifest["files"].values())
    return f"{times['cpu_ms_median']:.0f} ms, {size / 1e6:.0f} MB, tokens {written.error:.2%} from torch's"


def main() -> int:
    return run_command(backbones, "python -m benchmarks.backbones", (BackboneError, ExportError))


if __name__ == "__main__":
    sys.exit(main())
