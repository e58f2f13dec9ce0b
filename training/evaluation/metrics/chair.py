"""CHAIR (Rohrbach et al. 2018): objects that a caption names and the image does not show.

The rules are the published ones: COCO's 80 classes with a list of synonyms; double words such as "hot dog" count as
one word; "baby elephant" names no person and "toilet seat" no chair; an object is in the image when an instance of its
class is annotated or one of the human captions names it. The published script singularises words by the library
pattern; this module uses inflect.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from training.data.inflection import singular
from training.errors import DataError
from training.evaluation.metrics.metric import Captions, Metric, References, ratio

# Two words that count as one word of the list, or as no object ("train track", "home plate").
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


@dataclass(frozen=True)
class Synonyms:
    """Synonyms of COCO's classes."""

    class_of: Mapping[str, str]
    """Word, or words with spaces between them, to class name."""

    @classmethod
    def load(cls, path: Path) -> "Synonyms":
        """Read a list: one class per line, its name first, then its synonyms, separated by commas.

        Raises:
            DataError: the file is missing or names no class.
        """
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
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
    def _known(self) -> frozenset[str]:
        """Words of the list, which are never treated as plurals."""
        return frozenset(part for term in (*self.class_of, *REPLACED) for part in term.split())

    def mentions(self, caption: str) -> list[str]:
        """Find the classes of the objects that a caption names, in order, one entry per mention."""
        words = [word if word in self._known else singular(word) for word in caption.lower().split()]
        terms = []
        position = 0
        while position < len(words):
            pair = " ".join(words[position : position + 2])
            terms.append(REPLACED.get(pair, words[position]))
            position += 2 if pair in REPLACED else 1
        if "toilet" in terms:
            terms = [term for term in terms if term != "seat"]
        return [self.class_of[term] for term in terms if term in self.class_of]


def chair(
    candidates: Captions, references: References, objects: Mapping[str, Iterable[str]], synonyms: Synonyms
) -> list[Metric]:
    """Compute CHAIR-i, the share of named objects that are hallucinated, CHAIR-s, the share of captions with one, and
    their complements.
    ``objects``: for each image the class names of its annotated instances, all of them in ``synonyms``.

    Returns:
        ``chair_i`` and ``chair_s``, lower is better; ``objects_supported`` = 1 - ``chair_i`` and
        ``captions_supported`` = 1 - ``chair_s``, higher is better. All are in [0, 1]; those of named objects are NaN
        for an image whose caption names no object.
    """
    hallucinated, named = np.zeros((2, len(candidates)))
    for row, (image, caption) in enumerate(candidates.items()):
        shown = {synonyms.class_of[name] for name in objects[image]}
        shown.update(name for reference in references[image] for name in synonyms.mentions(reference))
        mentions = synonyms.mentions(caption)
        hallucinated[row], named[row] = sum(name not in shown for name in mentions), len(mentions)
    wrong, captions = hallucinated > 0, np.ones(len(candidates))
    return [
        _share("chair_i", hallucinated, named),
        _share("chair_s", wrong, captions),
        _share("objects_supported", named - hallucinated, named),
        _share("captions_supported", ~wrong, captions),
    ]


def _share(name: str, part: np.ndarray, whole: np.ndarray) -> Metric:
    counts = np.stack([part, whole], axis=1)
    return Metric(name, counts, ratio, ratio(counts))
