"""Retrieval of other photographs' captions all of whose claims are confirmed by the evidence for a photograph."""

from collections.abc import Iterable

from tqdm import tqdm

from recipes.rooms.evidence import Evidence
from recipes.rooms.places import ROOM_NOUNS
from recipes.rooms.pool_captions import COUNT_WORDS, QUANTIFIERS, CheckableCaption, read_caption, variants
from recipes.rooms.supported_nouns import CLASSES_OF
from recipes.rooms.word_lists import words_in
from smart_caption_ros.grounding.nouns import NounFinder
from smart_caption_ros.grounding.word_vectors import WordVectors

SAME_MEANING = 0.97
"""Minimum cosine of two captions' mean word vectors at which they mean the same."""
MAX_USES = 40
"""Photographs that may get the same caption."""
_USE_PENALTY = 0.12
"""Score that a caption loses, times the square root of its uses, so that few photographs share a caption."""
_MAX_RANKED = 60
"""Number of a photograph's best captions that are compared for repetitions."""
_UNCOUNTED = frozenset(
    words_in(
        """
    cabinet cupboard wall counter countertop curtain shelf pillow cushion tree building mountain plant flower
    drawer book window blind tile stair field cloud rock picture painting hill
    """
    )
)
"""Nouns whose plural needs no count of at least two."""
_COMPOUNDS = tuple(noun for noun in (*CLASSES_OF, *sorted(ROOM_NOUNS)) if " " in noun)


class CaptionPool:
    """Captions to retrieve from."""

    def __init__(self, texts: Iterable[str], finder: NounFinder, vectors: WordVectors) -> None:
        """Keep the captions all of whose claims can be checked against evidence.

        Args:
            texts: captions as written.
            finder: finds nouns, as :func:`noun_finder` returns it.
            vectors: word vectors, to recognise captions with the same meaning.
        """
        found: dict[str, CheckableCaption] = {}
        for text in tqdm(list(texts), "captions", unit="caption", mininterval=1):
            for variant in variants(text):
                if variant not in found and (caption := read_caption(variant, finder, vectors)) is not None:
                    found[variant] = caption
        self.captions = [found[text] for text in sorted(found)]
        self._uses = [0] * len(self.captions)

    def retrieve(self, evidence: Evidence, wanted: int) -> list[str]:
        """Retrieve at most ``wanted`` captions, the one that names most of the evidence first.

        All nouns of a caption have strong evidence, its colours and counts are confirmed, and no two captions have the
        same meaning. A caption that was already used for other photographs has a lower score.
        """
        ranked = []
        for place, caption in enumerate(self.captions):
            score = _score(caption, evidence)
            if score > 0 and self._uses[place] < MAX_USES:
                ranked.append((_USE_PENALTY * self._uses[place] ** 0.5 - score, place))
        chosen: list[CheckableCaption] = []
        for _, place in sorted(ranked)[:_MAX_RANKED]:
            caption = self.captions[place]
            if len(chosen) < wanted and not any(_mean_the_same(caption, other) for other in chosen):
                chosen.append(caption)
                self._uses[place] += 1
        return [caption.text for caption in chosen]


def noun_finder() -> NounFinder:
    """Load the noun finder of the package with the compound names of places and supported nouns."""
    return NounFinder.load(class_names=_COMPOUNDS)


def _score(caption: CheckableCaption, evidence: Evidence) -> float:
    """Sum what a caption names; 0 if the evidence does not confirm one of its claims."""
    score = 0.0
    rooms = set(evidence.rooms)
    counted: set[str] = set()
    for noun, many in caption.nouns:
        if noun in ROOM_NOUNS:
            if noun not in rooms:
                return 0.0
            score += 0.5 if noun == "room" else 1.5
            continue
        if noun not in evidence.certain:
            return 0.0
        if many and noun not in _UNCOUNTED and not _at_least(evidence, noun, 2):
            return 0.0
        if noun not in counted:
            score += 1 + evidence.nouns[noun] ** 0.5 + (noun in evidence.named_by_people)
        counted.add(noun)
    for claim, noun in caption.claims:
        if not _is_confirmed(claim, noun, evidence):
            return 0.0
        score += 0.3
    return score


def _at_least(evidence: Evidence, noun: str, number: int) -> bool:
    return evidence.counts.get(noun, (0, 0))[0] >= number


def _is_confirmed(claim: str, noun: str, evidence: Evidence) -> bool:
    """Return whether the evidence confirms a colour, count or quantifier of a noun."""
    if claim in COUNT_WORDS:
        number = COUNT_WORDS[claim]
        return number == 1 or evidence.exact_count(noun) == number
    if claim in QUANTIFIERS:
        needed = 2 if claim in ("couple", "pair", "both") else 3
        return _at_least(evidence, noun, needed) and (needed == 3 or evidence.exact_count(noun) == 2)
    if noun in ROOM_NOUNS:
        return claim in evidence.colours.get("wall", ())
    if claim in ("wooden", "wood"):
        return "brown" in evidence.colours.get(noun, ())
    return {"grey": "gray"}.get(claim, claim) in evidence.colours.get(noun, ())


def _mean_the_same(one: CheckableCaption, other: CheckableCaption) -> bool:
    """Return whether two captions share more than 70 % of their nouns, or more than half and similar word vectors."""
    nouns, others = {noun for noun, _ in one.nouns}, {noun for noun, _ in other.nouns}
    shared = len(nouns & others) / len(nouns | others)
    return shared > 0.7 or (shared > 0.5 and float(one.direction @ other.direction) >= SAME_MEANING)
