"""``python -m training.memory_attention``: draw how much each word of a caption attends to PMA-Net's prototypes."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import torch
import typer
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.files import replaced_atomically
from smart_caption_ros.imaging import resize_image
from smart_caption_ros.viewing.text import font, printable, to_bgr, width_of
from training.command_line import run_command
from training.data.photograph_inputs import visual_of_images
from training.data.photographs import read_photograph
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, DataError
from training.models.pma_net import PmaNet
from training.vision.backbone import IMAGE_SIZE

_LETTERS, _CHART, _GAP = 20, 160, 12
"""Size of the words, height of the bars and distance between them, in pixels."""


def memory_attention(
    best: Annotated[Path, typer.Argument(metavar="BEST", help="best.safetensors of a PMA-Net run.")],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="Photographs.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PNG", help="Picture to write.")],
    beam_size: Annotated[int, typer.Option(min=1, max=10)] = 5,
    max_words: Annotated[int, typer.Option(min=2)] = 20,
) -> None:
    """Caption photographs and draw each word's attention to the prototypes (Fig. 6 of the paper).

    A bar is the mean attention weight of a prototype divided by the sum of those of a prototype and of a word, averaged
    over the decoder's layers.
    """
    trained = TrainedCaptioner.load(best)
    if not isinstance(trained.captioner, PmaNet):
        raise CheckpointError(f"{best} is of the family {trained.family}; only pma_net has prototypes")
    if trained.backbone is None:
        raise CheckpointError(f"{best} captions stored features, not photographs")
    if not all(memory.ready for memory in trained.captioner.memories()):
        raise CheckpointError(f"{best} has no prototypes yet: its run was shorter than bank_steps")
    rows = []
    for path in images:
        frame = resize_image(read_photograph(path, path.name), (IMAGE_SIZE, IMAGE_SIZE))
        words, shares = _attention_of(trained, frame, beam_size, max_words)
        print(f"{path}: " + " ".join(f"{word} {share:.2f}" for word, share in zip(words, shares, strict=True)))
        rows.append(draw_shares(words, shares, frame))
    width = max(row.shape[1] for row in rows)
    whole = np.concatenate([cv2.copyMakeBorder(
        row, 0, 0, 0, width - row.shape[1], cv2.BORDER_CONSTANT, value=(255, 255, 255)) for row in rows])  # fmt: skip
    with replaced_atomically(output) as unfinished:
        unfinished.write_bytes(cv2.imencode(".png", whole)[1].tobytes())


def _attention_of(
    trained: TrainedCaptioner, frame: NDArray[np.uint8], beam_size: int, max_words: int
) -> tuple[list[str], list[float]]:
    """Caption a frame; return the words with the share of prototypes in the attention when each was predicted."""
    captioner, backbone = trained.captioner, trained.backbone
    assert isinstance(captioner, PmaNet)
    assert backbone is not None
    with torch.inference_mode():
        visual = visual_of_images(backbone, torch.from_numpy(frame[None]))
        found = trained.caption(visual, beam_size, max_words).words[:, :1]
        begin = torch.full_like(found[..., :1], Vocabulary.begin_id)
        shares = captioner.memory_attention(torch.cat([begin, found[..., :-1]], dim=2), captioner.encode(visual))
    ids = found[0, 0].tolist()
    places = trained.vocabulary.word_places(ids)
    return trained.vocabulary.decode(ids), [float(shares[0, 0, pieces].mean()) for pieces in places]


def draw_shares(words: Sequence[str], shares: Sequence[float], image_bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Draw a bar above each word, beside the photograph.

    Args:
        words: of the caption.
        shares: in [0, 1], one for each word.
        image_bgr: (H, W, 3) uint8.

    Returns:
        (H', W', 3) uint8 BGR.
    """
    texts = [printable(word) for word in words]
    widths = [max(round(width_of(text, _LETTERS)), 2 * _LETTERS) for text in texts]
    height = max(len(image_bgr), _CHART + 4 * _LETTERS)
    chart = Image.new("RGB", (sum(widths) + _GAP * (len(widths) + 1), height), "white")
    pen, left, bottom = ImageDraw.Draw(chart), _GAP, _CHART + 2 * _LETTERS
    for text, share, width in zip(texts, shares, widths, strict=True):
        middle, top = left + width // 2, bottom - round(_CHART * share)
        pen.rectangle((left, top, left + width, bottom), fill=(70, 110, 180))
        pen.text((middle, top - 4), f"{share:.2f}", fill="black", font=font(_LETTERS - 6), anchor="ms")
        pen.text((middle, bottom + _LETTERS + 4), text, fill="black", font=font(_LETTERS), anchor="ms")
        left += width + _GAP
    border = cv2.copyMakeBorder(image_bgr, 0, height - len(image_bgr), 0, 0, cv2.BORDER_CONSTANT, value=(255, 255, 255))
    return np.concatenate([border.astype(np.uint8), to_bgr(chart)], axis=1)


def main() -> int:
    return run_command(memory_attention, "python -m training.memory_attention", (CheckpointError, DataError))


if __name__ == "__main__":
    sys.exit(main())
