"""Label the words of captions with parts of speech where these are certain."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from recipes.lexicon.tagged_corpora import Sentence

_MIN_COUNT, _MIN_SHARE = 3, 0.97
"""Minimum number of occurrences of an unambiguous word with its part of speech, and their share of all occurrences."""


def unambiguous_words(sentences: Iterable[Sentence]) -> dict[str, str]:
    """Find lower-cased words that nearly always have the same part of speech in sentences."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, part in sentence:
            counts[word.lower()][part] += 1
    known: dict[str, str] = {}
    for word, parts in counts.items():
        ((part, count),) = parts.most_common(1)
        if part and count >= _MIN_COUNT and count >= _MIN_SHARE * parts.total():
            known[word] = part
    return known


def label_caption(words: list[str], known: Mapping[str, str]) -> Sentence:
    """Label the words of a caption where their part of speech is certain.

    The label comes from the word itself or from its neighbours, because captions have few forms. For example, a word
    for an action is a verb after a noun and before "over", "the" or "along"; a word between "a red" and "is" is a noun.
    Words that no rule covers have an empty label, which training ignores.

    Args:
        words: words of the caption, as spaCy tokenises it.
        known: parts of speech by lower-cased word, as :func:`unambiguous_words` finds them.
    """
    lower = [word.lower() for word in words]
    parts = [CAPTION_WORDS.get(word) or known.get(word, "") for word in lower]
    for i, word in enumerate(lower):
        before = parts[i - 1] if i else ""
        after = parts[i + 1] if i + 1 < len(parts) else "PUNCT"
        if word in _COLOURS_AND_THINGS:
            parts[i] = "ADJ" if after in ("NOUN", "ADJ", "CCONJ") else ""
        elif parts[i] == "":
            determined = before in ("DET", "NUM") or (before == "PRON" and lower[i - 1] in _POSSESSIVES)
            described = before == "ADJ" and lower[i - 1] not in ("black", "white", "next")
            ends_phrase = after in ("VERB", "ADP", "PUNCT", "CCONJ") or lower[i + 1 : i + 2] in (["is"], ["are"])
            acts_on = after in ("DET", "ADP", "ADV", "PRON", "NUM")
            # A word in -ed after an article may be an adjective before a noun that is unknown too.
            if before == "NOUN" and (word.endswith("ing") or word in _ACTIONS) and acts_on:
                parts[i] = "VERB"
            elif (determined or described) and ends_phrase and not word.endswith(("ing", "ed", "ly")):
                parts[i] = "NOUN"
    return list(zip(words, parts, strict=True))


_POSSESSIVES = {"his", "her", "its", "their", "my", "our"}
# Colours that are also things.
_COLOURS_AND_THINGS = {"orange", "gold", "silver", "peach"}


def _words(part: str, text: str) -> dict[str, str]:
    return dict.fromkeys(text.split(), part)


