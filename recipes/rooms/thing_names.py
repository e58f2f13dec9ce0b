"""Names of things: translation of annotators' words (DAQUAR has many spellings) to the words of captions."""

from collections.abc import Collection

from recipes.rooms.phrases import COLOURS, all_known
from training.data.inflection import singular

MAX_WORDS = 4
# An annotator's name for a thing to the word that captions use; empty for things that captions do not mention.
_RENAMED = {
    "bottle of liquid": "bottle",
    "bottle of hand wash liquid": "soap bottle",
    "bottle of soap": "soap bottle",
    "bulb": "light",
    "bunk bed": "bunk bed",
    "carton": "box",
    "comforter": "blanket",
    "cordless phone": "phone",
    "decoration item": "",
    "decorative item": "",
    "decorative plate": "plate",
    "door knob": "",
    "door way": "doorway",
    "drawer knob": "",
    "floor mat": "mat",
    "flower pot": "potted plant",
    "framed certificate": "framed picture",
    "garbage bag": "",
    "garbage bin": "trash can",
    "hot water heater": "",
    "knob": "",
    "light switch": "",
    "machine": "",
    "night stand": "nightstand",
    "object": "",
    "ornamental plant": "plant",
    "photo": "picture",
    "photo frame": "picture",
    "photo stand": "picture",
    "plant pot": "potted plant",
    "racks": "shelves",
    "rack": "shelf",
    "refridgerator": "refrigerator",
    "fridge": "refrigerator",
    "remote control": "remote",
    "shelves": "shelves",
    "sofa": "couch",
    "sofas": "couches",
    "stove burner": "stove",
    "switch": "",
    "tap": "faucet",
    "tea kettle": "kettle",
    "telephone": "phone",
    "thing": "",
    "tissue": "tissue",
    "tissue roll": "roll of paper",
    "tube light": "light",
    "tv": "television",
    "utensil container": "",
    "wall": "",
    "wall decoration": "",
    "wall stand": "",
    "wire": "",
    "scissor": "scissors",
    "toy doll": "doll",
    "washing machine": "washing machine",
}


def name_of(thing: str, known: Collection[str]) -> str:
    """Translate an annotator's name for a thing to the words of captions.

    Args:
        thing: the name as written.
        known: words that captions may use; a misspelt word is not among them.

    Returns:
        The name; empty for things that captions do not mention and for unknown words.
    """
    words = " ".join(thing.lower().replace("_", " ").split())
    words = _RENAMED.get(words, _RENAMED.get(singular(words) if words else "", words))
    fits = words and len(words.split()) <= MAX_WORDS and all_known(words, known)
    return words if fits and not words.isdigit() and words not in COLOURS else ""
