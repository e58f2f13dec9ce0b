"""The three pieces of a captioner graph, traced from torch: what is done once an image, once a word, and at the end.

:mod:`export.captioner` joins them. A model is asked for ``encode`` and ``step`` (and for an empty state), nothing
more.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.passes.fuse import fuse_linears
from export.passes.rows import flatten_rows
from export.passes.squeeze import cancel_squeezes
from export.torch_to_onnx import to_onnx
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decoding.beam_search import EXCLUDED, SearchSettings, backtrack, excluded_words, select_continuations
from training.models.captioner import Slots, Visual, visible_slots
from training.models.layers import ImageCache, WordCache
from training.models.smart import EncodedImage, Smart


@dataclass(frozen=True)
class Pieces:
    """Graphs that share names: an output of one is what the next takes under the same name.

    Batch, tokens and cache slots are dynamic axes called ``batch``, ``tokens`` and ``slots``.
    """

    start: onnx.ModelProto
    """``tokens``, ``token_mask`` -> ``first_*`` of every carried name, and all that belongs to the image."""
    step: onnx.ModelProto
    """``position``, what is carried and what belongs to the image -> ``going_on``, ``next_*`` of every carried name,
    ``chosen`` and ``attention``."""
    finish: onnx.ModelProto
    """``step_words``, ``step_chosen``, ``step_attention``, ``last_ancestry``, ``last_scores`` -> the captions."""
    beam_size: int
    carried: tuple[str, ...]
    """From word to word: the beams, and the decoder's cache."""
    of_image: tuple[str, ...]

    def with_precision(self, convert: Callable[[onnx.ModelProto], onnx.ModelProto]) -> "Pieces":
        """The same pieces with the model's layers in another precision; the search's books stay as they are."""
        return replace(self, start=convert(self.start), step=convert(self.step))


def export_pieces(model: Smart, beam_size: int) -> Pieces:
    """Trace the pieces; layers that share an input become one (:mod:`export.passes.fuse`)."""
    layers = len(model.decoder_layers())
    carried = (*_BOOKS, *_names(("word_keys", "word_values"), layers))
    of_image = ("own", "image_mask", *_names(_IMAGE, layers))
    return Pieces(
        start=fuse_linears(_export_start(model, beam_size, [f"first_{name}" for name in carried] + [*of_image])),
        step=flatten_rows(fuse_linears(cancel_squeezes(_export_step(model, beam_size, carried, of_image)))),
        finish=_export_finish(beam_size),
        beam_size=beam_size,
        carried=carried,
        of_image=of_image,
    )


class _Start(nn.Module):
    """Encode the image; the state of a search that has not begun."""

    words: Tensor
    scores: Tensor
    nothing: Tensor
    own: Tensor

    def __init__(self, model: Smart, beam_size: int) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("words", torch.full((1, beam_size), Vocabulary.begin_id))
        self.register_buffer("scores", torch.where(torch.arange(beam_size) == 0, 0.0, EXCLUDED)[None])
        self.register_buffer("nothing", torch.zeros(1, beam_size, dtype=torch.bool))
        self.register_buffer("own", torch.eye(beam_size, dtype=torch.bool)[None])

    def forward(self, tokens: Tensor, token_mask: Tensor) -> tuple[Tensor, ...]:
        batch = tokens.shape[0]
        encoded = self.model.encode(Visual(tokens, token_mask))
        state = self.model.initial_state(encoded, self.words.shape[1])
        mask = encoded.mask
        assert mask is not None
        ended = self.nothing.repeat(batch, 1)
        return (
            self.words.repeat(batch, 1), self.scores.repeat(batch, 1), ended, ended[..., None][:, :, :0],
            *_of_state(state), self.own.repeat(batch, 1, 1), mask,
            *(cache.keys for cache in encoded.caches), *(cache.values for cache in encoded.caches),
        )  # fmt: skip


