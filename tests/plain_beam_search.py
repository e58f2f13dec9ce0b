"""Beam search of one image through teacher forcing: the whole sequence again for every word, no cache or state.

The reference for :mod:`training.decoding.beam_search` and :mod:`export.trace`; the search shares no code with them.
"""

from dataclasses import dataclass, field

import pytest
import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import padded_logits

FORBIDDEN = (Vocabulary.padding_id, Vocabulary.begin_id, Vocabulary.unknown_id)


@dataclass
class Beam:
    """A caption so far."""

    words: list[int] = field(default_factory=list)
    log_probabilities: list[float] = field(default_factory=list)
    guidance: float = 0.0
    said_groups: frozenset[int] = frozenset()
    said_numbers: frozenset[int] = frozenset()
    before: "Beam | None" = None
    """The beam before its last word, where this is one piece so far."""

    @property
    def score(self):
        return sum(self.log_probabilities)

    @property
    def ended(self):
        return bool(self.words) and self.words[-1] == Vocabulary.end_id


def plain_beam_search(model, visual, beam_size, max_words, guide=None, same=None, penalty=0.0, continues=()):
    """Search for the beams of one image (B = 1), best first by score + guidance; every beam is finished.

    ``guide`` has the bias and the group of words by their ids; the first word of a group counts. ``same`` has numbers
    of words by their ids; a word whose number the beam has said costs the penalty, whatever its bias. ``continues`` has
    the pieces that make the word before them longer, so that it is another word.
    """
    beams = [Beam()]
    for _ in range(max_words):
        continued = [beam for beam in beams if beam.ended]
        for beam in (beam for beam in beams if not beam.ended):
            words = torch.tensor([[[Vocabulary.begin_id, *beam.words]]])
            with torch.no_grad():
                logits = padded_logits(model, visual, words)[0, 0, -1].clone()
            logits[list(FORBIDDEN)] = -torch.inf  # probabilities are normalised over the words that are allowed
            scores = logits.log_softmax(-1).tolist()
            continued += [
                _with_word(
                    beam, word, score, (guide or {}).get(word), (same or {}).get(word), penalty, word in continues
                )
                for word, score in enumerate(scores)
                if word not in FORBIDDEN
            ]
        beams = sorted(continued, key=lambda beam: -beam.score - beam.guidance)[:beam_size]
    return beams


def assert_same_beams(found, image, expected):
    """Compare all beams of an image of a batch with those of a plain search."""
    for beam, reference in enumerate(expected):
        assert found.words[image, beam, : len(reference.words)].tolist() == reference.words
        assert found.scores[image, beam].item() == pytest.approx(reference.score, abs=1e-4)


def _with_word(beam, word, log_probability, guide, number, penalty, continues):
    words, chosen = [*beam.words, word], [*beam.log_probabilities, log_probability]
    if continues:
        guided = beam.before or beam
        return Beam(words, chosen, guided.guidance, guided.said_groups, guided.said_numbers)
    bias, group = guide or (0.0, 0)
    gain = -penalty if number in beam.said_numbers else bias if group not in beam.said_groups else 0.0
    return Beam(
        words,
        chosen,
        beam.guidance + gain,
        beam.said_groups | ({group} if guide else set()),
        beam.said_numbers | ({number} if number else set()),
        beam,
    )
