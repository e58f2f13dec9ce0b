"""Words: what teachers' classes are called in captions, what kind of place a scene is, and little English grammar."""

import re
from collections.abc import Iterable, Sequence

from training.data.tokenizer import tokenize


def words_in(text: str) -> list[str]:
    """The words of a text: lists of many words are easier to read so."""
    return text.split()


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COLOURS = frozenset(
    words_in(
        """
    white black gray grey brown red green blue yellow orange pink purple beige tan cream gold silver
    """
    )
)

# A noun of captions, and the classes of the teachers any of which shows that it is there. An @ is the detector's.
_SUPPORT = """
animal: @cat @dog @horse @sheep @cow @elephant @bear @zebra @giraffe
apple: @apple
armchair: armchair
backpack: @backpack
banana: @banana
bar: bar
basket: basket
bath: bathtub
bathtub: bathtub
beach: sand,sea
bed: bed @bed
bedspread: bed
bench: bench @bench
bicycle: bicycle @bicycle
bike: bicycle @bicycle
bird: @bird
blanket: blanket bed
blind: blind
boat: boat ship @boat
book: book @book
bookcase: bookcase
bookshelf: bookcase
bottle: bottle @bottle
bowl: @bowl
bridge: bridge
building: building house skyscraper
bus: bus @bus
bush: plant
cabinet: cabinet
cake: @cake
car: car @car
carpet: rug
cat: @cat
ceiling: ceiling
chair: chair armchair swivel_chair @chair
chandelier: chandelier
city: skyscraper
clock: clock @clock
cloud: sky
coffee table: coffee_table
computer: computer monitor crt_screen @laptop
couch: sofa @couch
counter: counter countertop kitchen_island
countertop: countertop kitchen_island
cow: @cow
cup: @cup
cupboard: cabinet
curtain: curtain
cushion: cushion
desk: desk
dining table: @dining_table
dishwasher: dishwasher
dog: @dog
door: door screen_door
drawer: chest_of_drawers
dresser: chest_of_drawers
fan: fan
fence: fence railing
field: field grass
fireplace: fireplace
floor: floor
flower: flower
freezer: refrigerator
fridge: refrigerator @refrigerator
fruit: @banana @apple @orange
furniture: sofa bed chair table armchair
grass: grass field
hill: hill mountain
hood: hood
house: house
island: kitchen_island
keyboard: @keyboard
lake: lake water
lamp: lamp
laptop: @laptop
laptop computer: @laptop
light: light lamp chandelier
microwave: microwave @microwave
mirror: mirror
monitor: monitor crt_screen @television
motorcycle: minibike @motorcycle
mountain: mountain
mouse: @mouse
mug: @cup
ocean: sea
orange: @orange
oven: oven stove @oven
painting: painting
path: path
person: person @person
picture: painting
pillow: pillow cushion
plant: plant flower pot @potted_plant
plate: plate
pole: pole
pool: swimming_pool
pool table: pool_table
potted plant: @potted_plant
poster: poster
rail: railing
range: stove
refrigerator: refrigerator @refrigerator
river: river water
road: road
rock: rock
rug: rug
sand: sand
screen: television_receiver crt_screen monitor @television @laptop
sea: sea
seat: seat chair armchair
shelf: shelf bookcase
ship: ship
shower: shower
shower curtain:
street light:
traffic light: @traffic_light
sidewalk: sidewalk
sink: sink @sink
sky: sky
skyscraper: skyscraper
sofa: sofa @couch
stair: stairs stairway
stool: stool
stove: stove oven @oven
street: road
suitcase: @suitcase
table: table coffee_table desk @dining_table
television: television_receiver @television
tile: floor
toilet: toilet @toilet
towel: towel
tower: tower
train: @train
tree: tree palm
truck: truck @truck
tub: bathtub
tv: television_receiver @television
umbrella: @umbrella
vase: vase @vase
wall: wall
wardrobe: wardrobe
washing machine: washer
water: sea water river lake
window: windowpane
wine glass: @wine_glass
"""

SUPPORT: dict[str, tuple[str, ...]] = {
    noun.strip(): tuple(name.replace("_", " ") for name in re.split(r"[ ,]+", classes.strip()) if name)
    for noun, _, classes in (line.partition(":") for line in _SUPPORT.strip().splitlines())
}

# What a scene's name says about the words for the place.
ROOMS: dict[str, tuple[str, ...]] = {
    "airport terminal": ("airport",),
    "art gallery": ("art gallery",),
    "attic": ("attic",),
    "bar": ("bar",),
    "bathroom": ("bathroom",),
    "bedchamber": ("bedroom",),
    "bedroom": ("bedroom",),
    "bookstore": ("book store", "store"),
    "childs room": ("bedroom",),
    "classroom": ("classroom",),
    "closet": ("closet",),
    "computer room": ("computer room",),
    "conference room": ("conference room",),
    "corridor": ("hallway",),
    "dinette home": ("dining room",),
    "dining room": ("dining room",),
    "dorm room": ("dorm room", "bedroom"),
    "game room": ("game room",),
    "garage indoor": ("garage",),
    "hallway": ("hallway",),
    "home office": ("home office", "office"),
    "hotel room": ("hotel room", "bedroom"),
    "kitchen": ("kitchen",),
    "kitchenette": ("kitchen",),
    "library indoor": ("library",),
    "living room": ("living room",),
    "lobby": ("lobby",),
    "nursery": ("nursery",),
    "office": ("office",),
    "parlor": ("living room",),
    "poolroom home": ("game room",),
    "restaurant": ("restaurant",),
    "restroom indoor": ("restroom", "bathroom"),
    "shoe shop": ("store",),
    "shop": ("store",),
    "staircase": ("staircase",),
    "supermarket": ("grocery store", "store"),
    "waiting room": ("waiting room",),
    "youth hostel": ("bedroom",),
}
ROOM_NOUNS = frozenset(name for names in ROOMS.values() for name in names) | {"room"}

