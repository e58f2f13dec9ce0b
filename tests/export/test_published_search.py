"""The search finds the captions of transformers' ``generate`` for published captioners."""

import pytest
import torch
from transformers import BlipForConditionalGeneration, GitForCausalLM

from export.import_checkpoint.text_decoders import read_text_decoder, special_ids
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.published_captioners import FRAME, UNKNOWN, WORDS, image_tokens, published, with_captions_that_end
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Visual

IMAGES, BEAMS, MAX_WORDS = 40, 5, 12
PROMPT = [1, 11, 12]
"""Of our ids, the begin token first."""
CASES = {"git": [], "git-untied": [], "blip": [], "blip with prompt": PROMPT, "vit-gpt2": [], "vit-bert": []}
"""Models and their prompts."""
QUICK = ("git", "blip with prompt")


class Case:
    """A model of transformers, our captioner with its weights, and what both see."""

    def __init__(self, name):
        self.prompt = CASES[name]
        self.model = with_captions_that_end(published(name.split(" ")[0]))
        config = self.model.config.to_dict()
        ids = special_ids(config)
        order = [*ids, UNKNOWN, *(word for word in range(WORDS) if word not in (*ids, UNKNOWN))]
        self.order = torch.tensor(order)
        self.end = ids.end
        self.imported = read_text_decoder(config, self.model.state_dict(), order, self.prompt)
        self.pixels = torch.randn(IMAGES, 3, FRAME, FRAME, generator=torch.Generator().manual_seed(2)) * 3

    def search(self, **settings):
        wanted = SearchSettings(BEAMS, MAX_WORDS, self.imported.forbidden, stop="all", **settings)
        with torch.inference_mode():
            return beam_search(self.imported.captioner, Visual(image_tokens(self.model, self.pixels)), wanted)

    def generate(self, length_penalty, min_words, *, early_stopping):
        """Return the captions in our ids, and their scores."""
        given = self.order[torch.tensor(self.prompt or [Vocabulary.begin_id])].expand(IMAGES, -1)
        before = given.shape[1]
        with torch.inference_mode():
            found = _generate(
                self.model, self.pixels, given, num_beams=BEAMS, do_sample=False, max_new_tokens=MAX_WORDS,
                min_length=before + min_words - 1, length_penalty=length_penalty, early_stopping=early_stopping,
                return_dict_in_generate=True, output_scores=True,
            )  # fmt: skip
        ours = self.order.argsort()
        captions = []
        for words in found.sequences[:, before:].tolist():
            ended = words[: words.index(self.end)] if self.end in words else words
            captions.append([*ours[torch.tensor(ended, dtype=torch.int64)].tolist(), Vocabulary.end_id][:MAX_WORDS])
        return captions, found.sequences_scores


def _generate(model, pixels, given, **options):
    if isinstance(model, GitForCausalLM):
        return model.generate(pixel_values=pixels, input_ids=given, **options)
    if isinstance(model, BlipForConditionalGeneration):
        words = torch.cat([given, given[:, :1]], dim=1)  # it takes an end token off
        return model.generate(pixels, input_ids=words, **options)
    model.generation_config.decoder_start_token_id = int(given[0, 0])
    return model.generate(pixels, **options)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in CASES]
)
def test_captions_are_those_of_generate(name):
    case, counts = Case(name), set[int]()
    for length_penalty, min_words, finished in (
        (0.0, 1, "apart"), (1.0, 5, "apart"), (-0.5, 1, "apart"), (1.0, 5, "apart_until_k"),
    ):  # fmt: skip
        expected, scores = case.generate(length_penalty, min_words, early_stopping=finished == "apart_until_k")
        found = case.search(min_words=min_words, length_penalty=length_penalty, finished=finished)
        same = [
            image
            for image, caption in enumerate(expected)
            if found.words[image, 0].tolist() == caption + [Vocabulary.padding_id] * (MAX_WORDS - len(caption))
        ]
        assert len(same) >= IMAGES - 1  # two captions of the same score may come in either order
        lengths = torch.tensor([len(caption) for caption in expected])
        assert lengths.min() >= min_words
        counts.update(lengths.tolist())
        torch.testing.assert_close(
            (found.scores[:, 0] / lengths**length_penalty)[same], scores[same], atol=1e-4, rtol=1e-5
        )
    assert len(counts) > 3
