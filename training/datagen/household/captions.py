"""Sentences about a frame, from a grammar over what it shows; each is true by the scene's construction.

A frame is first reduced to groups of things (two red cups on the table) and the relations between them; sentences are
then drawn from a handful of patterns, the large and central things first. Nothing is named of which too little shows.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from training.datagen.household.camera import Camera, Pose
from training.datagen.household.ground_truth import Visible
from training.datagen.household.scene import Item, Scene

CAPTIONS_PER_FRAME = 5

# What people call things, the first most often, with their plurals.
NOUNS: dict[str, tuple[tuple[str, str], ...]] = {
    "bottle": (("bottle", "bottles"),),
    "cup": (("cup", "cups"), ("mug", "mugs")),
    "knife": (("knife", "knives"),),
    "bowl": (("bowl", "bowls"),),
    "wine glass": (("wine glass", "wine glasses"), ("glass", "glasses")),
    "fork": (("fork", "forks"),),
    "spoon": (("spoon", "spoons"),),
    "banana": (("banana", "bananas"),),
    "apple": (("apple", "apples"),),
    "orange": (("orange", "oranges"),),
    "cake": (("cake", "cakes"),),
    "potted plant": (("potted plant", "potted plants"), ("plant", "plants"), ("house plant", "house plants")),
    "mouse": (("mouse", "mice"), ("computer mouse", "computer mice")),
    "keyboard": (("keyboard", "keyboards"),),
    "laptop": (("laptop", "laptops"), ("laptop computer", "laptop computers")),
    "cell phone": (("cell phone", "cell phones"), ("phone", "phones")),
    "book": (("book", "books"),),
    "clock": (("clock", "clocks"),),
    "chair": (("chair", "chairs"),),
    "dining table": (("table", "tables"), ("dining table", "dining tables")),
    "couch": (("couch", "couches"), ("sofa", "sofas")),
    "bed": (("bed", "beds"),),
    "toilet": (("toilet", "toilets"),),
    "television": (("television", "televisions"), ("tv", "tvs")),
    "computer monitor": (
        ("computer monitor", "computer monitors"),
        ("monitor", "monitors"),
        ("computer screen", "computer screens"),
    ),
    "microwave": (("microwave", "microwaves"),),
    "toaster": (("toaster", "toasters"),),
    "refrigerator": (("refrigerator", "refrigerators"), ("fridge", "fridges")),
    "oven": (("oven", "ovens"), ("stove", "stoves")),
    "sink": (("sink", "sinks"),),
    "person": (("person", "people"),),
    "window": (("window", "windows"),),
    "door": (("door", "doors"),),
    "desk": (("desk", "desks"),),
    "coffee table": (("coffee table", "coffee tables"),),
    "nightstand": (("nightstand", "nightstands"),),
    "cabinet": (("cabinet", "cabinets"),),
    "shelf": (("bookshelf", "bookshelves"), ("shelf", "shelves")),
    "counter": (("counter", "counters"), ("kitchen counter", "kitchen counters")),
    "cupboard": (("cupboard", "cupboards"),),
    "rug": (("rug", "rugs"),),
    "lamp": (("lamp", "lamps"),),
    "picture": (("picture", "pictures"), ("framed picture", "framed pictures")),
    "curtain": (("curtain", "curtains"),),
    "mirror": (("mirror", "mirrors"),),
    "bathtub": (("bathtub", "bathtubs"),),
    "towel": (("towel", "towels"),),
    "plate": (("plate", "plates"),),
    "vase": (("vase", "vases"),),
    "pot": (("pot", "pots"),),
}

# What makes a room recognisable. Elsewhere it is only "a room".
_TYPICAL = {
    "kitchen": {"refrigerator", "oven", "sink", "microwave", "counter"},
    "living room": {"couch", "coffee table"},
    "bedroom": {"bed"},
    "office": {"desk"},
    "dining room": {"dining table"},
    "bathroom": {"toilet", "bathtub", "sink"},
}
_ROOM_WORDS = {"office": ("office", "home office", "study")}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
# Never the first thing that a person mentions.
_MINOR = {"picture", "curtain", "cupboard", "door", "window", "lamp", "counter", "rug", "mirror"}
_MINOR_WEIGHT = 0.35


@dataclass(frozen=True)
class Thing:
    """An item that shows enough to be named."""

    item: Item
    share: float
    """Of the frame's pixels."""
    box: tuple[float, float, float, float]
    """Left, top, right, bottom in pixels, exclusive."""
    depth: float
    """Metres from the camera's plane to its middle."""
    salience: float

    @property
    def noun(self) -> str:
        return self.item.shape.noun or self.item.shape.name


