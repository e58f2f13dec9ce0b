"""The detection head of another checkpoint on the same backbone: captioner and detector may be trained apart."""

from pathlib import Path

import torch

from export.bundle import ExportError
from training.captioning import TrainedCaptioner


def borrow_detector(trained: TrainedCaptioner, path: Path) -> None:
    """Give a captioner the head of a checkpoint, and what its record says of it.

    Raises:
        CheckpointError: the checkpoint is missing or malformed.
        ExportError: it has no head, or its backbone is another.
    """
    lender = TrainedCaptioner.load(path)
    if lender.detector is None or lender.backbone is None:
        raise ExportError(f"{path} has no detection head; `python -m training.detection.train` trains one")
    if trained.backbone is None or not _same(trained.backbone, lender.backbone):
        raise ExportError(f"{path}: its head was trained on another backbone than that of the captioner")
    trained.detector = lender.detector
    of_the_head = ("boxes_by", "detector")
    trained.record |= {key: lender.record[key] for key in of_the_head if key in lender.record}


def _same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    theirs = other.state_dict()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in one.state_dict().items())
