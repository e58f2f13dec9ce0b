"""Names of things in captions and in exhaustive lists, and which of them may stand for each other.

``thing_names.txt`` has groups of names that may stand for each other, and names from which nothing is concluded. The
last word of a compound decides where the compound has no group of its own: an "office chair" is a chair.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from training.data.inflection import singular
from training.data.tokenizer import tokenize

NAMES = Path(__file__).with_name("thing_names.txt")
MOST_WORDS = 3
"""Words of the longest name that is looked for in a caption."""


class Things:
    """The names of things that are judged, and their groups."""

    def __init__(self, names: Iterable[str], judge_all: bool = False) -> None:
        """
        Args:
            names: singular nouns, such as all those of exhaustive lists.
            judge_all: judge also the nouns from which nothing is concluded ("night", "side"), as a reward has to: a
                captioner that may name them for nothing ends its sentences in them.
        """
        self._groups: dict[str, frozenset[int]] = {}
        kinds: dict[str, frozenset[str]] = {}
        for number, line in enumerate(NAMES.read_text(encoding="utf-8").splitlines()):
            kind, colon, rest = line.rpartition(": ")
            group = frozenset(rest.split(", "))
            if colon:
                kinds[kind] = group
            elif not line.startswith("#"):
                self._groups |= {name: self._groups.get(name, frozenset()) | {number} for name in group}
        self._places, self._colours, unjudged = kinds["places"], kinds["colours"], kinds["not judged"]
        self._not_judged = frozenset[str]() if judge_all else unjudged
        names_and_groups = frozenset(names) | self._groups.keys() | self._places | unjudged
        self._known = names_and_groups - self._not_judged - kinds["actions"]

    @classmethod
    def of_lists(cls, lists: Iterable[Sequence[str]], least: int = 5, judge_all: bool = False) -> "Things":
        """Judge the names that occur ``least`` times in the lists, and those that have a group."""
        counts = Counter(name for names in lists for name in names)
        return cls((name for name, count in counts.items() if count >= least), judge_all)

    def named(self, caption: str) -> list[str]:
        """Find the things that a caption names, in order, each name once.

        Of nouns that follow each other the last one counts, unless they are one name: a "metal shelf" and a "kitchen
        shelf" are shelves, a "shower curtain" is a shower curtain.
        """
        return list(dict.fromkeys(name for name, _ in self._mentions(caption)))

    def coloured(self, caption: str) -> list[tuple[str, str]]:
        """Find the colours that a caption gives to things, in order: ("red", "chair") of "a red wooden chair"."""
        return [(colour, name) for name, colours in self._mentions(caption) for colour in colours]

    def _mentions(self, caption: str) -> list[tuple[str, list[str]]]:
        """Find the things that a caption names, in order, and the colours within the two words before each."""
        written = tokenize(caption)
        words = [singular(word) for word in written]
        found: list[tuple[int, int, str]] = []
        position = 0
        while position < len(words):
            if written[position + 1 : position + 2] == ["'s"] or words[max(position - 1, 0)] in ("no", "without"):
                position += 1  # "a child's drawing" shows no child, and "a room without windows" no window
                continue
            for length in range(min(MOST_WORDS, len(words) - position), 0, -1):
                name = " ".join(words[position : position + length])
                if name in self._known or (length == 1 and words[position] in self._not_judged):
                    if found and found[-1][1] == position:
                        found.pop()
                    found.append((position, position + length, name))
                    position += length
                    break
            else:
                position += 1
        ends = [0, *(end for _, end, _ in found)]
        return [
            (name, [word for word in words[max(before, start - 2) : start] if word in self._colours])
            for before, (start, _, name) in zip(ends, found, strict=False)
            if name in self._known
        ]

    def terms(self, name: str) -> frozenset[object]:
        """Return what a name has in common with names that may stand for it: itself, its last word, their groups."""
        last = name.rpartition(" ")[2]
        return frozenset({name}) | self._groups.get(name, frozenset({last}) | self._groups.get(last, frozenset()))

    def shown(self, things: Iterable[str], captions: Iterable[str]) -> frozenset[object]:
        """Collect the terms of all things in a list and in captions, and the pairs of colour and term of captions."""
        mentions = [mention for caption in captions for mention in self._mentions(caption)]
        names = {*map(singular, things), *(name for name, _ in mentions)}
        terms = frozenset(term for name in names for term in self.terms(name))
        return terms | {(colour, term) for name, colours in mentions for colour in colours for term in self.terms(name)}

    def judge(self, caption: str, shown: frozenset[object]) -> dict[str, bool]:
        """Return the things that a caption names, and whether an image with the terms ``shown`` shows them."""
        unjudged = frozenset[str]() if self._places & shown else self._places
        return {name: bool(self.terms(name) & shown) for name in self.named(caption) if name not in unjudged}

    def absent(self, caption: str, shown: frozenset[object]) -> list[str]:
        """Return the things that a caption names and an image with the terms ``shown`` does not show."""
        return [name for name, is_there in self.judge(caption, shown).items() if not is_there]

    def miscoloured(self, caption: str, shown: frozenset[object]) -> list[tuple[str, str]]:
        """Return the colours, each with its thing, that are wrong for an image with the terms ``shown``: its captions
        give the thing another colour, or the colour to other things.
        """
        coloured = {pair for pair in shown if isinstance(pair, tuple)}
        found = []
        for colour, name in self.coloured(caption):
            terms = self.terms(name) & shown
            of_it = {given for given, term in coloured if term in terms}
            if terms and colour not in of_it and (of_it or any(given == colour for given, _ in coloured)):
                found.append((colour, name))
        return found
