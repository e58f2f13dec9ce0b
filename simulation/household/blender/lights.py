"""Sun, sky and the light from the windows. Lamps emit by their material."""

from types import ModuleType
from typing import Any

import numpy as np

from simulation.household.blender.materials import linear
from simulation.household.materials import RGB, scaled
from simulation.household.scene import WALL_THICKNESS, WALL_YAW, Lighting, Opening, Scene

_TREES: RGB = (0.07, 0.095, 0.045)
"""Linear colour of trees and lawn outside, relative to the sky's strength."""


def add_lights(bpy: ModuleType, blender_scene: Any, scene: Scene) -> None:
    """Add sky, sun and an area light in each window to Blender's scene."""
    blender_scene.world = _world(bpy, scene.lighting)
    if scene.lighting.sun_strength:
        blender_scene.collection.objects.link(_sun(bpy, scene.lighting))
    for opening in scene.room.openings:
        if not opening.is_door:
            blender_scene.collection.objects.link(_window_light(bpy, scene, opening))


def _sun(bpy: ModuleType, lighting: Lighting) -> Any:
    sun = bpy.data.lights.new("sun", "SUN")
    sun.energy, sun.angle, sun.color = lighting.sun_strength, 0.02, (1.0, 0.93, 0.82)
    obj = bpy.data.objects.new("sun", sun)
    obj.rotation_euler = (np.pi / 2 - lighting.sun_elevation, 0.0, -lighting.sun_azimuth)
    return obj


def _window_light(bpy: ModuleType, scene: Scene, opening: Opening) -> Any:
    """Return an area light in a window that replaces the sky, whose light would need more samples."""
    height = opening.top - opening.bottom
    area = bpy.data.lights.new("window", "AREA")
    area.shape, area.size, area.size_y = "RECTANGLE", opening.width, height
    # A light's radiance is its power divided by pi and its area; trees and ground fill part of the view.
    area.energy = 0.7 * scene.lighting.sky_strength * np.pi * opening.width * height
    area.color = scene.lighting.sky
    obj = bpy.data.objects.new("window", area)
    x, y = scene.room.floor_point(opening.wall, opening.along, -WALL_THICKNESS * 0.95)
    obj.location = (x, y, opening.bottom + height / 2)
    obj.rotation_euler = (-np.pi / 2, 0.0, WALL_YAW[opening.wall])
    obj.visible_camera = False
    return obj


def _world(bpy: ModuleType, lighting: Lighting) -> Any:
    """Return a world with sky above an irregular line of trees; other rays than the camera's get 5 % of its light."""
    world = bpy.data.worlds.new("world")
    # Cycles computes a map of the sky's brightness for every scene; at the default size this takes longer than two
    # frames.
    world.cycles.sampling_method, world.cycles.sample_map_resolution = "MANUAL", 256
    tree = world.node_tree
    tree.nodes.clear()
    new, link = tree.nodes.new, tree.links.new
    direction = new("ShaderNodeTexCoord").outputs["Generated"]
    # Horizon: the direction's z minus noise.
    split = new("ShaderNodeSeparateXYZ")
    link(direction, split.inputs[0])
    noise = new("ShaderNodeTexNoise")
    noise.inputs["Scale"].default_value, noise.inputs["Detail"].default_value = 7.0, 5.0
    link(direction, noise.inputs["Vector"])
    horizon = new("ShaderNodeMath")
    horizon.operation = "MULTIPLY_ADD"
    link(noise.outputs["Fac"], horizon.inputs[0])
    horizon.inputs[1].default_value = -0.22
    link(split.outputs["Z"], horizon.inputs[2])
    # Trees below it and sky above.
    ramp = new("ShaderNodeValToRGB")
    link(horizon.outputs[0], ramp.inputs["Fac"])
    trees, sky = ramp.color_ramp.elements
    trees.position, sky.position = 0.0, 0.02
    strengths = (lighting.sky_strength,) * 3
    trees.color = (*scaled(_TREES, strengths), 1.0)
    sky.color = (*scaled(linear(lighting.sky), strengths), 1.0)
    # Leaves: a fine speckle.
    leaves = new("ShaderNodeTexNoise")
    leaves.inputs["Scale"].default_value = 60.0
    link(direction, leaves.inputs["Vector"])
    speckle = new("ShaderNodeMix")
    speckle.data_type, speckle.blend_type = "RGBA", "MULTIPLY"
    speckle.inputs["Factor"].default_value = 0.5
    link(ramp.outputs["Color"], speckle.inputs["A"])
    link(leaves.outputs["Fac"], speckle.inputs["B"])
    # Strength 1 for the camera's rays, 0.05 for others, whose light comes from the area lights.
    path, strength = new("ShaderNodeLightPath"), new("ShaderNodeMath")
    strength.operation = "MULTIPLY_ADD"
    link(path.outputs["Is Camera Ray"], strength.inputs[0])
    strength.inputs[1].default_value, strength.inputs[2].default_value = 0.95, 0.05
    background, output = new("ShaderNodeBackground"), new("ShaderNodeOutputWorld")
    link(speckle.outputs["Result"], background.inputs["Color"])
    link(strength.outputs[0], background.inputs["Strength"])
    link(background.outputs[0], output.inputs[0])
    return world
