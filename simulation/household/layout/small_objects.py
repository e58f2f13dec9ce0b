"""Small objects on furniture: which ones lie on what, clutter, stacks of books and rows of books."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simulation.household.mesh import ObjectMesh
from simulation.household.objects import decoration, electronics, furniture, kitchen, tableware
from simulation.household.scene import ObjectPose, PlacedObject, PlacedSurface, Wall
from simulation.household.scene_builder import CLEARANCE, SceneBuilder

MeshBuilder = Callable[[np.random.Generator], ObjectMesh]
Clutter = Mapping[MeshBuilder, float]
"""Builders of small objects with their relative frequencies."""

DINING_TABLE: Clutter = {
    tableware.bottle: 2,
    tableware.cup: 3,
    tableware.bowl: 2,
    tableware.wine_glass: 2,
    tableware.banana: 1.5,
    tableware.apple: 1.5,
    tableware.orange: 1.5,
    tableware.cake: 2.0,
    tableware.knife: 0.6,
    tableware.spoon: 0.6,
    tableware.fork: 0.6,
    decoration.potted_plant: 0.8,
    decoration.vase: 0.4,
}
COUNTER: Clutter = {
    tableware.bottle: 2.5,
    tableware.cup: 2,
    tableware.bowl: 2,
    tableware.knife: 1,
    tableware.spoon: 0.6,
    tableware.banana: 1.2,
    tableware.apple: 1,
    tableware.orange: 1,
    decoration.potted_plant: 0.6,
    tableware.plate: 0.8,
    tableware.wine_glass: 0.7,
    tableware.cake: 0.5,
    tableware.pot: 0.7,
    kitchen.toaster: 0.7,
}
DESK: Clutter = {
    tableware.cup: 2.5,
    decoration.lying_book: 2.5,
    electronics.cell_phone: 2,
    tableware.bottle: 1.2,
    decoration.potted_plant: 1,
    electronics.table_clock: 1,
    tableware.apple: 0.5,
    tableware.banana: 0.5,
    tableware.orange: 0.3,
    decoration.paper_stack: 1,
    decoration.lit_table_lamp: 0.7,
}
COFFEE_TABLE: Clutter = {
    decoration.lying_book: 2.5,
    tableware.cup: 2,
    tableware.wine_glass: 1.2,
    tableware.bottle: 1,
    electronics.cell_phone: 1.5,
    electronics.laptop: 1.2,
    tableware.bowl: 1.2,
    decoration.potted_plant: 1,
    tableware.apple: 0.5,
    tableware.orange: 0.5,
    decoration.vase: 0.6,
    tableware.cake: 0.3,
}
CABINET: Clutter = {
    decoration.potted_plant: 2,
    electronics.table_clock: 1.5,
    decoration.lying_book: 2,
    decoration.vase: 1.5,
    decoration.table_lamp: 1,
    tableware.bowl: 1,
    tableware.bottle: 0.5,
}
DINING_ROOM_CABINET: Clutter = {**CABINET, tableware.wine_glass: 2, tableware.bottle: 2, tableware.bowl: 2}
NIGHTSTAND: Clutter = {
    decoration.lit_table_lamp: 3,
    electronics.table_clock: 2,
    decoration.lying_book: 2,
    electronics.cell_phone: 2,
    tableware.cup: 1.5,
}
BATHROOM_CABINET: Clutter = {tableware.bottle: 3, tableware.cup: 2, decoration.potted_plant: 1}

_SEAT_OBJECTS: tuple[MeshBuilder, ...] = (electronics.laptop, decoration.closed_lying_book, electronics.cell_phone)
_SHELF_OBJECTS: tuple[MeshBuilder, ...] = (
    decoration.sill_plant,
    electronics.table_clock,
    decoration.vase,
    tableware.bowl,
    decoration.closed_lying_book,
)


def add_clutter(
    builder: SceneBuilder, carrier: PlacedObject | None, clutter: Clutter, mean: float, *, turn: float = np.pi
) -> None:
    """Scatter small objects on the surfaces of a piece of furniture.

    Args:
        builder: the room.
        carrier: the furniture; None if there was no space for it.
        clutter: what to scatter.
        mean: mean of the number of objects that are tried on each surface (Poisson).
        turn: greatest yaw in radians of an object either way. Clocks and laptops face the front more closely.
    """
    if carrier is None:
        return
    rng = builder.rng
    mesh_builders, weights = list(clutter), np.array(list(clutter.values()))
    for support in carrier.surfaces:
        if support.surface.kind in ("shelf", "plate"):
            continue
        for _ in range(rng.poisson(mean)):
            mesh = mesh_builders[int(rng.choice(len(mesh_builders), p=weights / weights.sum()))](rng)
            greatest = 0.4 if mesh.class_name in ("clock", "laptop") else turn
            add_fruit(builder, builder.scatter_on(support, mesh, turn=greatest))


def add_fruit(builder: SceneBuilder, carrier: PlacedObject | None) -> None:
    """Place an apple or an orange on every second plate; do nothing for other objects."""
    if carrier is None or carrier.mesh.class_name != "plate":
        return
    if builder.rng.random() < 0.5:
        fruit = (tableware.apple, tableware.orange)[int(builder.rng.integers(2))]
        builder.place_on_fraction(carrier.surfaces[0], fruit(builder.rng), 0, 0)


def add_object_on_seat(builder: SceneBuilder, seat: PlacedObject, turn: float) -> None:
    """Place a laptop, a book or a telephone on a couch or a bed, turned by up to ``turn`` radians."""
    mesh_builder = _SEAT_OBJECTS[int(builder.rng.integers(len(_SEAT_OBJECTS)))]
    builder.scatter_on(seat.surfaces[0], mesh_builder(builder.rng), turn=turn)


def add_book_stack(builder: SceneBuilder, support: PlacedSurface) -> None:
    """Place a stack of up to four closed books on every second surface."""
    rng = builder.rng
    if rng.random() < 0.5:
        return
    under: PlacedObject | None = None
    u, v = rng.uniform(-1, 1), rng.uniform(0.2, 1)
    for _ in range(int(rng.integers(2, 5))):
        mesh = decoration.closed_lying_book(rng)
        if under is None:
            under = builder.place_on_fraction(support, mesh, u, v, rng.uniform(-0.4, 0.4))
        else:
            centre, yaw = under.centre, under.pose.yaw + rng.normal(0, 0.15)
            z = under.pose.z + float(under.mesh.bounds[1, 2]) + CLEARANCE
            pose = ObjectPose(centre[0], centre[1], z, yaw)
            under = builder.place(mesh, pose, support=support.carrier.id, placement="on")
        if under is None:
            return


def add_bookshelf(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place a bookshelf at one of the walls, with rows of books and a few other objects."""
    rng = builder.rng
    shelf = builder.place_along_walls(furniture.bookshelf(rng), walls)
    if shelf is None:
        return
    for support in shelf.surfaces:
        draw = rng.random()
        if support.surface.kind == "top" or draw < 0.3:
            for _ in range(int(rng.integers(1, 3))):
                mesh_builder = _SHELF_OBJECTS[int(rng.integers(len(_SHELF_OBJECTS)))]
                builder.scatter_on(support, mesh_builder(rng), turn=0.4)
        else:
            _add_book_row(builder, support)


def _add_book_row(builder: SceneBuilder, support: PlacedSurface) -> None:
    """Place upright books side by side from the left end of a shelf to a random point."""
    rng, half_width = builder.rng, support.surface.half_width
    x = -half_width + 0.005
    end = half_width * rng.uniform(-0.1, 1.0)
    while True:
        mesh = decoration.book(rng)
        x += float(mesh.size[0]) / 2 + 0.0012
        if x > end or builder.place_on(support, mesh, x, rng.uniform(-0.04, 0.0)) is None:
            return
        x += float(mesh.size[0]) / 2
