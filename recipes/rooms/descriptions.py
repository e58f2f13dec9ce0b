"""Captions from sentences that people wrote about details of a room."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from recipes.rooms.words import (
    NUMERALS,
    PICTURE_OF,
    all_known,
    plain,
    with_article,
    without_repetitions,
    word_count,
    words_in,
)
from training.data.inflection import is_plural

MIN_WORDS, MAX_WORDS = 5, 18
# Words that mark guesses, opinions and comparisons with other photographs.
_HEDGES = re.compile(
    r"\b(i|we|you|your|my|me|he|she|think|looks?|looking|seems?|appears?|maybe|possibly|probably|could|would|might|may|"
    r"not|no|isn't|aren't|doesn't|don't|can't|photo|picture taker|camera|same|other|others|another|they|"
    r"these|those|because|so|too|which|identical|matching|one of)\b"
)
_PLACE = r"(?:room|area|kitchen|bathroom|bedroom|office|attic|place|space|dining room|living room|hallway)"
# "The image shows ..."
_IMAGE_SHOWS = re.compile(
    r"^(?:the|this|that)(?: \w+)? (?:image|photo|picture)(?: (?:is|shows?|contains?|has))(?: of)? "
)
_THERE_IS = re.compile(r"^(?:there|here)(?: is|'s| are| was| were) (?:also )?(?P<what>.+)$")
_THIS_IS = re.compile(
    r"^(?:this|it|that)(?: (?:image|photo|picture))?(?: is|'s| was)(?: of)? (?P<what>(?:an?|the) .+)$"
)
_ROOM_HAS = re.compile(rf"^(?:it|(?:the|this|an?)(?: \w+)? ?{_PLACE})(?: has| with| contains| features) (?P<what>.+)$")
_THING_HAS = re.compile(r"^the (?P<noun>\w+(?: \w+)?) (?:has|have) (?P<what>.+)$")
_IS_COLOURED = re.compile(
    r"^the (?P<noun>\w+(?: \w+)?) (?:is|are) (?:painted |all |a )?"
    r"(?P<what>\w+(?: and \w+)?)(?: colou?red| in colou?r)?$"
)
_IS_PLACED = re.compile(
    r"^(?P<what>.+?) (?:is|are|was|were|sits|sit|hangs|hang|stands|stand) (?:\w+ed |hanging |sitting |standing )?"
    r"(?P<where>(?:on|in|under|above|below|near|by|next to|beside|behind|between|over|against|in front of|at) .+)$"
)
_IN_ROOM = re.compile(rf" (?:in|of|inside) (?:the|this) {_PLACE}\b.*$")
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|sits|stands|hangs|its|it's|that|can be seen|it (?!$))\b")
_SIDES = re.compile(
    r"\b(?:on|to|in|at) (?:the|its) (?:far |upper |lower )?(?:bottom |top )?(?:left|right)(?: hand)?"
    r"(?: side| corner| wall)?(?: of .*)?$"
)
_ADJECTIVES = frozenset(
    words_in(
        """
    white black gray grey brown red green blue yellow orange pink purple beige tan wooden tiled tile marble wood
    round large small big tall carpeted glass leather metal
    """
    )
)
_NUMBER = re.compile(r"\b\d\b")
_DIGITS = {str(number): word for number, word in enumerate(NUMERALS) if number < 10}
_SPELLINGS = {
    "livinroom": "living room",
    "livingroom": "living room",
    "bunkbed": "bunk bed",
    "ia": "is a",
    "thre": "there",
}


def captions_from_descriptions(descriptions: Sequence[str], rooms: Sequence[str], known: Collection[str]) -> list[str]:
    """Rewrite sentences about details as noun phrases and join them with the name of the place.

    Args:
        descriptions: the sentences as written, all about one photograph.
        rooms: names for the place, best first; none for a place that is not inside a building.
        known: words that captions may use; sentences with other words (misspelt or rare ones) are dropped.

    Returns:
        Captions of ``MIN_WORDS`` to ``MAX_WORDS`` words in lower case, the most informative first.
    """
    details: list[str] = []
    whole: list[str] = []
    for sentence in descriptions:
        text = _cleaned(sentence)
        if not text or _HEDGES.search(text) or not all_known(text, known):
            continue
        if (phrase := _as_phrase(text)) is not None:
            (whole if re.match(rf"^an? (?:\w+ ){{0,3}}{_PLACE}\b", phrase) else details).append(phrase)
        elif re.match(r"^(?:an?|two|three|four|several) .+\b(?:is|are|sits|sit|hangs|has|have)\b", text):
            whole.append(text)
    found = [text for text in whole if word_count(text) >= MIN_WORDS]
    if rooms:
        name = with_article(rooms[0])
        named = (text for text in whole if word_count(text) < 7 and rooms[0] in text and " with " not in text)
        opening = next(named, name)
        found += [f"{opening} with {a} and {b}" for a, b in pairwise(details) if " with " not in a + b]
        found += [f"{opening} with {detail}" for detail in details if " with " not in detail]
    found += [detail for detail in details if word_count(detail) >= 6]
    return without_repetitions([text for text in found if MIN_WORDS <= word_count(text) <= MAX_WORDS], overlap=0.65)


def _cleaned(sentence: str) -> str:
    text = plain(sentence)
    text = " ".join(_SPELLINGS.get(word, word) for word in text.split())
    text = _NUMBER.sub(lambda match: _DIGITS[match.group()], text)
    text = PICTURE_OF.sub("", text)
    text = _IMAGE_SHOWS.sub("", re.sub(r"\balso \b", "", text))
    text = re.sub(r"^(?:on|to|in|at) the (?:left|right|back|center|middle|corner)[^,]*, ", "", text)
    return text.strip()


def _as_phrase(text: str) -> str | None:
    """Rewrite a sentence as a noun phrase; None where it matches no known pattern."""
    for pattern in (_THERE_IS, _THIS_IS, _ROOM_HAS):
        if match := pattern.match(text):
            return _phrase(match["what"])
    if match := _IS_COLOURED.match(text):
        adjectives = match["what"].split(" and ")
        if all(adjective in _ADJECTIVES for adjective in adjectives):
            return with_article(f"{match['what']} {match['noun']}")
        return None
    if match := _THING_HAS.match(text):
        return _phrase(f"{with_article(match['noun'])} with {match['what']}")
    if match := _IS_PLACED.match(text):
        return _phrase(f"{match['what']} {match['where']}")
    if re.match(rf"^(?:an?|two|three|four|several|{'|'.join(sorted(_ADJECTIVES))}) ", text):
        return _phrase(text)
    return None


def _phrase(text: str) -> str | None:
    """Make a noun phrase indefinite and remove positions in the room; None if it has a verb."""
    text = _SIDES.sub("", _IN_ROOM.sub("", text)).strip(" ,")
    text = re.sub(r" (?:here|sitting|standing|hanging|as well|too|in it)$", "", text)
    if not text or _VERB.search(text):
        return None
    if text.startswith("the "):
        text = with_article(text[4:].strip()) if not is_plural(_head(text[4:])) else text[4:]
    return text if word_count(text) >= 2 else None


def _head(text: str) -> str:
    """Cut a noun phrase before its first preposition."""
    return re.split(
        r" (?:on|in|under|above|below|near|by|next|beside|behind|between|over|against|at|with|of|to) ", text
    )[0]
