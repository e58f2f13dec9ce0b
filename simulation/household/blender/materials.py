"""Blender's materials: shader nodes, and one function for each ``Texture`` of a material."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from simulation.household.materials import RGB, Material, Texture, scaled


def linear(rgb: RGB) -> RGB:
    """Convert sRGB from 0 to 1 to linear RGB."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return r, g, b


def rgba(rgb: RGB) -> tuple[float, float, float, float]:
    """Convert sRGB from 0 to 1 to opaque linear RGBA."""
    return (*linear(rgb), 1.0)


_ALIGNED_TEXTURES = ("tiles", "planks", "screen")
"""Textures that start at the object's origin, so that a seed never cuts a tile."""


class MaterialNodes:
    """The node tree of a material around a Principled BSDF. Nodes and sockets are Blender's objects.

    Attributes:
        material: what to reproduce.
        shortest, longest: axis, 0 to 2, along which the part is shortest and longest.
        surface: the Principled BSDF.
        position: socket with the position in metres in the part's object, offset by the material's seed.
    """

    def __init__(self, bpy: ModuleType, material: Material, axes: tuple[int, int, int]) -> None:
        """
        Args:
            bpy: Blender's module.
            material: what to reproduce.
            axes: the axes along which the part is shortest, in between and longest.
        """
        self.node_material = bpy.data.materials.new(material.texture)
        self.material = material
        self.shortest, _, self.longest = axes
        self._tree = self.node_material.node_tree
        self.surface = next(node for node in self._tree.nodes if node.type == "BSDF_PRINCIPLED")
        self.set("Base Color", rgba(material.rgb))
        self.set("Roughness", material.roughness)
        self.set("Metallic", material.metallic)
        offset = (0, 0, 0) if material.texture in _ALIGNED_TEXTURES else self._random_offset()
        self.position = self._mapped("Object", "Location", offset)

    @property
    def output(self) -> Any:
        """The node of the material's output."""
        return next(node for node in self._tree.nodes if node.type == "OUTPUT_MATERIAL")

    def second_rgb(self, factor: float = 0.8) -> RGB:
        """Return the second colour of the pattern or, if the material has none, the first one times ``factor``."""
        return self.material.second_rgb or scaled(self.material.rgb, (factor,) * 3)

    def set(self, name: str, value: object) -> None:
        """Set an input of the Principled BSDF."""
        self.surface.inputs[name].default_value = value

    def node(self, kind: str, **inputs: object) -> Any:
        """Add a node of type ``ShaderNode<kind>`` with values for its inputs."""
        node = self._tree.nodes.new(f"ShaderNode{kind}")
        for name, value in inputs.items():
            node.inputs[name].default_value = value
        return node

    def link(self, source: Any, target: Any) -> None:
        """Connect an output socket to an input socket."""
        self._tree.links.new(source, target)

    def math(self, operation: str, first: Any, second: float, third: Any = None) -> Any:
        """Return the output of a Math node of a socket, a constant and, for MULTIPLY_ADD, another socket."""
        node = self.node("Math")
        node.operation = operation
        self.link(first, node.inputs[0])
        node.inputs[1].default_value = second
        if third is not None:
            self.link(third, node.inputs[2])
        return node.outputs[0]

    def separated(self, vector: Any) -> Any:
        """Return the x, y and z outputs of a vector."""
        split = self.node("SeparateXYZ")
        self.link(vector, split.inputs[0])
        return split.outputs

    def stretched(self, along: float, across: float, axis: int) -> Any:
        """Return the position scaled by ``along`` on one axis and by ``across`` on the others."""
        mapping = self.node("Mapping")
        mapping.inputs["Scale"].default_value = tuple(along if k == axis else across for k in range(3))
        self.link(self.position, mapping.inputs["Vector"])
        return mapping.outputs["Vector"]

    def relative_position(self) -> Any:
        """Return the position from 0 to 1 within the part's bounds, offset by the material's seed."""
        return self._mapped("Generated", "Location", self._random_offset())

    def rotated_relative_position(self, rotation: tuple[float, float, float]) -> Any:
        """Return the position from 0 to 1 within the part's bounds, rotated by Euler angles in radians."""
        return self._mapped("Generated", "Rotation", rotation)

    def noise(self, scale: float, detail: float = 3.0, position: Any = None, distortion: float = 0.0) -> Any:
        """Return noise from 0 to 1 of ``scale`` features per metre."""
        node = self.node("TexNoise", Scale=scale, Detail=detail, Distortion=distortion)
        self.link(self.position if position is None else position, node.inputs["Vector"])
        return node.outputs["Fac"]

    def mix(self, factor: Any, low: RGB, high: RGB, start: float = 0.35, end: float = 0.65) -> Any:
        """Return a colour that goes from ``low`` to ``high`` while a factor goes from ``start`` to ``end``."""
        return self.colour_ramp(factor, [(start, low), (end, high)])

    def colour_ramp(self, factor: Any, stops: list[tuple[float, RGB]], interpolation: str = "LINEAR") -> Any:
        """Return a colour that passes through sRGB colours at given values of a factor."""
        node = self.node("ValToRGB")
        self.link(factor, node.inputs["Fac"])
        node.color_ramp.interpolation = interpolation
        elements = node.color_ramp.elements
        while len(elements) < len(stops):
            elements.new(0.5)
        for element, (position, rgb) in zip(elements, stops, strict=True):
            element.position, element.color = position, rgba(rgb)
        return node.outputs["Color"]

    def bump(self, height: Any, strength: float, distance: float = 0.001) -> None:
        """Perturb the surface's normals by a height of up to ``distance`` metres."""
        bump = self.node("Bump", Strength=strength, Distance=distance)
        self.link(height, bump.inputs["Height"])
        self.link(bump.outputs["Normal"], self.surface.inputs["Normal"])

    def paint(self, colour: Any) -> None:
        """Connect a colour to the surface."""
        self.link(colour, self.surface.inputs["Base Color"])

    def add_emission(self) -> None:
        """Make the surface emit its own colour with the material's radiance."""
        self.set("Emission Strength", self.material.emission)
        colour = self.surface.inputs["Base Color"]
        if colour.links:
            self.link(colour.links[0].from_socket, self.surface.inputs["Emission Color"])
        else:
            self.set("Emission Color", rgba(self.material.rgb))

    def _mapped(self, coordinates: str, transformation: str, value: object) -> Any:
        mapping = self.node("Mapping")
        mapping.inputs[transformation].default_value = value
        self.link(self.node("TexCoord").outputs[coordinates], mapping.inputs["Vector"])
        return mapping.outputs["Vector"]

    def _random_offset(self) -> tuple[float, ...]:
        return tuple(np.random.default_rng(self.material.seed).uniform(-50, 50, 3))


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
