"""The visual inputs of an experiment: photographs through its backbone, or its stored features."""

from pathlib import Path
from typing import Any

from training.checkpoint import load_checkpoint
from training.configs.schema import ExperimentConfig
from training.data.caption_dataset import CaptionDataset
from training.data.datasets import merge_provenance, provenance_of_record
from training.data.photograph_inputs import Photographs
from training.data.stored_features import StoredFeatures, open_stored_features
from training.data.visual_batches import VisualInputs
from training.errors import ConfigError
from training.models import FAMILIES
from training.vision.backbone import CachesEarlyLayers
from training.vision.detection_classes import DETECTION_CLASSES
from training.vision.released_weights import CHECKPOINT_SUFFIX, PUBLISHED, locate, open_backbone, released_provenance
from training.vision.side_by_side import SideBySide, side_by_side
from training.vision.yolox import RELEASED, load_yolox_nano, with_classes


def open_visual_inputs(
    config: ExperimentConfig, data: Path, dataset: CaptionDataset, splits: dict[str, list[str]], cache: Path
) -> VisualInputs:
    """Open the visual inputs of an experiment.

    Args:
        config: the experiment.
        data: folder that contains its paths.
        dataset: of the photographs.
        splits: image ids of ``train`` and ``dev``.
        cache: folder for grid features, shared between runs.

    Raises:
        BackboneError: the backbone is missing or malformed.
        ConfigError: a backbone that is named with others, or with a detector, has several networks.
        DataError: photographs or features are missing, or features lack what the family needs.
    """
    if config.features:
        features, facts = open_stored_features(config.features, data)
        return StoredFeatures(features, splits, facts, FAMILIES[config.family])
    names = [config.backbone, *config.more_backbones]
    trained_on = [entry for name in names for entry in backbone_provenance(name, data / "backbones")]
    facts = {"backbone": " + ".join(names), "backbone_trained_on": trained_on}
    networks = [open_backbone(name, data / "backbones") for name in names]
    backbone, detector = networks[0], None
    if config.yolox:
        yolox = load_yolox_nano(locate(config.yolox, data / "detectors"))
        detector = with_classes(yolox, DETECTION_CLASSES)
        trained_on.append(RELEASED)
        facts["detector"] = {"trained_on": [RELEASED]}
    if len(networks) > 1 or detector:
        for name, network in zip(names, networks, strict=True):
            if isinstance(network, SideBySide):
                raise ConfigError(
                    f"{name} has several networks; leave out more_backbones and yolox, or name other weights"
                )
        try:
            backbone = side_by_side(networks, detector)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    if config.image_size:
        try:
            backbone.set_image_size(config.image_size, config.image_size)
        except ValueError as error:
            raise ConfigError(f"image_size: {error}") from None
    if not isinstance(backbone, CachesEarlyLayers) and any(phase.backbone_coarse_only for phase in config.phases):
        raise ConfigError(
            f"backbone_coarse_only: {config.backbone} has no early layers that are kept apart; leave it out"
        )
    return Photographs(dataset, splits, backbone, facts, cache, seed=config.seed)


def backbone_provenance(name: str, folder: Path) -> list[dict[str, Any]]:
    """Collect name and terms of the data that a backbone was trained on.

    The backbone of a trained captioner has also learned from the captions of that captioner. Of published backbones
    only the name is known.
    """
    if name.partition("/")[0] in PUBLISHED:
        return [{"name": f"the published weights {name}", "terms": "those of the weights"}]
    path = locate(name, folder)
    if path.suffix != CHECKPOINT_SUFFIX or not path.exists():
        return released_provenance(path)
    record = load_checkpoint(path)[1]["record"]
    return merge_provenance(provenance_of_record(record), record["backbone_trained_on"])