@dataclass(frozen=True)
class Group:
    """Things of one kind in one place: what a noun phrase names."""

    things: tuple[Thing, ...]
    exact: bool
    """Whether the frame shows no further one in the same place, so that they can be counted."""

    @property
    def noun(self) -> str:
        return self.things[0].noun

    @property
    def support(self) -> int | None:
        return self.things[0].item.support

    @property
    def salience(self) -> float:
        best = max(thing.salience for thing in self.things)
        return best + 0.3 * (sum(thing.salience for thing in self.things) - best)


@dataclass
class View:
    """What a frame shows, in the terms of its captions."""

    room: str
    floor: str
    wall: str
    night: bool
    groups: list[Group]
    """Most salient first."""
    at_wall: set[int]
    """Items that stand with their back to a wall."""
    by_item: dict[int, Group] = field(default_factory=dict)

    def on(self, group: Group) -> list[Group]:
        """Groups that stand on one single thing."""
        if len(group.things) > 1:
            return []
        return [other for other in self.groups if other.support == group.things[0].item.id]


class CaptionWriter:
    """Writes the captions of a scene's frames."""

    def __init__(self, scene: Scene, camera: Camera) -> None:
        self._scene, self._camera = scene, camera
        self._hulls: dict[int, NDArray[np.float64]] = {}

    def write(self, pose: Pose, visible: Mapping[int, Visible], rng: np.random.Generator) -> list[str]:
        """Five different sentences about a frame."""
        view = self.view(pose, visible)
        captions: list[str] = []
        for _ in range(40):
            sentence = _sentence(view, rng)
            if sentence not in captions:
                captions.append(sentence)
            if len(captions) == CAPTIONS_PER_FRAME:
                return captions
        for sentence in _plain_sentences(view):
            if sentence not in captions and len(captions) < CAPTIONS_PER_FRAME:
                captions.append(sentence)
        return captions

    def view(self, pose: Pose, visible: Mapping[int, Visible]) -> View:
        """Groups of what shows enough, and where they are."""
        things = [
            thing for number, seen in visible.items() if (thing := self._thing(self._scene.item(number), seen, pose))
        ]
        hidden: dict[tuple[str, int | None], int] = defaultdict(int)
        for number in visible:
            item = self._scene.item(number)
            hidden[item.shape.noun or item.shape.name, item.support] += 1
        places: dict[tuple[str, int | None], list[Thing]] = defaultdict(list)
        for thing in things:
            places[thing.noun, thing.item.support].append(thing)
        groups = [Group(tuple(found), len(found) == hidden[place]) for place, found in places.items()]
        groups.sort(key=lambda group: -group.salience)
        typical = _TYPICAL[self._scene.room.kind] & {group.noun for group in groups}
        room = self._scene.room
        at_wall = {thing.item.id for thing in things if thing.item.pose == "floor" and self._stands_at_wall(thing.item)}
        night = not self._scene.lighting.day
        # Tiles cover a part of the wall, the paint another: only what holds for both is said.
        wall = "tiled wall" if room.tiled_wall is not None else f"{room.wall_colour} wall"
        view = View(room.kind if typical else "room", room.floor_kind, wall, night, groups, at_wall)
        view.by_item = {thing.item.id: group for group in groups for thing in group.things}
        return view

    def _thing(self, item: Item, seen: Visible, pose: Pose) -> Thing | None:
        """The item as a thing to be named; None where too little of it shows, or it has no name."""
        if (item.shape.noun or item.shape.name) not in NOUNS:
            return None
        frame = self._camera.width * self._camera.height
        share = seen.pixels / frame
        whole, inside = self._outline_areas(item, pose)
        if (
            share < 0.0015
            or (share < 0.03 and (seen.pixels < 0.3 * inside or inside < 0.4 * whole))
            or seen.pixels < 0.1 * inside
        ):
            return None
        x, y = (
            (seen.left + seen.right + 1) / 2 / self._camera.width - 0.5,
            (seen.top + seen.bottom + 1) / 2 / self._camera.height - 0.5,
        )
        salience = np.sqrt(seen.box_area / frame) * np.exp(-1.5 * (x * x + y * y))
        if item.shape.name in _MINOR:
            salience *= _MINOR_WEIGHT
        depth = float(self._camera.to_view(pose, item.centre[None])[0, 2])
        return Thing(item, share, (seen.left, seen.top, seen.right + 1, seen.bottom + 1), depth, float(salience))

    def _stands_at_wall(self, item: Item) -> bool:
        low, high = item.boxes().hull()
        return bool(min(*low[:2], self._scene.room.width - high[0], self._scene.room.depth - high[1]) < 0.08)

    def _outline_areas(self, item: Item, pose: Pose) -> tuple[float, float]:
        """Pixels of the item's convex outline if nothing hid it: on an endless frame, and inside the frame there is."""
        if item.id not in self._hulls:
            points = np.concatenate([part.vertices for part in item.shape.parts])
            self._hulls[item.id] = item.to_world(points[ConvexHull(points, qhull_options="QJ").vertices])
        outline = cv2.convexHull(self._camera.project(pose, self._hulls[item.id]).clip(-1e4, 1e4).astype(np.float32))
        width, height = self._camera.width, self._camera.height
        frame = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
        return float(cv2.contourArea(outline)), float(cv2.intersectConvexConvex(outline, frame)[0])


