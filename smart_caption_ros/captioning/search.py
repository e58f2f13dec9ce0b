"""Settings of the search for captions, for training, evaluation, export and a bundle's manifest."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from smart_caption_ros.captioning.vocabulary import Vocabulary

Finished = Literal["in_beams", "apart", "apart_until_k"]
"""Where hypotheses that have ended are kept."""


@dataclass(frozen=True)
class Search:
    """Settings of beam search; a manifest has these fields under ``decoding``.

    The prompt is not a setting of the search: the captioner's initial state contains it.

    Raises:
        ValueError: a value is out of range, or a length penalty comes with ``finished="in_beams"``.
    """

    beam_size: int = 5
    """k, number of hypotheses that are kept per image."""
    max_words: int = 20
    """Longest caption in words, or pieces of words, end token included."""
    forbidden: tuple[int, ...] = (Vocabulary.padding_id, Vocabulary.begin_id, Vocabulary.unknown_id)
    """Ids that are never chosen; the probabilities are normalised over the others."""
    min_words: int = 1
    """Shortest caption, end token included: the end token is not chosen before."""
    length_penalty: float = 0.0
    """Hypotheses are ranked by score / length ** length_penalty, end token included; 0: by the score."""
    finished: Finished = "in_beams"
    """``in_beams``: a hypothesis that has ended keeps its beam. ``apart``: the k best ended hypotheses are kept beside
    the k beams, and the search stops when no beam, scored at its present length, would be among them, as transformers'
    ``generate(early_stopping=False)`` does. ``apart_until_k``: the search stops when k hypotheses have ended, as with
    ``early_stopping=True``."""
    repeat_penalty: float = 0.0
    """Natural logarithm that the search subtracts from the log probability of a content word that the caption has
    already; scores do not contain it."""
    end_penalty: float = 0.0
    """Natural logarithm that is subtracted from the logit of the end token, before probabilities are normalised, so
    that captions become longer. Probabilities and scores contain it."""
    no_repeat_ngram: int = 0
    """n: no n words in a row occur twice in a caption; 0 for no limit."""
    forced_begin: tuple[int, ...] = ()
    """Ids of the words that ``generate`` is forced to begin with: the end of the captioner's prompt. They count in the
    length and in repeated n-grams, and are not part of a caption."""
    forced_end: bool = False
    """Whether a caption of ``max_words`` words counts as ended, one word longer, as if ``generate`` forced an end."""
    end_words: tuple[int, ...] = ()
    """Ids that end a caption beside the end token, and stay in it, such as a full stop."""

    def __post_init__(self) -> None:
        for name, least in (("beam_size", 1), ("max_words", 1), ("min_words", 1), ("no_repeat_ngram", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        for name in ("repeat_penalty", "end_penalty", "length_penalty"):
            if math.isnan(getattr(self, name)):
                raise ValueError(f"{name} must be a number, not nan")
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        if self.finished not in get_args(Finished):
            raise ValueError(f"finished must be {' or '.join(get_args(Finished))}, not {self.finished!r}")
        if self.length_penalty and self.finished == "in_beams":
            raise ValueError("length_penalty needs finished apart: hypotheses of several lengths compete for the beams")

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Search":
        """Read :meth:`as_json`; keys that are missing have their defaults, others are ignored.

        Raises:
            ValueError: a value is of another type or out of range.
        """
        values: dict[str, Any] = {}
        for field in fields(cls):
            value = document.get(field.name, field.default)
            value = tuple(value) if isinstance(value, list) else value
            kinds = (int, float) if isinstance(field.default, float) else type(field.default)
            parts = value if isinstance(value, tuple) else ()
            wrong = isinstance(value, bool) != isinstance(field.default, bool) or not isinstance(value, kinds)
            if wrong or not all(type(part) is int for part in parts):
                raise ValueError(f"{field.name} must be like {field.default!r}, not {value!r}")
            values[field.name] = value
        return cls(**values)

    def changed(self, **values: Any) -> "Search":
        """Return the settings with other values of some fields; None leaves a field as it is."""
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @property
    def ends(self) -> tuple[int, ...]:
        """Ids of the words after which a caption has ended."""
        return Vocabulary.end_id, *self.end_words
