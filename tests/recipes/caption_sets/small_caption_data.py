"""A small data folder for ``python -m recipes.caption_sets``."""

import gzip
import json
from pathlib import Path

from tests.recipes.rooms.small_rooms import make_rooms
from tests.training.small_coco_photographs import make_coco_photographs
from tests.training.small_flickr8k import make_data

CAPTIONS = [
    "A cat is on the grass near a tree.",
    "A cat on the green grass.",
    "A lamp on a table in a room.",
    "Two chairs next to a table in a room.",
    "A brown table with two chairs in a room.",
    "A room with a brown table and two chairs.",
    "A lamp and a book on a table in a room.",
    "A book on a table next to a lamp.",
]
MEASURED = "A horse of the dev part that nobody may retrieve."
SENTENCES = ["The lamp is on the table.", "The book is next to the lamp."]


def make_caption_data(root: Path) -> Path:
    """Write the data folder and return it."""
    make_data(root)
    make_rooms(root)
    make_coco_photographs(root)
    (root / "lexicon").mkdir()
    (root / "lexicon" / "chair_synonyms.txt").write_text("person, man, woman\ncat, kitten\ndog, puppy\nchair\nhorse\n")
    texts = root / "caption_texts"
    texts.mkdir()
    entries = [
        {"coco_id": 0, "sentences": [MEASURED]},  # the number of a dev photograph
        {"coco_id": 500, "sentences": [*CAPTIONS[:3], "A dog sits on a couch."]},  # the last one is said of a dev one
        {"coco_id": 501, "sentences": CAPTIONS[3:]},
    ]
    with gzip.open(texts / "coco_captions_pool.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(entry) + "\n" for entry in entries)
    with gzip.open(texts / "flickr30k_multi30k_en.txt.gz", "wt") as stream:
        stream.write("A man rides a bicycle.\na cat on the green grass\n")
    with gzip.open(texts / "sunspot_sentences.txt.gz", "wt") as stream:
        stream.writelines(f"{sentence}\n" for sentence in SENTENCES)
    said = {"image": "image1.jpg", "sentences": [{"text": sentence} for sentence in SENTENCES]}
    (root / "nyu_rooms" / "spatial_sentences.jsonl").write_text(json.dumps(said) + "\n")
    return root