def _article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _attribute(group: Group, rng: np.random.Generator, chance: float) -> str:
    """A colour or a material that all things of a group share, now and then."""
    if rng.random() > chance:
        return ""
    options = []
    for words in (
        {thing.item.shape.colour for thing in group.things},
        {thing.item.shape.material for thing in group.things},
    ):
        if len(words) == 1 and (word := words.pop()):
            options.append(word)
    options = [word for word in options if not (word == "orange" and group.noun == "orange")]
    return str(rng.choice(options)) if options else ""


def _noun_phrase(group: Group, rng: np.random.Generator, *, chance: float = 0.5) -> str:
    if group.noun == "person":
        return _people(group, rng)
    names = NOUNS[group.noun]
    weights = np.array([2.0, *[1.0] * (len(names) - 1)])
    singular, plural = names[int(rng.choice(len(names), p=weights / weights.sum()))]
    attribute = _attribute(group, rng, chance)
    count = len(group.things)
    noun = " ".join(word for word in (attribute, singular if count == 1 or group.noun == "counter" else plural) if word)
    if group.noun == "counter":
        # The units of a fitted kitchen are one counter.
        return _article(noun)
    if count == 1:
        if group.noun == "banana" and len(group.things[0].item.shape.parts) > 3:
            return f"a bunch of {plural}"
        return _article(noun)
    if group.noun == "book" and count > 4:
        return str(rng.choice([f"a row of {noun}", f"several {noun}", f"many {noun}", f"a lot of {noun}"]))
    if not group.exact or count >= len(_NUMBERS) or (count > 3 and rng.random() < 0.5):
        return f"{rng.choice(['some', 'several'] if count > 2 else ['some'])} {noun}"
    return f"{_NUMBERS[count]} {noun}"


def _people(group: Group, rng: np.random.Generator) -> str:
    colour = group.things[0].item.shape.colour
    if len(group.things) > 1:
        return f"{_NUMBERS[len(group.things)]} people"
    draw = rng.random()
    if draw < 0.35:
        return "a person"
    return f"a person in a {colour} shirt" if draw < 0.7 else f"a person wearing a {colour} top"


