"""Books: upright, lying, open; and loose paper."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, box, join, sheet
from simulation.household.object_mesh import ObjectMesh


def book(rng: np.random.Generator) -> ObjectMesh:
    """Build a closed book that stands upright with its spine towards -y."""
    height, depth, thickness = rng.uniform(0.18, 0.27), rng.uniform(0.13, 0.18), rng.uniform(0.016, 0.045)
    parts, colour = _book_parts(rng, height, depth, thickness)
    return ObjectMesh("book", tuple(parts), colour)


def _book_parts(rng: np.random.Generator, height: float, depth: float, thickness: float) -> tuple[list[MeshPart], str]:
    """Build the parts of an upright closed book, ``thickness`` along x; return them with the name of its colour."""
    colour, rgb = materials.random_colour(
        rng, "red", "blue", "green", "black", "white", "yellow", "brown", "orange", "gray"
    )
    cover = materials.plain(rng, rgb, roughness=0.45)
    paper = materials.patterned(rng, "stripes", (0.88, 0.85, 0.76), (0.78, 0.74, 0.64), roughness=0.9, scale=0.02)
    title = materials.plain(rng, materials.random_colour(rng, "white", "yellow", "black")[1])
    cover_thickness = 0.0025
    parts = [
        box([thickness - 2 * cover_thickness, depth - 0.006, height - 0.006], [0, 0, height / 2], paper, bevel=0),
        *[
            box(
                [cover_thickness, depth, height],
                [sx * (thickness - cover_thickness) / 2, 0, height / 2],
                cover,
                bevel=0.0008,
            )
            for sx in (-1, 1)
        ],
        box([thickness, cover_thickness, height], [0, -depth / 2, height / 2], cover, bevel=0.001),
        box(
            [thickness * 0.45, 0.001, height * 0.4], [0, -depth / 2 - cover_thickness / 2, height * 0.6], title, bevel=0
        ),
        *[
            box([0.001, depth * 0.6, height * 0.16], [sx * thickness / 2, 0, height * 0.7], title, bevel=0)
            for sx in (-1, 1)
        ],
    ]
    return parts, colour


def lying_book(rng: np.random.Generator) -> ObjectMesh:
    """Build a closed book that lies flat or an open one."""
    return _open_book(rng) if rng.random() < 0.25 else closed_lying_book(rng)


def closed_lying_book(rng: np.random.Generator) -> ObjectMesh:
    """Build a closed book that lies flat."""
    height, depth, thickness = rng.uniform(0.19, 0.27), rng.uniform(0.14, 0.19), rng.uniform(0.016, 0.04)
    parts, colour = _book_parts(rng, height, depth, thickness)
    # Permuting the axes turns the cover upwards.
    lying = [
        MeshPart(p.vertices[:, [1, 2, 0]] + [0, -height / 2, thickness / 2], p.faces, p.material, p.smooth, p.bevel)
        for p in parts
    ]
    return ObjectMesh("book", tuple(lying), colour)


def _open_book(rng: np.random.Generator) -> ObjectMesh:
    """Build an open book with lines of text."""
    height, depth = rng.uniform(0.2, 0.26), rng.uniform(0.14, 0.18)
    paper = materials.plain(rng, (0.90, 0.88, 0.82), roughness=0.9)
    ink = materials.plain(rng, (0.35, 0.35, 0.35), roughness=0.9)
    rgb = materials.random_colour(rng, "red", "blue", "green", "black", "brown")[1]
    parts = [box([2 * depth + 0.006, height + 0.006, 0.002], [0, 0, 0.001], materials.plain(rng, rgb), bevel=0)]
    u = np.linspace(0, 1, 9)
    lines = []
    for side in (-1, 1):
        bulge = 0.006 + 0.014 * np.sin(np.pi * np.clip(u * 0.9 + 0.03, 0, 1)) ** 0.8
        grid = np.stack(
            [
                np.stack([side * u * depth, np.full(9, y), bulge], axis=1)
                for y in np.linspace(-height / 2, height / 2, 2)
            ],
            axis=1,
        )
        parts.append(sheet(grid if side < 0 else grid[:, ::-1], paper))
        for row in range(12):
            y = height * (0.4 - 0.07 * row)
            length = depth * (0.7 if rng.random() < 0.85 else 0.4)
            lines.append(box([length, 0.004, 0.0006], [side * depth * 0.5, y, 0.0206], ink, bevel=0))
    parts.append(join(lines))
    # Captions use the word in the place of a colour: "an open book".
    return ObjectMesh("book", tuple(parts), "open")


def paper_stack(rng: np.random.Generator) -> ObjectMesh:
    """Build a stack of loose sheets, an object without a label."""
    sheets = [
        box(
            [0.21, 0.297, 0.001],
            [0, 0, 0.0006 + 0.0012 * i],
            materials.plain(rng, (0.92, 0.92, 0.90), roughness=0.9),
            bevel=0,
        ).transformed(turn=rng.normal(0, 0.06))
        for i in range(int(rng.integers(1, 6)))
    ]
    return ObjectMesh("paper", tuple(sheets), "white")
