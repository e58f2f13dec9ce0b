"""``python -m export.import_bundle BUNDLE -o CHECKPOINT``: a bundle as a checkpoint, to go on training from it."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from export.bundle import ExportError
from export.captioner_weights import load_bundle_captioner
from export.describe import TEACHERS
from smart_caption_ros.captioning import Bundle, BundleError
from training.command_line import run_command
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import BackboneError
from training.vision.bundle_networks import load_bundle_networks


def checkpoint_of(bundle: Bundle) -> TrainedCaptioner:
    """Read the captioner and the networks of a bundle back.

    Raises:
        BackboneError: the vision graph holds other networks than those of this project.
        ExportError: the captioner cannot be read back: :func:`export.captioner_weights.load_bundle_captioner`.
    """
    manifest = bundle.manifest
    backbone = load_bundle_networks(bundle.path)
    captioner = load_bundle_captioner(bundle)
    penalty = float(manifest["decoding"].get("repeat_penalty", 0.0))
    trained = TrainedCaptioner(
        manifest["architecture"]["family"], captioner, backbone, bundle.vocabulary, _record(bundle), penalty
    )
    trained.set_image_size(bundle.preprocessing.width)
    return trained


def _record(bundle: Bundle) -> dict[str, Any]:
    """Collect what later runs and exports need to know: the experiment, its scores and all data."""
    training = bundle.manifest["training"]
    record = {
        **training,
        "name": bundle.name,
        "experiment": {**training["experiment"], "name": bundle.name},
        "backbone_trained_on": bundle.manifest["trained_on"],
    }
    if teachers := bundle.manifest.get("detector", {}).get("boxes_by"):
        keys = {entry["name"]: key for key, entry in TEACHERS.items()}
        record["detector"] = {"boxes_by": [keys.get(entry["name"], entry["name"]) for entry in teachers]}
    return record


def import_bundle(
    bundle: Annotated[Path, typer.Argument(help="Folder of the bundle, e.g. smart_caption_ros/bundles/default.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="CHECKPOINT", help="Safetensors file to write, e.g. runs/d.safetensors."
        ),
    ],
) -> None:
    """Write the checkpoint of a bundle, for start_from of an experiment.

    Weights that the bundle stores in 16 or 8 bits keep what rounding left of them.
    """
    trained = checkpoint_of(Bundle.load(bundle))
    output.parent.mkdir(parents=True, exist_ok=True)
    trained.save(output)
    parameters = sum(parameter.numel() for parameter in trained.captioner.parameters())
    print(f"{output}: {trained.record['name']}, a captioner of the family {trained.family}, {parameters:,} parameters")


def main() -> int:
    return run_command(import_bundle, "python -m export.import_bundle", (BackboneError, BundleError, ExportError))


if __name__ == "__main__":
    sys.exit(main())