def _join(phrases: Sequence[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _is_plural(group: Group) -> bool:
    return len(group.things) > 1 and group.noun != "counter"


def _gap(a: Thing, b: Thing) -> float:
    """Metres between the boxes around two things, seen from above."""
    (low_a, high_a), (low_b, high_b) = a.item.boxes().hull(), b.item.boxes().hull()
    return float(np.linalg.norm(np.maximum(0, np.maximum(low_a[:2] - high_b[:2], low_b[:2] - high_a[:2]))))


def _relations(group: Group, view: View) -> list[tuple[tuple[str, ...], Group, float]]:
    """True relations of a group to others: ways to say it, the other group, and how likely one would say it."""
    found: list[tuple[tuple[str, ...], Group, float]] = []
    carrier = view.by_item.get(group.support) if group.support is not None else None
    if carrier is not None and (len(carrier.things) == 1 or carrier.noun == "counter"):
        words = ("on the sill of",) if carrier.noun == "window" else ("on", "on", "on top of", "sitting on")
        found.append((words, carrier, 4.0))
    if len(group.things) > 1:
        return found
    mine = group.things[0]
    for other in view.groups:
        if len(other.things) == 1 and other.noun != group.noun and other is not carrier:
            found += [(words, other, weight) for words, weight in _between(mine, other.things[0])]
    return found


def _between(mine: Thing, theirs: Thing) -> list[tuple[tuple[str, ...], float]]:
    """How one single thing lies to another, in the room and as the camera sees it."""
    found: list[tuple[tuple[str, ...], float]] = []
    hung = mine.item.pose == "wall", theirs.item.pose == "wall"
    level = mine.item.support == theirs.item.support
    flat = "rug" in (mine.noun, theirs.noun)
    if level and not any(hung) and not flat and _gap(mine, theirs) < (0.2 if mine.item.support is not None else 0.5):
        found.append((("next to", "beside", "near"), 2.0))
    if level and not any(hung) and not flat and mine.item.support is None:
        overlap = min(mine.box[2], theirs.box[2]) - max(mine.box[0], theirs.box[0])
        nearer = 0.4 < theirs.depth - mine.depth < 2.0 and mine.box[3] > theirs.box[3]
        if overlap > 0.5 * (mine.box[2] - mine.box[0]) and nearer:
            found.append((("in front of",), 2.0))
    if theirs.noun == "window" and mine.item.support is None and not hung[0] and not flat and _gap(mine, theirs) < 0.4:
        found.append((("next to", "near", "by"), 2.0))
    if mine.noun in ("clock", "picture", "mirror") and hung == (True, False) and _gap(mine, theirs) < 0.1:
        middle = (mine.box[0] + mine.box[2]) / 2
        if theirs.box[0] < middle < theirs.box[2] and mine.box[3] <= theirs.box[1] + 4:
            found.append((("above", "on the wall above"), 3.0))
    if level and not flat and hung[0] == hung[1] and abs(mine.depth - theirs.depth) < 1.0:
        if mine.box[2] < theirs.box[0]:
            found.append((("to the left of",), 0.5))
        elif mine.box[0] > theirs.box[2]:
            found.append((("to the right of",), 0.5))
    return found


class _Sentence:
    """A sentence in the making: what it says and which groups it has named."""

    def __init__(self, view: View, rng: np.random.Generator) -> None:
        self.view, self.rng = view, rng
        self.named: list[Group] = []

    def choose(self, *options: str) -> str:
        return str(self.rng.choice(options))

    def phrase(self, group: Group, chance: float = 0.5) -> str:
        self.named.append(group)
        return _noun_phrase(group, self.rng, chance=chance)

    def lead(self) -> Group:
        """The group to begin with: mostly the most salient one."""
        top = self.view.groups[:3]
        weights = np.array([group.salience for group in top]) ** 2.5
        return top[int(self.rng.choice(len(top), p=weights / weights.sum()))]

    def others(self, count: int) -> list[Group]:
        """Further groups, salient ones first, one of a noun, none that was named."""
        nouns = {group.noun for group in self.named}
        rest = []
        for group in self.view.groups:
            if group.noun not in nouns and (group.support is None or self.rng.random() < 0.5):
                rest.append(group)
                nouns.add(group.noun)
        return rest[:count]

    def related(self, group: Group, *, always: bool = False) -> str:
        """A noun phrase and what it stands on, next to or against, if anything."""
        phrase = self.phrase(group)
        relations = [
            (words, other, weight) for words, other, weight in _relations(group, self.view) if other not in self.named
        ]
        if relations and (always or self.rng.random() < 0.8):
            weights = np.array([weight for _, _, weight in relations])
            words, other, _ = relations[int(self.rng.choice(len(relations), p=weights / weights.sum()))]
            return f"{phrase} {self.choose(*words)} {self.phrase(other, 0.35)}"
        if len(group.things) == 1 and group.things[0].item.id in self.view.at_wall and self.rng.random() < 0.4:
            return f"{phrase} against {_article(self.view.wall)}"
        return phrase

    def room(self) -> str:
        return self.choose(*_ROOM_WORDS.get(self.view.room, (self.view.room,)))


def _with_load(sentence: _Sentence) -> str | None:
    """A table and what is on it."""
    view, rng = sentence.view, sentence.rng
    carriers = [group for group in view.groups[:6] if group.noun not in ("window", "rug") and view.on(group)]
    if not carriers:
        return None
    carrier = carriers[0]
    load = view.on(carrier)[: int(rng.integers(1, 4))]
    phrase, things = sentence.phrase(carrier), _join([sentence.phrase(group) for group in load])
    if carrier.noun == "shelf":
        words = [
            f"{phrase} with {things}",
            f"{phrase} filled with {things}" if len(load[0].things) > 8 else f"{things} on {phrase}",
        ]
    else:
        words = [
            f"{phrase} with {things} on it",
            f"{phrase} with {things} on top",
            f"{things} on {phrase}",
            f"{things} sitting on {phrase}",
        ]
    if carrier.noun in ("dining table", "desk", "coffee table", "counter"):
        words.append(f"{phrase} topped with {things}")
    said = sentence.choose(*words)
    if rng.random() < 0.35 and view.room != "room":
        said += f" in {_article(sentence.room())}"
    return said


def _scene_sentence(sentence: _Sentence) -> str:
    """A room and what is in it."""
    view, rng = sentence.view, sentence.rng
    first = sentence.related(sentence.lead())
    things = _join([first, *[sentence.phrase(group) for group in sentence.others(int(rng.integers(1, 4)))]])
    room = _article(sentence.room())
    night = (
        " at night"
        if view.night and any(group.noun == "window" for group in view.groups) and rng.random() < 0.4
        else ""
    )
    return sentence.choose(
        f"{room}{night} with {things}",
        f"{room}{night} with {things}",
        f"{room} that has {things}",
        f"{things} in {room}{night}",
    )


def _there_is(sentence: _Sentence) -> str:
    lead = sentence.lead()
    said = f"there {'are' if _is_plural(lead) else 'is'} {sentence.related(lead)}"
    if (others := sentence.others(1)) and sentence.rng.random() < 0.6:
        said += f" and {sentence.phrase(others[0])}"
    if sentence.view.room != "room" and sentence.rng.random() < 0.3:
        said += f" in the {sentence.room()}"
    return said


def _one_thing(sentence: _Sentence) -> str:
    """The lead, where it is, and how it is seen."""
    view, rng, lead = sentence.view, sentence.rng, sentence.lead()
    thing = lead.things[0]
    if (
        len(lead.things) == 1
        and thing.item.pose == "floor"
        and thing.noun not in ("rug", "counter")
        and rng.random() < 0.25
    ):
        return f"{sentence.phrase(lead)} {sentence.choose('standing on', 'on')} {_article(view.floor)}"
    phrase = sentence.related(lead, always=True)
    if len(lead.things) == 1 and thing.share > 0.3 and rng.random() < 0.4:
        return f"a close up of {phrase}"
    if rng.random() < 0.2:
        return f"{sentence.choose('a view of', 'an image of', 'a photo of')} {phrase}"
    if len(sentence.named) == 1 and (others := sentence.others(1)):
        return f"{phrase} and {sentence.phrase(others[0])}"
    return phrase


def _list_of_things(sentence: _Sentence) -> str:
    first = sentence.related(sentence.lead())
    return _join([first, *[sentence.phrase(group) for group in sentence.others(int(sentence.rng.integers(1, 3)))]])


_PATTERNS: tuple[tuple[Callable[[_Sentence], str | None], float], ...] = (
    (_scene_sentence, 3.0),
    (_with_load, 4.0),
    (_one_thing, 2.0),
    (_list_of_things, 1.5),
    (_there_is, 1.0),
)


def _sentence(view: View, rng: np.random.Generator) -> str:
    if not view.groups:
        return str(rng.choice(_plain_sentences(view)))
    weights = np.array([weight for _, weight in _PATTERNS])
    pattern = _PATTERNS[int(rng.choice(len(_PATTERNS), p=weights / weights.sum()))][0]
    return _finished(pattern(_Sentence(view, rng)) or _list_of_things(_Sentence(view, rng)))


def _plain_sentences(view: View) -> list[str]:
    """For a frame that shows next to nothing."""
    wall = view.wall
    phrases = [
        _article(wall),
        f"{_article(wall)} in a {view.room}",
        f"a view of {_article(wall)}",
        f"the {wall} of a {view.room}",
        f"an image of {_article(wall)}",
        f"part of {_article(wall)} in a {view.room}",
    ]
    return [_finished(phrase) for phrase in phrases]


def _finished(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
