"""``python -m training.attributions``: draw which regions or grid cells made each word of a caption more probable."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from smart_caption_ros.files import replaced_atomically
from smart_caption_ros.imaging import resize_image
from smart_caption_ros.viewing.contact_sheet import contact_sheet
from smart_caption_ros.viewing.text import label, printable, shortened
from training.command_line import DataFolderOption, run_command
from training.data.feature_inputs import open_stored_features, visual_of_features
from training.data.photograph_inputs import visual_of_images
from training.data.photographs import read_photograph
from training.data.region_batches import open_batches
from training.data.regions import RegionFeatures
from training.engine.attributions import TOLERANCE, Attributions, attribute_words, stretch_contrast
from training.engine.experiment import parse_record
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, ConfigError, DataError
from training.models.captioner import Visual
from training.models.eight_bits import set_eight_bits
from training.vision.backbone import IMAGE_SIZE

_PANEL, _LETTERS, _COLUMNS = 260, 18, 5
"""Height of a picture and of its letters in pixels, and pictures in a row."""
_UNLIT = 0.2
"""Brightness of a region with the lowest attribution."""
_RED_BGR, _WHITE, _BLACK = (0, 0, 255), (255, 255, 255), (0, 0, 0)
_IMPORTED = "captioner.safetensors"
"""Checkpoint in the bundle of a published model."""


def attributions(
    best: Annotated[
        Path, typer.Argument(metavar="BEST", help="best.safetensors of a run, or the bundle of an imported checkpoint.")
    ],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="Photographs.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PNG", help="Picture to write.")],
    data: DataFolderOption,
    beam_size: Annotated[int, typer.Option(min=1, max=10)] = 5,
    max_words: Annotated[int, typer.Option(min=2)] = 20,
) -> None:
    """Caption photographs and draw, for each word, the attribution of each region or grid cell.

    Attributions are Integrated Gradients of a word's log probability, averaged over a feature's channels and stretched
    to the range from dark to bright; a red outline marks the greatest (M2, Sec. 4.6 and Fig. 4). A captioner of stored
    features reads those of its experiment; an image's id is the name of its file, with or without the ending, or the
    number at its end.
    """
    trained = TrainedCaptioner.load(_checkpoint(best))
    set_eight_bits(trained.captioner, False)  # rounding has no gradient
    features = None
    if trained.backbone is None:
        try:
            experiment = parse_record(trained.record["experiment"], str(best))
        except (KeyError, ConfigError) as error:
            raise CheckpointError(f"{best} does not say which features it captions ({error})") from None
        features, _ = open_stored_features(experiment.features, data)
    rows = []
    for path in tqdm(images, unit="photograph", disable=len(images) == 1):
        photograph = read_photograph(path, path.name)
        visual = _visual_of(trained, photograph) if features is None else _stored_visual(trained, features, path)
        if visual.boxes_xyxy is None:
            raise DataError(f"{path}: its features have no boxes, so their attributions cannot be drawn (docs/data.md)")
        words, found = _attributions_of(trained, visual, beam_size, max_words)
        _report(path, words, found)
        if words:
            rows.append(draw_attributions(words, found.regions(), photograph, visual.boxes_xyxy[0].numpy()))
    if not rows:
        raise DataError("no photograph has a caption with words, so there is nothing to draw")
    width = max(row.shape[1] for row in rows)
    whole = np.concatenate([cv2.copyMakeBorder(
        row, 0, 0, 0, width - row.shape[1], cv2.BORDER_CONSTANT, value=_WHITE) for row in rows])  # fmt: skip
    with replaced_atomically(output) as unfinished:
        unfinished.write_bytes(cv2.imencode(".png", whole)[1].tobytes())


def _checkpoint(path: Path) -> Path:
    """Return the file of a captioner for torch.

    Raises:
        CheckpointError: a bundle has graphs alone, which have no gradients.
    """
    if path.is_dir() and not (path / _IMPORTED).exists():
        raise CheckpointError(
            f"{path} has graphs, which have no gradients; give the best.safetensors that the bundle was exported from"
        )
    return path / _IMPORTED if path.is_dir() else path


def _visual_of(trained: TrainedCaptioner, photograph: NDArray[np.uint8]) -> Visual:
    assert trained.backbone is not None
    frame = resize_image(photograph, (IMAGE_SIZE, IMAGE_SIZE))
    with torch.no_grad():
        return visual_of_images(trained.backbone, torch.from_numpy(frame[None]))


def _stored_visual(trained: TrainedCaptioner, features: RegionFeatures, path: Path) -> Visual:
    """Read the features of a photograph.

    Raises:
        DataError: there are none.
    """
    digits = path.stem[len(path.stem.rstrip("0123456789")) :].lstrip("0")
    names = [name for name in (path.name, path.stem, digits) if name and name in features]
    if not names:
        raise DataError(f"{path}: the captioner's stored features have no image {path.stem}")
    return visual_of_features(open_batches(features, names[:1], trained.captioner).read(np.arange(1)))


def _attributions_of(
    trained: TrainedCaptioner, visual: Visual, beam_size: int, max_words: int
) -> tuple[list[str], Attributions]:
    """Caption an image; return the words of the best caption with their attributions."""
    with torch.no_grad():
        found = trained.caption(visual, beam_size, max_words, attention=False).words[0, 0]
    vocabulary, ids = trained.vocabulary, found.tolist()
    places = vocabulary.word_places(ids)
    spoken = attribute_words(trained.captioner, visual, found[: places[-1][-1] + 1 if places else 0])
    return vocabulary.decode(ids), spoken.of_words(places)


def _report(path: Path, words: Sequence[str], found: Attributions) -> None:
    changes = " ".join(f"{word} {change:+.2f}" for word, change in zip(words, found.change.tolist(), strict=True))
    print(f"{path}: {changes}")
    if found.error > TOLERANCE:
        print(
            f"warning: {path}: the attributions of a word differ from its change by {found.error:.1%}", file=sys.stderr
        )


def draw_attributions(
    words: Sequence[str], scores: Tensor, photograph_bgr: NDArray[np.uint8], boxes_xyxy: NDArray[np.float32]
) -> NDArray[np.uint8]:
    """Draw the photograph once for each word, brighter where the word's scores are higher.

    Args:
        words: T words, at least one.
        scores: (T, N) float, attribution of each word to each region.
        photograph_bgr: (H, W, 3) uint8.
        boxes_xyxy: (N, 4) float32, boxes of the regions as fractions of the photograph; where several cover a pixel,
            the one with the highest score counts.

    Returns:
        (H', W', 3) uint8 BGR.
    """
    height, width = photograph_bgr.shape[:2]
    size = (max(1, round(width * _PANEL / height)), _PANEL)
    picture = np.asarray(cv2.resize(photograph_bgr, size, interpolation=cv2.INTER_AREA), np.uint8)
    corners = np.rint(boxes_xyxy * np.tile(size, 2)).astype(int)
    panels = []
    for word, row in zip(words, stretch_contrast(scores).numpy(), strict=True):
        light = np.zeros(picture.shape[:2], np.float32)
        for place in np.argsort(row, kind="stable"):
            left, top, right, bottom = corners[place]
            light[top:bottom, left:right] = row[place]
        panel = np.rint(picture * (_UNLIT + (1 - _UNLIT) * light[..., None])).astype(np.uint8)
        left, top, right, bottom = corners[row.argmax()]
        cv2.rectangle(panel, (left, top), (max(left, right - 1), max(top, bottom - 1)), _RED_BGR, 2)
        panels.append(np.concatenate([panel, _caption_of(word, size[0])]))
    return contact_sheet(panels, min(_COLUMNS, len(panels)))


def _caption_of(word: str, width: int) -> NDArray[np.uint8]:
    """Draw a word on a plate of a width."""
    plate = label(shortened(printable(word), _LETTERS, width - _LETTERS), _LETTERS, _BLACK, _WHITE)[:, :width]
    return np.asarray(
        cv2.copyMakeBorder(plate, 0, 0, 0, width - plate.shape[1], cv2.BORDER_CONSTANT, value=_WHITE), np.uint8
    )


def main() -> int:
    return run_command(attributions, "python -m training.attributions", (CheckpointError, DataError))


if __name__ == "__main__":
    sys.exit(main())
