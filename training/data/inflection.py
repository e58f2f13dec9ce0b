"""Inflection of English nouns, by the library inflect."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import inflect

# Singulars that inflect takes for plurals ("a bus" -> "a bu").
_SINGULARS_IN_S = frozenset({"bus", "cactus", "canvas", "christmas", "gas", "iris", "tennis"})


@cache
def _engine() -> "inflect.engine":
    # Imported at first use: it takes two seconds, because inflect's type checks are compiled then.
    import inflect

    return inflect.engine()


@cache
def plural(noun: str) -> str:
    """Return the plural of a singular noun phrase: ``roll of paper`` -> rolls of paper."""
    return str(_engine().plural_noun(noun))


@cache
def singular(noun: str) -> str:
    """Return the singular of a noun phrase in either number."""
    *before, last = noun.split()
    changed = last not in _SINGULARS_IN_S and _engine().singular_noun(last)
    return " ".join((*before, changed or last))


def is_plural(noun: str) -> bool:
    """Return whether the last word of a noun phrase has a singular that differs from it."""
    return singular(noun) != noun
