"""The nouns that the teacher networks can confirm, and the classes that show each of them."""

import re

# noun: classes, each of which is evidence for the noun; @ marks the detector's classes, others are the segmenter's.
_TABLE = """
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

CLASSES_OF: dict[str, tuple[str, ...]] = {
    noun.strip(): tuple(name.replace("_", " ") for name in re.split(r"[ ,]+", classes.strip()) if name)
    for noun, _, classes in (line.partition(":") for line in _TABLE.strip().splitlines())
}
"""Noun, in the singular, to the names of its classes; names of the detector's begin with @."""
