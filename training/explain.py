"""``python -m training.explain``: draw what made a captioner say each word of a caption."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import torch
import typer
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.files import replaced_atomically
from training.command_line import DataFolderOption, run_command
from training.data.photographs import read_photograph
from training.data.regions import RegionFeatures
from training.data.stored_features import visual_of_stored
from training.engine.attributions import TOLERANCE, attribute_words
from training.engine.checkpoint_captions import DatasetCaptioner
from training.errors import CheckpointError, DataError
from training.evaluation.word_pictures import draw_attributions, draw_shares
from training.models.captioner import Visual
from training.models.eight_bits import set_eight_bits
from training.models.pma_net import PmaNet

_IMPORTED = "captioner.safetensors"
"""Checkpoint in the bundle of a published model."""
_WHITE_BGR = (255, 255, 255)


def explain(
    best: Annotated[
        Path, typer.Argument(metavar="BEST", help="best.safetensors of a run, or the bundle of an imported checkpoint.")
    ],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="Photographs.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PNG", help="Picture to write.")],
    data: DataFolderOption,
    prototypes: Annotated[
        bool,
        typer.Option("--prototypes", help="Draw each word's attention to PMA-Net's prototypes instead of the regions."),
    ] = False,
    beam_size: Annotated[int | None, typer.Option(min=1, max=10, help="Beams (default: the checkpoint's).")] = None,
    max_words: Annotated[int | None, typer.Option(min=2, help="Longest caption (default: the checkpoint's).")] = None,
) -> None:
    """Caption photographs and draw, for each word, the attribution of each region or grid cell.

    Attributions are Integrated Gradients of a word's log probability, averaged over a feature's channels and stretched
    to the range from dark to bright; a red outline marks the greatest (M2, Sec. 4.6 and Fig. 4). A captioner of stored
    features reads those of its experiment; an image's id is the name of its file, with or without the ending, or the
    number at its end.

    With --prototypes, a bar above each word is the mean attention weight of a prototype divided by the sum of those of
    a prototype and of a word, averaged over the decoder's layers (PMA-Net, Fig. 6).
    """
    captioner = DatasetCaptioner(_checkpoint(best))
    trained = captioner.trained
    features = None
    if prototypes:
        _check_prototypes(captioner)
    else:
        set_eight_bits(trained.captioner, False)  # rounding has no gradient
        features = captioner.stored_features(data) if trained.backbone is None else None
    rows = []
    for path in tqdm(images, unit="photograph", disable=len(images) == 1):
        photograph = read_photograph(path, path.name)
        if prototypes:
            rows.append(_draw_prototypes(captioner, path, photograph, beam_size, max_words))
            continue
        if features is None:
            visual = captioner.visual_of_frames([captioner.frame(photograph)])
        else:
            visual = _stored_visual(features, path, captioner)
        row = _draw_regions(captioner, path, photograph, visual, beam_size, max_words)
        rows += [] if row is None else [row]
    if not rows:
        raise DataError("no photograph has a caption with words, so there is nothing to draw")
    width = max(row.shape[1] for row in rows)
    padded = [
        cv2.copyMakeBorder(row, 0, 0, 0, width - row.shape[1], cv2.BORDER_CONSTANT, value=_WHITE_BGR) for row in rows
    ]
    with replaced_atomically(output) as unfinished:
        unfinished.write_bytes(cv2.imencode(".png", np.concatenate(padded))[1].tobytes())


def _draw_regions(
    captioner: DatasetCaptioner,
    path: Path,
    photograph: NDArray[np.uint8],
    visual: Visual,
    beam_size: int | None,
    max_words: int | None,
) -> NDArray[np.uint8] | None:
    """Draw the attributions of a photograph's caption, (H, W, 3) uint8 BGR; None for a caption without words."""
    if visual.boxes_xyxy is None:
        raise DataError(f"{path}: its features have no boxes, so their attributions cannot be drawn (docs/data.md)")
    trained = captioner.trained
    with torch.no_grad():
        found = trained.caption(visual, beam_size, max_words, attention=False).words[0, 0]
    vocabulary, ids = trained.vocabulary, found.tolist()
    places = vocabulary.word_places(ids)
    spoken = found[: places[-1][-1] + 1 if places else 0]
    attributed = attribute_words(trained.captioner, visual, spoken, trained.search)
    words, attributions = vocabulary.decode(ids), attributed.of_words(places)
    _report(path, words, attributions.change.tolist(), "+.2f")
    if attributions.error > TOLERANCE:
        error = f"the attributions of a word differ from its change by {attributions.error:.1%}"
        print(f"warning: {path}: {error}", file=sys.stderr)
    if not words:
        return None
    return draw_attributions(words, attributions.regions(), photograph, visual.boxes_xyxy[0].numpy())


@torch.inference_mode()
def _draw_prototypes(
    captioner: DatasetCaptioner,
    path: Path,
    photograph: NDArray[np.uint8],
    beam_size: int | None,
    max_words: int | None,
) -> NDArray[np.uint8]:
    """Draw the share of PMA-Net's prototypes in the attention of each word, (H, W, 3) uint8 BGR."""
    trained, frame = captioner.trained, captioner.frame(photograph)
    network = trained.captioner
    assert isinstance(network, PmaNet)
    visual = captioner.visual_of_frames([frame])
    found = trained.caption(visual, beam_size, max_words).words[:, :1]
    begin = torch.full_like(found[..., :1], Vocabulary.begin_id)
    said = torch.cat([begin, found[..., :-1]], dim=2)
    of_pieces = network.memory_attention(said, network.encode(visual))[0, 0]
    ids = found[0, 0].tolist()
    shares = [float(of_pieces[pieces].mean()) for pieces in trained.vocabulary.word_places(ids)]
    words = trained.vocabulary.decode(ids)
    _report(path, words, shares, ".2f")
    return draw_shares(words, shares, frame)


def _report(path: Path, words: Sequence[str], values: Sequence[float], digits: str) -> None:
    print(f"{path}: " + " ".join(f"{word} {value:{digits}}" for word, value in zip(words, values, strict=True)))


def _check_prototypes(captioner: DatasetCaptioner) -> None:
    """Check that a captioner attends to prototypes."""
    path, trained = captioner.path, captioner.trained
    if not isinstance(trained.captioner, PmaNet):
        raise CheckpointError(f"{path} is of the family {trained.family}; only pma_net has prototypes")
    if trained.backbone is None:
        raise CheckpointError(f"{path} captions stored features, not photographs")
    if not all(memory.ready for memory in trained.captioner.memories()):
        raise CheckpointError(f"{path} has no prototypes yet: its run was shorter than bank_steps")


def _checkpoint(path: Path) -> Path:
    """Return the file of a captioner for torch."""
    if path.is_dir() and not (path / _IMPORTED).exists():
        raise CheckpointError(
            f"{path} has graphs, which have no gradients; give the best.safetensors that the bundle was exported from"
        )
    return path / _IMPORTED if path.is_dir() else path


def _stored_visual(features: RegionFeatures, path: Path, captioner: DatasetCaptioner) -> Visual:
    """Read the features of a photograph."""
    digits = path.stem[len(path.stem.rstrip("0123456789")) :].lstrip("0")
    names = [name for name in (path.name, path.stem, digits) if name and name in features]
    if not names:
        raise DataError(f"{path}: the captioner's stored features have no image {path.stem}")
    return visual_of_stored(captioner.trained.captioner, features, names[:1])


def main() -> int:
    return run_command(explain, "python -m training.explain", (CheckpointError, DataError, ValueError))


if __name__ == "__main__":
    sys.exit(main())