class _Step(nn.Module):
    """One word: the model's step, the k best continuations, the books."""

    excluded: Tensor

    def __init__(self, model: Smart) -> None:
        super().__init__()
        self.model = model
        excluded = excluded_words(model.config.vocabulary_size, SearchSettings().forbidden)
        self.register_buffer("excluded", excluded)

    def forward(
        self, position: Tensor, words: Tensor, scores: Tensor, ended: Tensor, ancestry: Tensor, own: Tensor,
        image_mask: Tensor, **kept: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        layers = range(len(self.model.decoder_layers()))
        word_keys, word_values, image_keys, image_values = (
            [kept[f"{kind}_{layer}"] for layer in layers] for kind in ("word_keys", "word_values", *_IMAGE)
        )
        before = [WordCache(Slots(keys), Slots(values)) for keys, values in zip(word_keys, word_values, strict=True)]
        images = [ImageCache(keys, values) for keys, values in zip(image_keys, image_values, strict=True)]
        logits, attention, state = self.model.decode(
            words[..., None], position, ancestry, before, EncodedImage(images, image_mask)
        )
        words, parents, chosen, scores, ended = select_continuations(logits.squeeze(2) + self.excluded, scores, ended)
        ancestry = visible_slots(ancestry, 1)
        # Whole rows: torch.gather would need an index for each of their elements, and nodes to make them.
        ancestry = torch.onnx.ops.symbolic(
            "GatherND", [ancestry, parents[..., None]], {"batch_dims": 1}, dtype=ancestry.dtype, shape=ancestry.shape
        )
        going_on = torch.logical_not(ended[:, 0].all())
        return going_on, words, scores, ended, ancestry, *_of_state(state), chosen, attention.squeeze(2)


class _Finish(nn.Module):
    """Read the captions off the books."""

    own: Tensor

    def __init__(self, beam_size: int) -> None:
        super().__init__()
        self.register_buffer("own", torch.eye(beam_size, dtype=torch.bool)[None])

    def forward(
        self, step_words: Tensor, step_chosen: Tensor, step_attention: Tensor, last_ancestry: Tensor,
        last_scores: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        ancestry = torch.cat([last_ancestry, self.own.expand(last_scores.shape[0], -1, -1)], dim=2)
        found = backtrack(step_words, step_chosen, step_attention, ancestry, last_scores)
        return found.words, found.log_probabilities, found.attention


_BOOKS = ("words", "scores", "ended", "ancestry")
_IMAGE = ("image_keys", "image_values")


def _of_state(state: list[WordCache]) -> list[Tensor]:
    return [*(cache.keys.values for cache in state), *(cache.values.values for cache in state)]


def _names(kinds: Iterable[str], layers: int) -> list[str]:
    return [f"{kind}_{layer}" for kind in kinds for layer in range(layers)]


def _export_start(model: Smart, beam_size: int, outputs: list[str]) -> onnx.ModelProto:
    batch, tokens = Dim("batch"), Dim("tokens")
    return to_onnx(
        _Start(model, beam_size),
        {
            "tokens": torch.zeros(3, 11, model.config.token_width),
            "token_mask": torch.ones(3, 11, dtype=torch.bool),
        },
        outputs,
        {"tokens": {0: batch, 1: tokens}, "token_mask": {0: batch, 1: tokens}},
    )


def _export_step(model: Smart, beam_size: int, carried: tuple[str, ...], of_image: tuple[str, ...]) -> onnx.ModelProto:
    batch, slots, tokens = Dim("batch"), Dim("slots"), Dim("tokens")
    heads, width = model.config.heads, model.config.d_model // model.config.heads
    examples = {
        "position": torch.tensor(3),
        "words": torch.full((3, beam_size), Vocabulary.begin_id),
        "scores": torch.zeros(3, beam_size),
        "ended": torch.zeros(3, beam_size, dtype=torch.bool),
        "ancestry": torch.ones(3, beam_size, 13, dtype=torch.bool),
        "own": torch.ones(3, beam_size, beam_size, dtype=torch.bool),
        "image_mask": torch.ones(3, 1, 1, 11, dtype=torch.bool),
    }
    dynamic = {
        **{name: {0: batch} for name in ("words", "scores", "ended", "own")},
        "ancestry": {0: batch, 2: slots},
        "image_mask": {0: batch, 3: tokens},
    }
    for name in (*carried, *of_image):
        if name not in examples:
            axis = tokens if name in of_image else slots
            examples[name] = torch.zeros(3, heads, 11 if name in of_image else 13, width)
            dynamic[name] = {0: batch, 2: axis}
    outputs = ["going_on", *(f"next_{name}" for name in carried), "chosen", "attention"]
    return to_onnx(_Step(model), examples, outputs, dynamic)


def _export_finish(beam_size: int) -> onnx.ModelProto:
    batch, steps, tokens = Dim("batch"), Dim("steps"), Dim("tokens")
    examples = {
        "step_words": torch.ones(4, 3, beam_size, dtype=torch.int64),
        "step_chosen": torch.zeros(4, 3, beam_size),
        "step_attention": torch.zeros(4, 3, beam_size, 11),
        "last_ancestry": torch.ones(3, beam_size, 4 * beam_size, dtype=torch.bool),
        "last_scores": torch.zeros(3, beam_size),
    }
    dynamic = {
        "step_words": {0: steps, 1: batch},
        "step_chosen": {0: steps, 1: batch},
        "step_attention": {0: steps, 1: batch, 3: tokens},
        "last_ancestry": {0: batch, 2: beam_size * steps},
        "last_scores": {0: batch},
    }
    return to_onnx(_Finish(beam_size), examples, ["words", "log_probabilities", "attention"], dynamic)
