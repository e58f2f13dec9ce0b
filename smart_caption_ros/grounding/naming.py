"""Which class of object a noun names: the one definition of named, missed and supported.

A noun is supported if it names a class; a class is missed if no noun names it. The caption node, the command line and
the coverage benchmark all use this rule. It has no part in coverage itself (SMArT, Eq. 10), which compares word
vectors. Word vectors measure relatedness, not identity (``room`` is close to dining table), so a table of words decides
first.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding.class_words import ClassWords
from smart_caption_ros.grounding.nouns import Noun


def named_class(
    noun: Noun,
    classes: Sequence[str],
    similarities: NDArray[np.floating],
    assigned: int | None,
    support_similarity: float,
    words: ClassWords,
) -> int | None:
    """Decide which class a noun names.

    Of several classes that the noun may name, it names the one that coverage assigned it to, else the most similar one.

    Args:
        noun: of a caption.
        classes: names of K classes.
        similarities: (K,) of the noun to each class, in [0, 1].
        assigned: index of the class that coverage assigned the noun to, if any.
        support_similarity: the smallest similarity with which a noun names a class that the table does not decide.
        words: the table of words.

    Returns:
        Index of the class; None if the noun names none of them.
    """
    allowed = [
        index
        for index, name in enumerate(classes)
        if _may_name(noun, name, float(similarities[index]), support_similarity, words)
    ]
    if not allowed:
        return None
    return assigned if assigned in allowed else max(allowed, key=lambda index: similarities[index])


def _may_name(noun: Noun, class_name: str, similarity: float, support_similarity: float, words: ClassWords) -> bool:
    if similarity == 1.0:  # the class's own name, or a synonym in the user's list
        return True
    verdict = words.verdict(noun.lemma, normalise(class_name))
    return verdict if verdict is not None else 0 < similarity >= support_similarity
