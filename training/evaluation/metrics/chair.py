"""CHAIR (Rohrbach et al. 2018): objects that a caption names and the picture does not show.

The rules are the published ones: COCO's 80 classes with a list of synonyms, double words such as "hot dog" taken
for one word, "baby elephant" no person, "toilet seat" no chair; an object is in the picture when an instance of its
class is annotated or one of the human captions names it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from training.errors import DataError
from training.evaluation.metrics.metric import Captions, Metric, References, check_same_images, ratio

# Two words that are one word of the list, or no object at all ("train track", "home plate").
DOUBLE_WORDS = (
    "motor bike", "motor cycle", "air plane", "traffic light", "street light", "traffic signal", "stop light",
    "fire hydrant", "stop sign", "parking meter", "suit case", "sports ball", "baseball bat", "baseball glove",
    "tennis racket", "wine glass", "hot dog", "cell phone", "mobile phone", "teddy bear", "hair drier",
    "potted plant", "laptop computer", "home plate", "train track",
)  # fmt: skip
ANIMALS = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "animal", "cub")
REPLACED = {
    **{word: word for word in DOUBLE_WORDS},
    **{f"{age} {animal}": animal for age in ("baby", "adult") for animal in ANIMALS},
    **{f"passenger {vehicle}": vehicle for vehicle in ("jet", "train")},
    "bow tie": "tie",
    "toilet seat": "toilet",
}
IRREGULAR_PLURALS = {"child": "children", "person": "people", "mouse": "mice", "goose": "geese", "ox": "oxen"}
ENDINGS_IN_F = ("calf", "knife")


@dataclass(frozen=True)
class Synonyms:
    """The words that name an object: word, or words with spaces, to class name."""

    class_of: Mapping[str, str]

    @classmethod
    def load(cls, path: Path) -> "Synonyms":
        """Read a list: a class a line, its name first, then its synonyms, with commas between.

        Raises:
            DataError: no such file, or nothing in it.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: the synonym list cannot be read ({error})") from None
        class_of: dict[str, str] = {}
        for line in lines:
            words = [word for part in line.split(",") if (word := part.strip().lower())]
            class_of.update(dict.fromkeys(words, words[0]) if words else {})
        if not class_of:
            raise DataError(f"{path}: no class in the synonym list")
        return cls(class_of)

    @cached_property
    def _singular(self) -> dict[str, str]:
        """Plurals of all words that count, to those words; a word of the list is never taken for a plural."""
        known = {part for term in (*self.class_of, *REPLACED) for part in term.split()}
        return {plural: word for word in sorted(known) for plural in _plurals(word) if plural not in known}

    def mentions(self, caption: str) -> list[str]:
        """Classes of the objects that a caption names, in order, once for every time it names them."""
        words = [self._singular.get(word, word) for word in caption.lower().split()]
        terms = []
        position = 0
        while position < len(words):
            pair = " ".join(words[position : position + 2])
            terms.append(REPLACED.get(pair, words[position]))
            position += 2 if pair in REPLACED else 1
        if "toilet" in terms:
            terms = [term for term in terms if term != "seat"]
        return [self.class_of[term] for term in terms if term in self.class_of]


def _plurals(word: str) -> set[str]:
    if word in IRREGULAR_PLURALS:
        return {IRREGULAR_PLURALS[word], f"{word}s"}
    if word in ENDINGS_IN_F:
        return {f"{word.rstrip('fe')}ves"}
    if word.endswith("man"):
        return {f"{word[:-3]}men"}
    if word.endswith("child"):
        return {f"{word}ren"}
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return {f"{word[:-1]}ies"}
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return {f"{word}es"}
    return {f"{word}s", f"{word}es"} if word.endswith("o") else {f"{word}s"}


def chair(
    candidates: Captions, references: References, objects: Mapping[str, Iterable[str]], synonyms: Synonyms
) -> list[Metric]:
    """CHAIR-i, hallucinated among named objects, and CHAIR-s, captions with one at least among all; low is good.

    Args:
        candidates: a caption of space-joined tokens for each image.
        references: the human captions of the same images, likewise.
        objects: class names of the annotated instances of each of these images.
        synonyms: which words name which class.

    Returns:
        ``chair_i`` (an image whose caption names no object has no value of its own) and ``chair_s``.

    Raises:
        ValueError: candidates and references do not name the same images, an image lacks its entry in ``objects``,
            or a class name is not in the synonym list.
    """
    check_same_images(candidates, references)
    counts = np.zeros((len(candidates), 4))
    for row, (image, caption) in zip(counts, candidates.items(), strict=True):
        if image not in objects:
            raise ValueError(f"no annotated objects for image {image}")
        shown = {_known_class(name, synonyms) for name in objects[image]}
        shown.update(name for reference in references[image] for name in synonyms.mentions(reference))
        named = synonyms.mentions(caption)
        hallucinated = sum(name not in shown for name in named)
        row[:] = hallucinated, len(named), hallucinated > 0, 1
    return [_rate("chair_i", counts[:, :2], ratio), _rate("chair_s", counts[:, 2:], ratio)]


def _rate(name: str, counts: np.ndarray, combine: Callable[[np.ndarray], np.ndarray]) -> Metric:
    return Metric(name, counts, combine, combine(counts))


def _known_class(name: str, synonyms: Synonyms) -> str:
    if name not in synonyms.class_of:
        raise ValueError(f"the class {name!r} of the annotated objects is not in the synonym list")
    return synonyms.class_of[name]