_ACTIONS = _words(
    "VERB",
    """runs jumps stands walks rides looks plays holds sits leaps climbs swings watches waits poses smiles slides
    skates skateboards snowboards surfs dances drives drinks eats leans catches throws kicks hits flies chases swims
    rests sleeps crosses passes pulls pushes reaches points hangs lies lays falls dives splashes races rolls moves
    talks shakes shows stares digs licks chews bites barks crawls balances performs grinds jogs hikes paddles rows
    sails skis trots wades licks fights wrestles hugs kisses laughs screams sings speaks works uses cuts cooks
    prepares serves reads writes paints draws blows carries does gets goes grabs helps hurdles kneels lands makes
    opens picks pitches pours puts raises returns retrieves sprays spins squats stops stretches strolls takes
    tackles tries turns twirls wears stand sit walk run play look watch hold ride jump wait pose swim fight race
    climb dance lie lay rest sleep graze wade pass cross wrestle chase eat""",
)
CAPTION_WORDS: dict[str, str] = {
    # The part of speech that the words have in captions; elsewhere they may have another.
    **_words(
        "NOUN",
        """man woman boy girl child children dog dogs people person men women kid kids lady guy guys toddler toddlers
        puppy puppies front top side middle background foreground distance edge crowd group couple pair bunch herd
        flock row pile stack pool frisbee frisbees motorcycle motorcycles bike bikes biker bikers bicycle bicyclist
        bicyclists cyclist cyclists motorcyclist motocross skateboard skateboards skateboarder skateboarders surfboard
        surfboards surfer surfers snowboarder snowboarders skier skiers skater skaters rollerblader rollerblades
        wakeboarder kayak kayaks kayaker canoe canoes raft sled trampoline helmet helmets goggles sunglasses jeans
        shorts pants sweatshirt hoodie jacket vest shirt shirts t-shirt swimsuit swimsuits bikini wetsuit backpack
        backpacks headband bandanna headphones scarf skirt dress uniform uniforms outfit outfits costume costumes
        mohawk tattoo tattoos ponytail pigtails hair face head mouth hand hands arm arms leg legs wheelchair
        stroller scooter scooters tricycle unicycle wagon cart racket racquet baseball basketball football soccer
        hockey tennis volleyball rugby softball badminton karate rodeo goalie referee umpire batter pitcher catcher
        player players teammate opponent racetrack stadium stunt wheelie handstand giraffe giraffes zebra zebras
        elephant elephants bear bears panda cow cows sheep goat goats greyhound greyhounds collie poodle terrier
        shepherd retriever beagle pitbull labrador corgi kitten cat cats bird birds pigeon pigeons seagull seagulls
        duck ducks horse horses pony camel camels pizza pizzas donut donuts doughnut doughnuts sandwich sandwiches
        broccoli carrot carrots banana bananas apple apples oranges strawberries vegetables veggies fries sauce
        toppings noodles pasta pastries desserts cupcake cake cakes hotdog burger lettuce bacon pepperoni salad bowl
        bowls plate plates fork forks knife spoon spoons chopsticks cup cups mug glasses bottle bottles vase
        vases laptop laptops computer computers keyboard keyboards monitor monitors mouse cellphone cellphones phone
        phones remote remotes controller controllers nintendo wii tv television microwave oven stove toaster blender
        refrigerator fridge freezer sink sinks faucet toilet toilets urinal urinals bathtub bathroom restroom kitchen
        bedroom counter counters countertop cabinet cabinets appliances mirror mirrors couch couches sofa chair chairs
        bench benches stool stools dresser bookshelf bookcase nightstand lamp lamps blanket blankets pillow pillows
        comforter rug towel curtain curtains hydrant hydrants sidewalk crosswalk intersection sign signs pole traffic
        meter meters truck trucks suv van vans bus buses train trains locomotive airplane airplanes plane planes jet
        jetliner airport runway tarmac boat boats ship ships sailboat motorboat rowboat ferry dock pier harbor beach
        ocean lake river stream waterfall wave waves sand grass snow dirt mud water field yard backyard lawn park
        playground mountain mountains mountaintop hill hillside slope cliff rock rocks forest woods tree trees bush
        bushes flower flowers tulips leaf leaves fence wall building buildings house street road path trail pathway
        walkway boardwalk sky cloud clouds sunset midair air umbrella umbrellas kite kites balloon balloons toy toys
        teddy ball balls bat bats glove gloves hat hats cap caps shoe shoes boots suitcase suitcases luggage handbag
        purse toothbrush toothbrushes scissors toothpaste graffiti closeup selfie photograph ponytail trashcan
        suspenders popsicle snowball snowman fireworks umpire leash collar stick sticks rope tunnel tube hoop ramp
        ramps rail rails railing railings balcony patio porch skyscraper tower lighthouse clock clocks tracks station
        platform runner runners climber climbers hiker hikers jockey jockeys cowboy wrestler wrestlers boxer cheerleader
        cheerleaders musician band guitar drums microphone pedestrian pedestrians passenger passengers""",
    ),
    **_words(
        "ADJ",
        """red brown blue green yellow white black grey gray purple pink tan beige teal blond blonde golden dark young
        old little small big large tall short long tiny huge several other many wet dry muddy grassy sandy rocky
        snowy sunny cloudy furry fluffy shaggy shirtless barefoot bald bearded redheaded multicolored colorful
        colored striped plaid checkered asian african american indian chinese japanese french elderly blurry wooden
        inflatable stainless ornate fancy leafy snowcapped hooded helmeted leashed unmade assorted curly scenic
        brightly-colored next empty different various same full""",
    ),
    **_words("ADV", "outside outdoors together nearby downhill uphill sideways upside midway away again very"),
    **_words("ADP", "in on at of with near behind beside over through while like along across around into onto under"),
    **_words(
        "VERB",
        """is are was were has have sitting standing running holding riding jumping walking looking wearing laying
        lying eating flying sits wears dressed chasing leaping trying making smiling covered filled parked attached
        posing skateboarding snowboarding grazing""",
    ),
    **_words(
        "PRON", "something someone everyone himself herself itself themselves he she it they him them his her its"
    ),
    **_words("DET", "a an the this that these those some each another all both any no"),
    **_words("NUM", "one two three four five six seven eight nine ten"),
    **_words("CCONJ", "and or but"),
}
