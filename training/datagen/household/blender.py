"""Rendering with Blender's Cycles: the only module that needs ``bpy``.

A frame comes back as linear light, as a sensor receives it, and as the number of the item that each pixel shows.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.datagen.household.camera import Camera, Pose
from training.datagen.household.errors import HouseholdError
from training.datagen.household.materials import RGB, Material
from training.datagen.household.mesh import Part
from training.datagen.household.models.fixtures import WALL
from training.datagen.household.scene import YAW, Opening, Scene
from training.datagen.household.shell import shell_parts


def require_bpy() -> None:
    """Make sure that Blender's module is installed, without loading it.

    A process that has loaded it cannot start others that load it too: it puts its own folders on their path.

    Raises:
        HouseholdError: it is not.
    """
    if find_spec("bpy") is None:
        raise HouseholdError(
            "rendering needs Blender's Python module: install it with Python 3.11 into an environment of its own, "
            "pip install '.[household]'"
        )


class Stage:
    """A scene inside Blender, ready to be photographed from anywhere. One a process: Blender has one state."""

    def __init__(self, scene: Scene, camera: Camera, *, samples: int = 16, threads: int = 1) -> None:
        require_bpy()
        import bpy

        self._bpy: ModuleType = bpy
        self._camera = camera
        self._folder = tempfile.TemporaryDirectory(prefix="household-")
        with _quiet():
            self._bpy.ops.wm.read_factory_settings(use_empty=True)
            self._scene = self._bpy.context.scene
            self._materials: dict[tuple[Material, tuple[int, int, int]], Any] = {}
            self._configure(samples, threads)
            self._add_passes()
            for part in shell_parts(scene.room):
                self._add(part, 0)
            for item in scene.items:
                for part in item.shape.parts:
                    mesh = self._add(part, item.id)
                    mesh.location, mesh.rotation_euler = (item.x, item.y, item.z), (0.0, 0.0, item.yaw)
            self._light(scene)
            self._eye = self._bpy.data.objects.new("camera", self._bpy.data.cameras.new("camera"))
            self._eye.data.sensor_width, self._eye.data.clip_start = 36.0, 0.03
            self._eye.data.angle = camera.field_of_view
            self._scene.collection.objects.link(self._eye)
            self._scene.camera = self._eye

    def render(self, pose: Pose, seed: int) -> tuple[NDArray[np.float32], NDArray[np.uint16]]:
        """A frame.

        Returns:
            Linear light (height, width, 3), RGB, unbounded; and the item number of each pixel (height, width), 0 for
            walls, floor, ceiling and what is outside.
        """
        self._eye.location = (pose.x, pose.y, pose.z)
        self._eye.rotation_euler = (np.pi / 2 + pose.pitch, 0.0, pose.heading - np.pi / 2)
        self._scene.cycles.seed = seed
        with _quiet():
            self._bpy.ops.render.render()
            light, index = self._read("light"), self._read("index")
        return light, np.rint(index[..., 0]).astype(np.uint16)

    def _configure(self, samples: int, threads: int) -> None:
        render, cycles = self._scene.render, self._scene.cycles
        render.engine = "CYCLES"
        render.resolution_x, render.resolution_y, render.resolution_percentage = (
            self._camera.width,
            self._camera.height,
            100,
        )
        render.threads_mode, render.threads = "FIXED", threads
        render.use_persistent_data = True
        cycles.device, cycles.samples, cycles.use_adaptive_sampling = "CPU", samples, False
        cycles.use_denoising, cycles.denoiser, cycles.denoising_quality = True, "OPENIMAGEDENOISE", "BALANCED"
        cycles.max_bounces, cycles.diffuse_bounces, cycles.glossy_bounces = 8, 3, 3
        cycles.transmission_bounces, cycles.transparent_max_bounces = 6, 6
        cycles.caustics_reflective = cycles.caustics_refractive = False
        cycles.sample_clamp_indirect, cycles.blur_glossy = 4.0, 1.0

    def _add_passes(self) -> None:
        """Write the picture and the object index as files of 32-bit floats."""
        self._bpy.context.view_layer.use_pass_object_index = True
        tree = self._bpy.data.node_groups.new("passes", "CompositorNodeTree")
        self._scene.compositing_node_group = tree
        layers, output = tree.nodes.new("CompositorNodeRLayers"), tree.nodes.new("CompositorNodeOutputFile")
        output.directory, output.file_name = self._folder.name, ""
        output.format.media_type, output.format.file_format, output.format.color_depth = "IMAGE", "OPEN_EXR", "32"
        output.file_output_items.clear()
        for kind, name, source in (("RGBA", "light", "Image"), ("FLOAT", "index", "Object Index")):
            output.file_output_items.new(kind, name)
            tree.links.new(layers.outputs[source], output.inputs[name])

    def _read(self, name: str) -> NDArray[np.float32]:
        path = next(Path(self._folder.name).glob(f"{name}*.exr"))
        image = self._bpy.data.images.load(str(path))
        image.colorspace_settings.name = "Non-Color"
        width, height = image.size
        pixels = np.empty(width * height * 4, np.float32)
        image.pixels.foreach_get(pixels)
        self._bpy.data.images.remove(image)
        path.unlink()
        return pixels.reshape(height, width, 4)[::-1, :, :3].copy()

    def _add(self, part: Part, number: int) -> Any:
        data = self._bpy.data.meshes.new("part")
        data.from_pydata(part.vertices.tolist(), [], [list(face) for face in part.faces])
        if part.smooth:
            data.shade_smooth()
        # Grain runs along a board and tiles lie in a wall's plane, whichever way it faces.
        low, high = part.bounds
        thin, _, long = (int(axis) for axis in np.argsort(high - low))
        surface = part.material, (thin, 3 - thin - long, long)
        if surface not in self._materials:
            self._materials[surface] = Shader(self._bpy, *surface).node_material
        data.materials.append(self._materials[surface])
        mesh = self._bpy.data.objects.new("part", data)
        mesh.pass_index = number
        self._scene.collection.objects.link(mesh)
        if part.remesh:
            modifier = mesh.modifiers.new("remesh", "REMESH")
            modifier.mode, modifier.voxel_size, modifier.use_smooth_shade = "VOXEL", part.remesh, True
            smooth = mesh.modifiers.new("smooth", "SMOOTH")
            smooth.factor, smooth.iterations = 0.5, 6
        elif part.bevel:
            modifier = mesh.modifiers.new("bevel", "BEVEL")
            modifier.width, modifier.segments, modifier.limit_method = (
                part.bevel,
                2 if part.bevel < 0.01 else 4,
                "ANGLE",
            )
            data.shade_smooth()
            data.set_sharp_from_angle(angle=0.6)
        elif part.smooth:
            data.set_sharp_from_angle(angle=1.0)
        return mesh

    def _light(self, scene: Scene) -> None:
        light = scene.lighting
        self._scene.world = _world(self._bpy, scene)
        if light.sun_strength:
            sun = self._bpy.data.lights.new("sun", "SUN")
            sun.energy, sun.angle, sun.color = light.sun_strength, 0.02, (1.0, 0.93, 0.82)
            lamp = self._bpy.data.objects.new("sun", sun)
            lamp.rotation_euler = (np.pi / 2 - light.sun_elevation, 0.0, -light.sun_azimuth)
            self._scene.collection.objects.link(lamp)
        for opening in scene.room.openings:
            if opening.low > 0:
                self._window_light(scene, opening)

    def _window_light(self, scene: Scene, opening: Opening) -> None:
        """What the sky sends through a window, as a lamp in the opening: far less noise than the sky itself."""
        light, height = scene.lighting, opening.high - opening.low
        area = self._bpy.data.lights.new("window", "AREA")
        area.shape, area.size, area.size_y = "RECTANGLE", opening.width, height
        # A lamp's radiance is its power over pi and its area; half of what a window sees is ground or trees.
        area.energy = 0.7 * light.sky_strength * np.pi * opening.width * height
        area.color = light.sky
        lamp = self._bpy.data.objects.new("window", area)
        x, y = scene.room.to_wall(opening.wall, opening.along, -WALL * 0.95)
        lamp.location = (x, y, opening.low + height / 2)
        lamp.rotation_euler = (-np.pi / 2, 0.0, YAW[opening.wall])
        lamp.visible_camera = False
        self._scene.collection.objects.link(lamp)


def _world(bpy: ModuleType, scene: Scene) -> Any:
    """Sky above a ragged line of trees above a lawn; rays other than the camera's get almost nothing of it."""
    light = scene.lighting
    world = bpy.data.worlds.new("world")
    # A map of where the sky is bright, made anew for every scene: its usual size takes longer than two frames.
    world.cycles.sampling_method, world.cycles.sample_map_resolution = "MANUAL", 256
    tree = world.node_tree
    tree.nodes.clear()
    new, link = tree.nodes.new, tree.links.new
    direction = new("ShaderNodeTexCoord").outputs["Generated"]
    split = new("ShaderNodeSeparateXYZ")
    link(direction, split.inputs[0])
    noise = new("ShaderNodeTexNoise")
    noise.inputs["Scale"].default_value, noise.inputs["Detail"].default_value = 7.0, 5.0
    link(direction, noise.inputs["Vector"])
    ragged = new("ShaderNodeMath")
    ragged.operation = "MULTIPLY_ADD"
    link(noise.outputs["Fac"], ragged.inputs[0])
    ragged.inputs[1].default_value = -0.22
    link(split.outputs["Z"], ragged.inputs[2])
    ramp = new("ShaderNodeValToRGB")
    link(ragged.outputs[0], ramp.inputs["Fac"])
    elements = ramp.color_ramp.elements
    elements[0].position, elements[1].position = 0.0, 0.02
    dim = light.sky_strength
    elements[0].color = (*_scaled((0.07, 0.095, 0.045), dim), 1.0)
    elements[1].color = (*_scaled(_linear(light.sky), dim), 1.0)
    leaves = new("ShaderNodeTexNoise")
    leaves.inputs["Scale"].default_value = 60.0
    link(direction, leaves.inputs["Vector"])
    speckle = new("ShaderNodeMix")
    speckle.data_type, speckle.blend_type = "RGBA", "MULTIPLY"
    speckle.inputs["Factor"].default_value = 0.5
    link(ramp.outputs["Color"], speckle.inputs["A"])
    link(leaves.outputs["Fac"], speckle.inputs["B"])
    path, strength = new("ShaderNodeLightPath"), new("ShaderNodeMath")
    strength.operation = "MULTIPLY_ADD"
    link(path.outputs["Is Camera Ray"], strength.inputs[0])
    strength.inputs[1].default_value, strength.inputs[2].default_value = 0.95, 0.05
    background, output = new("ShaderNodeBackground"), new("ShaderNodeOutputWorld")
    link(speckle.outputs["Result"], background.inputs["Color"])
    link(strength.outputs[0], background.inputs["Strength"])
    link(background.outputs[0], output.inputs[0])
    return world


