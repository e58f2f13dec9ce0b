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
from training.vision.backbone import Backbone
from training.vision.detection_classes import DETECTION_CLASSES
from training.vision.inverted_residuals import InvertedResiduals
from training.vision.released_weights import CHECKPOINT_SUFFIX, load_backbone, locate, released_provenance
from training.vision.side_by_side import SideBySide
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
    paths = [locate(name, data / "backbones") for name in (config.backbone, *config.more_backbones)]
    trained_on = [entry for path in paths for entry in _backbone_provenance(path)]
    facts = {"backbone": " + ".join([config.backbone, *config.more_backbones]), "backbone_trained_on": trained_on}
    networks = [load_backbone(path) for path in paths]

    def photographs(backbone: Backbone) -> Photographs:
        backbone.set_image_size(config.image_size)
        return Photographs(dataset, splits, backbone, facts, cache, seed=config.seed)

    if not config.more_backbones and not config.yolox:
        return photographs(networks[0])
    grids = [network for network in networks if isinstance(network, InvertedResiduals)]
    if len(grids) < len(networks):
        several = next(path for path, network in zip(paths, networks, strict=True) if network not in grids)
        raise ConfigError(f"{several} has several networks; leave out more_backbones and yolox, or name other weights")
    detector = None
    if config.yolox:
        yolox = load_yolox_nano(locate(config.yolox, data / "detectors"))
        detector = with_classes(yolox, DETECTION_CLASSES)
        trained_on.append(RELEASED)
        facts["detector"] = {"trained_on": [RELEASED]}
    return photographs(SideBySide(grids, detector))


def _backbone_provenance(path: Path) -> list[dict[str, Any]]:
    """Collect name and terms of the data that a backbone was trained on.

    The backbone of a trained captioner has also learned from the captions of that captioner.
    """
    if path.suffix != CHECKPOINT_SUFFIX or not path.exists():
        return released_provenance(path)
    record = load_checkpoint(path)[1]["record"]
    return merge_provenance(provenance_of_record(record), record["backbone_trained_on"])
