"""The words of a caption with the style in which an overlay shows them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.captioning.vocabulary import word_starts
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.grounding.named_objects import GroundedNoun
from smart_caption_ros.viewing.colours import HIGHLIGHTS, WHITE, Rgb, clip, fade
from smart_caption_ros.viewing.text import printable

MAX_WORD_BOXES = 3

# Function words, numbers and colours, whose regions of highest attention say little.
_FUNCTION_WORDS = """
a an the this that these those some any all both each another other its his her their of in on at by to from
with without into onto over under through near next behind front beside between across along against around
up down out off and or but while as for is are be being been was were has have there it he she they them him
who which what where very one two three four five six several many few lot group pair black white red blue
green yellow orange brown grey gray pink purple tan
"""
_NOT_CONTENT = frozenset(_FUNCTION_WORDS.split())


@dataclass(frozen=True)
class StyledWord:
    """A word as it is drawn.

    Attributes:
        text: the word in characters of the font, with a clitic that follows it.
        colour: the colour of its letters, its underline and its box.
        probability: length of the bar under the word, 0 to 1; None draws no bar.
        box_xyxy: region of the frame to mark, pixels; None marks none.
        continues: whether the underline continues to the next word of the line.
    """

    text: str
    colour: Rgb
    probability: float | None = None
    box_xyxy: Box | None = None
    underlined: bool = False
    continues: bool = False


def class_colours(objects: Sequence[DetectedObject], nouns: Sequence[GroundedNoun]) -> dict[str, Rgb]:
    """Assign a colour to every class that a noun names, in the order of the nouns."""
    named = [objects[noun.object_index].class_name for noun in nouns if noun.object_index is not None]
    return {name: HIGHLIGHTS[place % len(HIGHLIGHTS)] for place, name in enumerate(dict.fromkeys(named))}


def styled_words(
    caption: Caption, nouns: Sequence[GroundedNoun] = (), colours: Mapping[str, Rgb] | None = None
) -> list[StyledWord]:
    """Style the words of a caption, which are the greyer the lower their probability.

    Args:
        colours: the colour of each named class, from :func:`class_colours`, in which a noun that names an object is
            underlined. None if the named classes are unknown: then a bar shows the probability of each word, and the
            first content words mark the regions that they attended to.
    """
    underlines: dict[int, tuple[Rgb, bool]] = {}  # word index -> colour, whether the underline continues
    for noun in nouns:
        if colours is not None and noun.object_index is not None:
            colour = colours[caption.objects[noun.object_index].class_name]
            last = noun.word_index + len(noun.text.split()) - 1
            underlines |= {place: (colour, place < last) for place in range(noun.word_index, last + 1)}
    words: list[StyledWord] = []
    marked: set[str] = set()
    tokens: list[tuple[str, float, Box | None]] = [
        (word.text, word.log_probability, word.box_xyxy) for word in caption.words
    ] or [(word, 0.0, None) for word in caption.text.split()]
    starts = word_starts([token for token, _, _ in tokens], caption.text)
    for place, (token, log_probability, box) in enumerate(tokens):
        if words and caption.text[starts[place] - 1 : starts[place]] != " ":  # a clitic ("'s") or a comma
            words[-1] = replace(words[-1], text=words[-1].text + printable(token))
            continue
        text, probability = printable(token), clip(math.exp(min(log_probability, 0.0)))
        colour, continues = underlines.get(place, (WHITE, False))
        word = StyledWord(text, fade(colour, probability), underlined=place in underlines, continues=continues)
        if colours is None and caption.words:
            word = replace(word, probability=probability)
            is_content = text.isalpha() and text.lower() not in _NOT_CONTENT
            if len(marked) < MAX_WORD_BOXES and is_content and text not in marked:
                word = replace(word, colour=fade(HIGHLIGHTS[len(marked)], probability), box_xyxy=box)
                marked.add(text)
        words.append(word)
    return words
