"""The search finds the captions of transformers' ``generate`` for published captioners."""

import pytest
import torch
from transformers import BlipForConditionalGeneration, Florence2ForConditionalGeneration, GitForCausalLM

from export.import_checkpoint.text_decoders import read_text_decoder, special_ids, vocabulary_size
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.published_captioners import (
    FRAME,
    QUESTION,
    UNKNOWN,
    encoder_words,
    image_tokens,
    published,
    with_captions_that_end,
)
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Visual

IMAGES, BEAMS, MAX_WORDS = 40, 5, 12
PROMPT = [1, 11, 12]
"""Of our ids, the begin token first."""
CASES = {
    "git": [], "git-untied": [], "blip": [], "blip with prompt": PROMPT, "vit-gpt2": [], "vit-bert": [],
    "florence2": [1, 4],
}  # fmt: skip
"""Models and their prompts; Florence-2 is forced to begin and end with words, and repeats no three."""
QUICK = ("git", "blip with prompt", "florence2")


class Case:
    """A model of transformers, our captioner with its weights, and what both see."""

    def __init__(self, name):
        self.prompt = CASES[name]
        self.model = with_captions_that_end(published(name.split(" ")[0]))
        config = self.model.config.to_dict()
        ids = special_ids(config)
        rows = vocabulary_size(config)
        order = [*ids, UNKNOWN, *(word for word in range(rows) if word not in (*ids, UNKNOWN))]
        self.order = torch.tensor(order)
        self.end = ids.end
        self.forces = name == "florence2"
        question = [order.index(word) for word in QUESTION] if self.forces else ()
        self.imported = read_text_decoder(config, self.model.state_dict(), order, self.prompt, question=question)
        self.pixels = torch.randn(IMAGES, 3, FRAME, FRAME, generator=torch.Generator().manual_seed(2)) * 3

    def search(self, **settings):
        if self.forces:
            settings |= {"no_repeat_ngram": 3, "forced_begin": (4,), "forced_end": True}
        wanted = SearchSettings(BEAMS, MAX_WORDS, self.imported.forbidden, stop="all", **settings)
        with torch.inference_mode():
            return beam_search(self.imported.captioner, Visual(image_tokens(self.model, self.pixels)), wanted)

    def generate(self, length_penalty, min_words, *, early_stopping):
        """Return the captions in our ids, the number of words that were generated for each, and their scores."""
        given = self.order[torch.tensor(self.prompt or [Vocabulary.begin_id])].expand(IMAGES, -1)
        before, forced = given.shape[1], {}
        if self.forces:
            forced = {"no_repeat_ngram_size": 3, "forced_bos_token_id": self.order[4].item(), "forced_eos_token_id": 2}
        with torch.inference_mode():
            found = _generate(
                self.model, self.pixels, given, num_beams=BEAMS, do_sample=False,
                max_new_tokens=MAX_WORDS + 2 * self.forces, **forced,
                min_length=before + min_words - 1, length_penalty=length_penalty, early_stopping=early_stopping,
                return_dict_in_generate=True, output_scores=True,
            )  # fmt: skip
        ours = {word: place for place, word in enumerate(self.order.tolist())}
        captions, lengths = [], []
        for words in found.sequences[:, before:].tolist():
            ended = words[: words.index(self.end)] if self.end in words else words
            captions.append([*map(ours.get, ended), Vocabulary.end_id][:MAX_WORDS])
            lengths.append(min(len(ended) + 1 + self.forces, MAX_WORDS + 2 * self.forces))
        return captions, torch.tensor(lengths), found.sequences_scores


def _generate(model, pixels, given, **options):
    if isinstance(model, GitForCausalLM):
        return model.generate(pixel_values=pixels, input_ids=given, **options)
    if isinstance(model, BlipForConditionalGeneration):
        words = torch.cat([given, given[:, :1]], dim=1)  # it takes an end token off
        return model.generate(pixels, input_ids=words, **options)
    if isinstance(model, Florence2ForConditionalGeneration):
        return model.generate(input_ids=encoder_words(model, pixels), pixel_values=pixels, **options)
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
        expected, lengths, scores = case.generate(length_penalty, min_words, early_stopping=finished == "apart_until_k")
        found = case.search(min_words=min_words, length_penalty=length_penalty, finished=finished)
        same = [
            image
            for image, caption in enumerate(expected)
            if found.words[image, 0].tolist() == caption + [Vocabulary.padding_id] * (MAX_WORDS - len(caption))
        ]
        assert len(same) >= IMAGES - 1  # two captions of the same score may come in either order
        assert min(map(len, expected)) >= min_words
        counts.update(map(len, expected))
        torch.testing.assert_close(
            (found.scores[:, 0] / lengths**length_penalty)[same], scores[same], atol=1e-4, rtol=1e-5
        )
    assert len(counts) > 3
