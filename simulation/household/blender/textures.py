"""Procedural textures: one function for each ``Texture`` of a material."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from simulation.household.blender.colour import rgba
from simulation.household.blender.material_nodes import MaterialNodes
from simulation.household.materials import Material, Texture, scaled

_LANDSCAPE = [(0.45, (0.25, 0.20, 0.10)), (0.62, (0.14, 0.26, 0.09))]
_LANDSCAPE_SKY = (0.80, 0.88, 0.95)
_SCREEN_WINDOW = (0.85, 0.86, 0.88, 1.0)


def node_material(bpy: ModuleType, material: Material, axes: tuple[int, int, int]) -> Any:
    """Create Blender's node material for a material.

    Args:
        bpy: Blender's module.
        material: what to reproduce.
        axes: the axes, 0 to 2, along which the part is shortest, in between and longest.
    """
    nodes = MaterialNodes(bpy, material, axes)
    _TEXTURES[material.texture](nodes)
    if material.emission:
        nodes.add_emission()
    return nodes.node_material


def _plain(nodes: MaterialNodes) -> None:
    material = nodes.material
    if not material.emission and not material.metallic:
        nodes.paint(nodes.mix(nodes.noise(6.0), scaled(material.rgb, (0.97, 0.97, 0.97)), material.rgb))
    if material.roughness < 0.2 and not material.metallic:
        nodes.set("Coat Weight", 0.3)


def _wood(nodes: MaterialNodes) -> None:
    grain = nodes.noise(9.0 / nodes.material.scale, 6.0, nodes.stretched(0.6, 7.0, nodes.longest), distortion=1.2)
    nodes.paint(nodes.mix(grain, nodes.second_rgb(), nodes.material.rgb, 0.3, 0.68))
    nodes.bump(grain, 0.12)


def _fabric(nodes: MaterialNodes) -> None:
    scale = nodes.material.scale
    weave, blotches = nodes.noise(420.0 / scale, 2.0), nodes.noise(5.0)
    nodes.paint(nodes.mix(blotches, nodes.second_rgb(0.95), nodes.material.rgb, 0.3, 0.6))
    nodes.bump(weave, 0.35, 0.002 * scale)
    nodes.set("Sheen Weight", 0.25)


def _stone(nodes: MaterialNodes) -> None:
    nodes.paint(nodes.mix(nodes.noise(70.0, 8.0), nodes.second_rgb(), nodes.material.rgb, 0.36, 0.5))


def _tiles(nodes: MaterialNodes) -> None:
    size = nodes.material.scale
    _add_bricks(nodes, (size, size), gap=0.003, offset=0.0, shade=0.95)


def _planks(nodes: MaterialNodes) -> None:
    _add_bricks(nodes, (1.1, 0.12), gap=0.0016, offset=0.43, shade=0.72)
    grain = nodes.noise(10.0, 6.0, nodes.stretched(0.7, 8.0, 0), distortion=1.0)
    shaded = nodes.node("Mix")
    shaded.data_type, shaded.blend_type = "RGBA", "MULTIPLY"
    shaded.inputs["Factor"].default_value = 0.55
    nodes.link(nodes.surface.inputs["Base Color"].links[0].from_socket, shaded.inputs["A"])
    nodes.link(nodes.mix(grain, (0.6, 0.56, 0.52), (1.0, 1.0, 1.0), 0.3, 0.62), shaded.inputs["B"])
    nodes.paint(shaded.outputs["Result"])


def _add_bricks(nodes: MaterialNodes, size: tuple[float, float], *, gap: float, offset: float, shade: float) -> None:
    """Paint bricks in the part's plane.

    Args:
        nodes: of the material.
        size: width of a brick and height of a row in metres.
        gap: metres between bricks.
        offset: share of a width by which every second row is moved.
        shade: factor on the colour of the darkest bricks.
    """
    rgb = nodes.material.rgb
    bricks = nodes.node("TexBrick")
    bricks.offset, bricks.squash = offset, 1.0
    bricks.inputs["Color1"].default_value = rgba(rgb)
    bricks.inputs["Color2"].default_value = rgba(scaled(rgb, (shade, shade, shade)))
    bricks.inputs["Mortar"].default_value = rgba(nodes.second_rgb())
    bricks.inputs["Scale"].default_value, bricks.inputs["Mortar Size"].default_value = 1.0, gap
    bricks.inputs["Brick Width"].default_value, bricks.inputs["Row Height"].default_value = size
    coordinates, plane = nodes.separated(nodes.position), nodes.node("CombineXYZ")
    # In walls z is the second coordinate, so that the rows are level.
    for target, axis in enumerate(k for k in range(3) if k != nodes.shortest):
        nodes.link(coordinates[axis], plane.inputs[target])
    nodes.link(plane.outputs[0], bricks.inputs["Vector"])
    nodes.paint(bricks.outputs["Color"])
    nodes.bump(bricks.outputs["Fac"], -0.4, 0.002)


def _plaster(nodes: MaterialNodes) -> None:
    nodes.bump(nodes.noise(160.0, 4.0), 0.12)
    rgb = nodes.material.rgb
    nodes.paint(nodes.mix(nodes.noise(0.8), scaled(rgb, (0.96, 0.96, 0.95)), rgb))


def _brushed(nodes: MaterialNodes) -> None:
    streaks = nodes.noise(60.0, 4.0, nodes.stretched(0.4, 14.0, nodes.longest))
    nodes.set("Roughness", 0.32)
    rgb = nodes.material.rgb
    nodes.paint(nodes.mix(streaks, scaled(rgb, (0.86, 0.86, 0.86)), rgb))


def _glass(nodes: MaterialNodes) -> None:
    nodes.set("Transmission Weight", 1.0)
    nodes.set("IOR", 1.45)
    # Shadow rays pass unrefracted, because without caustics the glass would cast a dark shadow.
    path, transparent, mix = nodes.node("LightPath"), nodes.node("BsdfTransparent"), nodes.node("MixShader")
    transparent.inputs["Color"].default_value = rgba(nodes.material.rgb)
    nodes.link(path.outputs["Is Shadow Ray"], mix.inputs[0])
    nodes.link(nodes.surface.outputs[0], mix.inputs[1])
    nodes.link(transparent.outputs[0], mix.inputs[2])
    nodes.link(mix.outputs[0], nodes.output.inputs[0])


def _foliage(nodes: MaterialNodes) -> None:
    nodes.paint(nodes.mix(nodes.noise(25.0), nodes.material.rgb, nodes.second_rgb()))
    nodes.set("Subsurface Weight", 0.08)


def _skin(nodes: MaterialNodes) -> None:
    nodes.set("Subsurface Weight", 0.15)
    nodes.set("Subsurface Scale", 0.01)


def _fruit(nodes: MaterialNodes) -> None:
    scale = nodes.material.scale
    nodes.paint(nodes.mix(nodes.noise(45.0 / scale, 5.0), nodes.second_rgb(), nodes.material.rgb, 0.28, 0.52))
    if scale < 1:
        nodes.bump(nodes.noise(900.0), 0.25)


def _stripes(nodes: MaterialNodes) -> None:
    angle = nodes.math("MULTIPLY", nodes.separated(nodes.position)["X"], 2 * np.pi / (0.14 * nodes.material.scale))
    wave = nodes.node("Math")
    wave.operation = "SINE"
    nodes.link(angle, wave.inputs[0])
    nodes.paint(nodes.mix(wave.outputs[0], nodes.second_rgb(), nodes.material.rgb, 0.0, 0.1))


def _picture(nodes: MaterialNodes) -> None:
    """Paint an abstract print: blots of two colours."""
    blots = nodes.noise(3.0, 2.0, nodes.relative_position(), distortion=1.5)
    nodes.paint(nodes.mix(blots, nodes.material.rgb, nodes.second_rgb(), 0.4, 0.6))


def _view(nodes: MaterialNodes) -> None:
    """Paint a landscape: ground, hills and sky by height."""
    hills = nodes.noise(2.5, 6.0, nodes.relative_position())
    height = nodes.separated(nodes.node("TexCoord").outputs["Generated"])["Z"]
    altitude = nodes.math("MULTIPLY_ADD", hills, 0.7, height)
    stops = [*_LANDSCAPE, (0.8, nodes.second_rgb()), (0.84, nodes.material.rgb), (1.0, _LANDSCAPE_SKY)]
    nodes.paint(nodes.colour_ramp(altitude, stops, "EASE"))


def _screen(nodes: MaterialNodes) -> None:
    """Paint the windows of a desktop on a coloured ground."""
    rng = np.random.default_rng(nodes.material.seed)
    bricks = nodes.node("TexBrick")
    bricks.offset = 0.37
    bricks.inputs["Color1"].default_value = _SCREEN_WINDOW
    bricks.inputs["Color2"].default_value = rgba(nodes.material.rgb)
    bricks.inputs["Mortar"].default_value = rgba(nodes.second_rgb())
    bricks.inputs["Scale"].default_value = 1.0
    bricks.inputs["Mortar Size"].default_value = float(rng.uniform(0.01, 0.05))
    bricks.inputs["Brick Width"].default_value = float(rng.uniform(0.35, 0.7))
    bricks.inputs["Row Height"].default_value = float(rng.uniform(0.12, 0.4))
    # The rotation makes the screen's height, its z, the texture's second coordinate.
    nodes.link(nodes.rotated_relative_position((np.pi / 2, 0, 0)), bricks.inputs["Vector"])
    nodes.paint(bricks.outputs["Color"])


_TEXTURES: dict[Texture, Callable[[MaterialNodes], None]] = {
    "plain": _plain,
    "wood": _wood,
    "fabric": _fabric,
    "stone": _stone,
    "tiles": _tiles,
    "planks": _planks,
    "plaster": _plaster,
    "brushed": _brushed,
    "glass": _glass,
    "foliage": _foliage,
    "skin": _skin,
    "fruit": _fruit,
    "stripes": _stripes,
    "picture": _picture,
    "view": _view,
    "screen": _screen,
}
