"""Tables of the noun lemmatiser that ships with the package.

The lemmatiser is spaCy's, so that robots need no other library; it reads rules, exceptions and an index of singulars.
"""

from collections import Counter
from collections.abc import Iterable

from spacy.lookups import Lookups

from recipes.lexicon.tagged_corpora import Sentence

# Suffix and replacement. Of the forms that the index contains the last one wins, so a known singular in -s is kept.
LEMMA_RULES = [
    ["ss", "ss"], ["us", "us"], ["is", "is"], ["s", ""], ["ses", "s"], ["ves", "f"], ["ves", "fe"], ["xes", "x"],
    ["zes", "z"], ["ches", "ch"], ["shes", "sh"], ["oes", "o"], ["men", "man"], ["ies", "y"], ["s", "s"],
]  # fmt: skip
LEMMA_EXCEPTIONS = {
    "children": "child", "people": "person", "geese": "goose", "mice": "mouse", "feet": "foot", "teeth": "tooth",
    "oxen": "ox", "calves": "calf", "knives": "knife", "leaves": "leaf", "loaves": "loaf", "wolves": "wolf",
    "shelves": "shelf", "halves": "half", "wives": "wife", "lives": "life", "elves": "elf", "scarves": "scarf",
    "hooves": "hoof", "men": "man", "women": "woman", "buses": "bus", "axes": "axe", "skis": "ski", "taxis": "taxi",
    "shoes": "shoe", "horses": "horse", "houses": "house", "vases": "vase", "noses": "nose", "roses": "rose",
    "nurses": "nurse", "purses": "purse", "movies": "movie", "cookies": "cookie", "brownies": "brownie",
    "hoodies": "hoodie", "doggies": "doggie", "veggies": "veggie", "smoothies": "smoothie", "selfies": "selfie",
    "goalies": "goalie", "caves": "cave", "waves": "wave", "gloves": "glove", "stoves": "stove", "sleeves": "sleeve",
    "olives": "olive", "canoes": "canoe", "toes": "toe", "headaches": "headache", "bison": "bison",
    # Plural in form only: the form without -s is not a word, or another word.
    **{word: word for word in ("scissors", "jeans", "pants", "shorts", "sunglasses", "goggles", "binoculars",
                               "headphones", "clothes", "overalls", "tights", "pajamas", "tongs", "news", "gas",
                               "lens", "tennis", "gymnastics", "canvas", "christmas", "grass", "glass", "dress",
                               "bus", "cactus", "octopus", "circus", "sheep", "fish", "woods", "series")},
}  # fmt: skip


def lemma_tables(sentences: Iterable[Sentence]) -> Lookups:
    """Build the tables of spaCy's rule lemmatiser: rules, exceptions, and an index of the singulars that occur.

    Args:
        sentences: to count nouns in.
    """
    nouns = Counter(word.lower() for sentence in sentences for word, part in sentence if part == "NOUN")
    index = {
        word
        for word, count in nouns.items()
        if word.isalpha() and (not word.endswith("s") or word.endswith(("ss", "us"))) and count > 1
    }
    index -= {word for word in LEMMA_EXCEPTIONS if LEMMA_EXCEPTIONS[word] != word}
    tables = Lookups()
    tables.add_table("lemma_rules", {"noun": LEMMA_RULES})
    tables.add_table("lemma_exc", {"noun": {word: [lemma] for word, lemma in LEMMA_EXCEPTIONS.items()}})
    tables.add_table("lemma_index", {"noun": sorted(index | set(LEMMA_EXCEPTIONS.values()))})
    return tables