class Shader:
    """A node material for a ``Material``: one method a texture."""

    def __init__(self, bpy: ModuleType, material: Material, axes: tuple[int, int, int]) -> None:
        """``axes``: the part's shortest, middle and longest direction, 0 to 2."""
        self.node_material = bpy.data.materials.new(material.texture)
        self._m, self._tree = material, self.node_material.node_tree
        self._thin, _, self._long = axes
        self._surface = next(node for node in self._tree.nodes if node.type == "BSDF_PRINCIPLED")
        self._set("Base Color", (*_linear(material.rgb), 1.0))
        self._set("Roughness", material.roughness)
        self._set("Metallic", material.metallic)
        self._place = self._coordinates()
        getattr(self, f"_{material.texture}")()
        if material.emission:
            self._set("Emission Strength", material.emission)
            colour = self._surface.inputs["Base Color"]
            if colour.links:
                self._link(colour.links[0].from_socket, self._surface.inputs["Emission Color"])
            else:
                self._set("Emission Color", (*_linear(material.rgb), 1.0))

    def _set(self, name: str, value: object) -> None:
        self._surface.inputs[name].default_value = value

    def _node(self, kind: str, **inputs: object) -> Any:
        node = self._tree.nodes.new(f"ShaderNode{kind}")
        for name, value in inputs.items():
            node.inputs[name.replace("_", " ")].default_value = value
        return node

    def _link(self, source: Any, target: Any) -> None:
        self._tree.links.new(source, target)

    def _coordinates(self) -> Any:
        """Metres in the object's frame, moved by the material's seed."""
        where = self._node("TexCoord")
        mapping = self._node("Mapping")
        shift = np.random.default_rng(self._m.seed).uniform(-50, 50, 3)
        # A shift by whole tiles alone, so that a seed never cuts a tile.
        mapping.inputs["Location"].default_value = tuple(
            shift if self._m.texture not in ("tiles", "planks", "screen") else (0, 0, 0)
        )
        self._link(where.outputs["Object"], mapping.inputs["Vector"])
        return mapping.outputs["Vector"]

    def _stretched(self, along: float, across: float, axis: int) -> Any:
        mapping = self._node("Mapping")
        mapping.inputs["Scale"].default_value = tuple(along if k == axis else across for k in range(3))
        self._link(self._place, mapping.inputs["Vector"])
        return mapping.outputs["Vector"]

    def _noise(self, scale: float, detail: float = 3.0, place: Any = None, distortion: float = 0.0) -> Any:
        node = self._node("TexNoise", Scale=scale, Detail=detail, Distortion=distortion)
        self._link(place if place is not None else self._place, node.inputs["Vector"])
        return node.outputs["Fac"]

    def _mix(self, factor: Any, low: RGB, high: RGB, start: float = 0.35, end: float = 0.65) -> Any:
        """From one colour to the other while the factor goes from start to end."""
        ramp = self._node("ValToRGB")
        self._link(factor, ramp.inputs["Fac"])
        for element, place, rgb in zip(ramp.color_ramp.elements, (start, end), (low, high), strict=True):
            element.position, element.color = place, (*_linear(rgb), 1.0)
        return ramp.outputs["Color"]

    def _bump(self, height: Any, strength: float, distance: float = 0.001) -> None:
        bump = self._node("Bump", Strength=strength, Distance=distance)
        self._link(height, bump.inputs["Height"])
        self._link(bump.outputs["Normal"], self._surface.inputs["Normal"])

    def _paint(self, colour: Any) -> None:
        self._link(colour, self._surface.inputs["Base Color"])

    def _second(self, factor: float = 0.8) -> RGB:
        r, g, b = self._m.rgb
        return self._m.second or (r * factor, g * factor, b * factor)

    def _plain(self) -> None:
        if not self._m.emission and not self._m.metallic:
            r, g, b = self._m.rgb
            self._paint(self._mix(self._noise(6.0), (r * 0.97, g * 0.97, b * 0.97), self._m.rgb))
        if self._m.roughness < 0.2 and not self._m.metallic:
            self._set("Coat Weight", 0.3)

    def _wood(self) -> None:
        s = self._m.scale
        grain = self._noise(9.0 / s, 6.0, self._stretched(0.6, 7.0, self._long), distortion=1.2)
        self._paint(self._mix(grain, self._second(), self._m.rgb, 0.3, 0.68))
        self._bump(grain, 0.12)

    def _fabric(self) -> None:
        s = self._m.scale
        weave, blotch = self._noise(420.0 / s, 2.0), self._noise(5.0)
        self._paint(self._mix(blotch, self._second(0.95), self._m.rgb, 0.3, 0.6))
        self._bump(weave, 0.35, 0.002 * s)
        self._set("Sheen Weight", 0.25)

    def _stone(self) -> None:
        self._paint(self._mix(self._noise(70.0, 8.0), self._second(), self._m.rgb, 0.36, 0.5))

    def _bricks(self, width: float, height: float, gap: float, offset: float, vary: float) -> None:
        """Bricks in the part's plane; upright ones lie with their rows level."""
        bricks = self._node("TexBrick")
        bricks.offset, bricks.squash = offset, 1.0
        r, g, b = self._m.rgb
        bricks.inputs["Color1"].default_value = (*_linear((r, g, b)), 1.0)
        bricks.inputs["Color2"].default_value = (*_linear((r * vary, g * vary, b * vary)), 1.0)
        bricks.inputs["Mortar"].default_value = (*_linear(self._second()), 1.0)
        bricks.inputs["Scale"].default_value, bricks.inputs["Mortar Size"].default_value = 1.0, gap
        bricks.inputs["Brick Width"].default_value, bricks.inputs["Row Height"].default_value = width, height
        split, plane = self._node("SeparateXYZ"), self._node("CombineXYZ")
        self._link(self._place, split.inputs[0])
        for target, axis in enumerate(k for k in range(3) if k != self._thin):
            self._link(split.outputs[axis], plane.inputs[target])
        self._link(plane.outputs[0], bricks.inputs["Vector"])
        self._paint(bricks.outputs["Color"])
        self._bump(bricks.outputs["Fac"], -0.4, 0.002)

    def _tiles(self) -> None:
        self._bricks(self._m.scale, self._m.scale, 0.003, 0.0, 0.95)

    def _planks(self) -> None:
        self._bricks(1.1, 0.12, 0.0016, 0.43, 0.72)
        grain = self._noise(10.0, 6.0, self._stretched(0.7, 8.0, 0), distortion=1.0)
        shade = self._node("Mix")
        shade.data_type, shade.blend_type = "RGBA", "MULTIPLY"
        shade.inputs["Factor"].default_value = 0.55
        self._link(self._surface.inputs["Base Color"].links[0].from_socket, shade.inputs["A"])
        self._link(self._mix(grain, (0.6, 0.56, 0.52), (1.0, 1.0, 1.0), 0.3, 0.62), shade.inputs["B"])
        self._paint(shade.outputs["Result"])

    def _plaster(self) -> None:
        self._bump(self._noise(160.0, 4.0), 0.12)
        r, g, b = self._m.rgb
        self._paint(self._mix(self._noise(0.8), (r * 0.96, g * 0.96, b * 0.95), self._m.rgb))

    def _brushed(self) -> None:
        streaks = self._noise(60.0, 4.0, self._stretched(0.4, 14.0, self._long))
        self._set("Roughness", 0.32)
        r, g, b = self._m.rgb
        self._paint(self._mix(streaks, (r * 0.86, g * 0.86, b * 0.86), self._m.rgb))

    def _glass(self) -> None:
        self._set("Transmission Weight", 1.0)
        self._set("IOR", 1.45)
        # Light passes straight through for shadows: refraction would leave the table dark without caustics.
        path, clear, mix = self._node("LightPath"), self._node("BsdfTransparent"), self._node("MixShader")
        clear.inputs["Color"].default_value = (*_linear(self._m.rgb), 1.0)
        output = next(node for node in self._tree.nodes if node.type == "OUTPUT_MATERIAL")
        self._link(path.outputs["Is Shadow Ray"], mix.inputs[0])
        self._link(self._surface.outputs[0], mix.inputs[1])
        self._link(clear.outputs[0], mix.inputs[2])
        self._link(mix.outputs[0], output.inputs[0])

    def _foliage(self) -> None:
        self._paint(self._mix(self._noise(25.0), self._m.rgb, self._second()))
        self._set("Subsurface Weight", 0.08)

    def _skin(self) -> None:
        self._set("Subsurface Weight", 0.15)
        self._set("Subsurface Scale", 0.01)

    def _fruit(self) -> None:
        s = self._m.scale
        self._paint(self._mix(self._noise(45.0 / s, 5.0), self._second(), self._m.rgb, 0.28, 0.52))
        if s < 1:
            self._bump(self._noise(900.0), 0.25)

    def _stripes(self) -> None:
        split = self._node("SeparateXYZ")
        self._link(self._place, split.inputs[0])
        wave = self._node("Math")
        wave.operation = "SINE"
        turns = self._node("Math")
        turns.operation = "MULTIPLY"
        turns.inputs[1].default_value = 2 * np.pi / (0.14 * self._m.scale)
        self._link(split.outputs["X"], turns.inputs[0])
        self._link(turns.outputs[0], wave.inputs[0])
        self._paint(self._mix(wave.outputs[0], self._second(), self._m.rgb, 0.0, 0.1))

    def _picture(self) -> None:
        """Blots of two colours and what lies between: an abstract print or a label."""
        self._paint(
            self._mix(self._noise(3.0, 2.0, self._own_size(), distortion=1.5), self._m.rgb, self._second(), 0.4, 0.6)
        )

    def _view(self) -> None:
        """A landscape: sky, hills and ground, each in shades of its own."""
        place = self._own_size()
        split, sum_ = self._node("SeparateXYZ"), self._node("Math")
        self._link(self._node("TexCoord").outputs["Generated"], split.inputs[0])
        sum_.operation = "MULTIPLY_ADD"
        self._link(self._noise(2.5, 6.0, place), sum_.inputs[0])
        sum_.inputs[1].default_value = 0.7
        self._link(split.outputs["Z"], sum_.inputs[2])
        ramp = self._node("ValToRGB")
        self._link(sum_.outputs[0], ramp.inputs["Fac"])
        ramp.color_ramp.interpolation = "EASE"
        stops = [
            (0.45, (0.25, 0.20, 0.10)),
            (0.62, (0.14, 0.26, 0.09)),
            (0.8, self._second()),
            (0.84, self._m.rgb),
            (1.0, (0.80, 0.88, 0.95)),
        ]
        elements = ramp.color_ramp.elements
        while len(elements) < len(stops):
            elements.new(0.5)
        for element, (position, rgb) in zip(elements, stops, strict=True):
            element.position, element.color = position, (*_linear(rgb), 1.0)
        self._paint(ramp.outputs["Color"])

    def _own_size(self) -> Any:
        """From 0 to 1 over the object, moved by the material's seed."""
        mapping = self._node("Mapping")
        mapping.inputs["Location"].default_value = tuple(np.random.default_rng(self._m.seed).uniform(-50, 50, 3))
        self._link(self._node("TexCoord").outputs["Generated"], mapping.inputs["Vector"])
        return mapping.outputs["Vector"]

    def _screen(self) -> None:
        """A computer's screen: windows with text on a coloured ground."""
        where, tilt = self._node("TexCoord"), self._node("Mapping")
        # The screen's own width and height, whichever axes it lies in.
        self._link(where.outputs["Generated"], tilt.inputs["Vector"])
        tilt.inputs["Rotation"].default_value = (np.pi / 2, 0, 0)
        bricks = self._node("TexBrick")
        bricks.offset = 0.37
        seed = np.random.default_rng(self._m.seed)
        bricks.inputs["Color1"].default_value = (0.85, 0.86, 0.88, 1.0)
        bricks.inputs["Color2"].default_value = (*_linear(self._m.rgb), 1.0)
        bricks.inputs["Mortar"].default_value = (*_linear(self._second()), 1.0)
        bricks.inputs["Scale"].default_value = 1.0
        bricks.inputs["Mortar Size"].default_value = float(seed.uniform(0.01, 0.05))
        bricks.inputs["Brick Width"].default_value = float(seed.uniform(0.35, 0.7))
        bricks.inputs["Row Height"].default_value = float(seed.uniform(0.12, 0.4))
        self._link(tilt.outputs["Vector"], bricks.inputs["Vector"])
        self._paint(bricks.outputs["Color"])


def _linear(rgb: RGB) -> RGB:
    """sRGB to linear light."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return r, g, b


def _scaled(rgb: RGB, factor: float) -> RGB:
    return rgb[0] * factor, rgb[1] * factor, rgb[2] * factor


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Blender's own lines off the terminal."""
    sys.stdout.flush()
    saved, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(nowhere)