_INDOOR_WORDS = frozenset(
    words_in(
        """
    attic basement bathroom bedroom bedchamber classroom closet corridor galley hallway kitchen kitchenette
    airport gallery shop supermarket bookstore laundromat library lobby nursery office pantry parlor playroom
    restaurant room salon sauna shower staircase sunroom cafeteria bar childs interior indoor home
    """
    )
)
# Closed in, but nobody would call them a room.
_VEHICLES = frozenset({"airplane", "van", "bus", "subway", "ferryboat", "cockpit", "car", "backseat", "frontseat"})
_OUTDOOR_WORDS = frozenset(
    words_in(
        """
    outdoor exterior street road highway facade skyscraper beach coast mountain valley river creek park pasture
    bridge field hill desert castle house garden
    """
    )
)


def indoors_by_name(scene: str) -> bool | None:
    """Whether a scene's name says that it is inside a building; None where it does not say."""
    words = set(scene.split())
    if words & ({"outdoor", "exterior", "building"} | _VEHICLES):
        return False
    if words & _INDOOR_WORDS:
        return True
    return False if words & _OUTDOOR_WORDS else None


_SINGULAR_WITH_S = frozenset({"glass", "dress", "mattress", "bus", "canvas", "compass", "christmas", "gas"})
_NO_ARTICLE = frozenset(
    words_in(
        """
    paper soap tissue clothing furniture toiletries food laundry people bedding jewelry luggage water wood
    """
    )
)
_IRREGULAR = {"knife": "knives", "shelf": "shelves", "person": "people", "mouse": "mice", "child": "children"}
_PAIRS = frozenset({"scissors", "trousers", "pants"})


def is_plural(noun: str) -> bool:
    """Whether the last word of a noun phrase has the form of a plural."""
    last = noun.split()[-1]
    if last in _SINGULAR_WITH_S or last.endswith("ss"):
        return False
    return last.endswith("s") or last in _IRREGULAR.values()


def plural(noun: str) -> str:
    """Of a singular noun phrase."""
    *before, last = noun.split()
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    elif last.endswith(("s", "x", "z", "ch", "sh")):
        last += "es"
    elif last.endswith("y") and last[-2:-1] not in "aeiou":
        last = f"{last[:-1]}ies"
    else:
        last += "s"
    return " ".join((*before, last))


def singular(noun: str) -> str:
    """Of a noun phrase in either number."""
    if not is_plural(noun):
        return noun
    *before, last = noun.split()
    backwards = {many: one for one, many in _IRREGULAR.items()}
    if last in backwards:
        last = backwards[last]
    elif last.endswith("ies"):
        last = f"{last[:-3]}y"
    elif last.endswith(("sses", "xes", "ches", "shes")):
        last = last[:-2]
    else:
        last = last[:-1]
    return " ".join((*before, last))


def with_article(phrase: str) -> str:
    """``a lamp``, ``an oven``; plurals and what cannot be counted stay as they are."""
    head = phrase.split(" of ")[0]
    last = head.split()[-1]
    if last in _PAIRS:
        return f"a pair of {phrase}"
    if is_plural(head) or last in _NO_ARTICLE:
        return phrase
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def listed(phrases: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


PICTURE_OF = re.compile(
    r"^(?:this is |here is |there is )?(?:an? )?(?:black and white )?(?:close up |close-up )?"
    r"(?:photo|picture|image|view|shot)(?: is)? of (?=an? |the )"
)


def plain(sentence: str) -> str:
    """Lower case, single spaces, no full stop, blanks only behind commas."""
    text = re.sub(r"\s+", " ", sentence.lower().replace("\u2019", "'").replace('"', "")).strip()
    text = re.sub(r"\s*,\s*", ", ", text)
    return text.strip(" .,;:!-")


def length(sentence: str) -> int:
    """In words, as the captioner counts them."""
    return len(tokenize(sentence))


def distinct(sentences: Iterable[str], overlap: float = 0.75) -> list[str]:
    """The sentences without those that share most words with one before them."""
    kept: list[tuple[str, frozenset[str]]] = []
    for sentence in sentences:
        words = frozenset(tokenize(sentence)) - _LITTLE_WORDS
        if all(len(words & other) / max(len(words | other), 1) < overlap for _, other in kept):
            kept.append((sentence, words))
    return [sentence for sentence, _ in kept]


_LITTLE_WORDS = frozenset(
    words_in(
        """
    a an the of in on with and to at is are
    """
    )
)
