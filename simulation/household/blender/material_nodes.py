"""Shader nodes of one material: the nodes that textures are composed of."""

from types import ModuleType
from typing import Any

import numpy as np

from simulation.household.blender.colour import rgba
from simulation.household.materials import RGB, Material, scaled

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
