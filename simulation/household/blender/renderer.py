"""Rendering of one scene from any camera pose."""

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

from simulation.household.blender.lights import add_lights
from simulation.household.blender.materials import node_material
from simulation.household.camera import Camera, CameraPose
from simulation.household.errors import HouseholdError
from simulation.household.materials import Material
from simulation.household.mesh import MeshPart
from simulation.household.room_mesh import room_parts
from simulation.household.scene import Scene


def require_bpy() -> None:
    """Check that Blender's module is installed, without importing it.

    A process that has imported it cannot start others that import it too, because it adds its own folders to their
    path.

    Raises:
        HouseholdError: it is not installed.
    """
    if find_spec("bpy") is None:
        raise HouseholdError(
            "rendering needs Blender's Python module: install it with Python 3.11 into an environment of its own, "
            "pip install '.[household]'"
        )


class BlenderRenderer:
    """A scene that is loaded into Blender. A process holds one at a time, because Blender has one global state."""

    def __init__(self, scene: Scene, camera: Camera, *, samples: int = 16, threads: int = 1) -> None:
        """Load a scene.

        Args:
            scene: the furnished room.
            camera: intrinsics.
            samples: light paths traced for each pixel.
            threads: CPU threads.

        Raises:
            HouseholdError: Blender's module is not installed.
        """
        require_bpy()
        import bpy

        self._bpy: ModuleType = bpy
        self._folder = tempfile.TemporaryDirectory(prefix="household-")
        with _silenced_stdout():
            bpy.ops.wm.read_factory_settings(use_empty=True)
            self._scene = bpy.context.scene
            self._node_materials: dict[tuple[Material, tuple[int, int, int]], Any] = {}
            self._configure_cycles(camera, samples, threads)
            self._configure_outputs()
            for part in room_parts(scene.room):
                self._add_part(part, instance=0)
            for placed in scene.objects:
                pose = placed.pose
                for part in placed.mesh.parts:
                    obj = self._add_part(part, instance=placed.id)
                    obj.location, obj.rotation_euler = (pose.x, pose.y, pose.z), (0.0, 0.0, pose.yaw)
            add_lights(bpy, self._scene, scene)
            self._camera = self._add_camera(camera)

    def render(self, pose: CameraPose, seed: int) -> tuple[NDArray[np.float32], NDArray[np.uint16]]:
        """Render a frame.

        Args:
            pose: of the camera.
            seed: of the path tracer's noise.

        Returns:
            Linear RGB light, unbounded, (H, W, 3); and the instance number of the object at each pixel, 0 for walls,
            floor, ceiling and the outside, (H, W).
        """
        self._camera.location = (pose.x, pose.y, pose.z)
        self._camera.rotation_euler = (np.pi / 2 + pose.pitch, 0.0, pose.heading - np.pi / 2)
        self._scene.cycles.seed = seed
        with _silenced_stdout():
            self._bpy.ops.render.render()
            light, index = self._read_output("light"), self._read_output("index")
        return light, np.rint(index[..., 0]).astype(np.uint16)

    def _configure_cycles(self, camera: Camera, samples: int, threads: int) -> None:
        render, cycles = self._scene.render, self._scene.cycles
        render.engine = "CYCLES"
        render.resolution_x, render.resolution_y, render.resolution_percentage = camera.width, camera.height, 100
        render.threads_mode, render.threads = "FIXED", threads
        render.use_persistent_data = True
        cycles.device, cycles.samples, cycles.use_adaptive_sampling = "CPU", samples, False
        cycles.use_denoising, cycles.denoiser, cycles.denoising_quality = True, "OPENIMAGEDENOISE", "BALANCED"
        cycles.max_bounces, cycles.diffuse_bounces, cycles.glossy_bounces = 8, 3, 3
        cycles.transmission_bounces, cycles.transparent_max_bounces = 6, 6
        cycles.caustics_reflective = cycles.caustics_refractive = False
        cycles.sample_clamp_indirect, cycles.blur_glossy = 4.0, 1.0

    def _configure_outputs(self) -> None:
        """Make Blender write the image and the object index as files of 32-bit floats."""
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

    def _add_camera(self, camera: Camera) -> Any:
        obj = self._bpy.data.objects.new("camera", self._bpy.data.cameras.new("camera"))
        obj.data.sensor_width, obj.data.clip_start = 36.0, 0.03
        obj.data.angle = camera.field_of_view
        self._scene.collection.objects.link(obj)
        self._scene.camera = obj
        return obj

    def _add_part(self, part: MeshPart, instance: int) -> Any:
        """Add a part of the object with an instance number; return Blender's object."""
        mesh = self._bpy.data.meshes.new("part")
        mesh.from_pydata(part.vertices.tolist(), [], [list(face) for face in part.faces])
        if part.smooth:
            mesh.shade_smooth()
        mesh.materials.append(self._node_material(part))
        obj = self._bpy.data.objects.new("part", mesh)
        obj.pass_index = instance
        self._scene.collection.objects.link(obj)
        if part.remesh:
            modifier = obj.modifiers.new("remesh", "REMESH")
            modifier.mode, modifier.voxel_size, modifier.use_smooth_shade = "VOXEL", part.remesh, True
            smooth = obj.modifiers.new("smooth", "SMOOTH")
            smooth.factor, smooth.iterations = 0.5, 6
        elif part.bevel:
            modifier = obj.modifiers.new("bevel", "BEVEL")
            modifier.width, modifier.segments = part.bevel, 2 if part.bevel < 0.01 else 4
            modifier.limit_method = "ANGLE"
            mesh.shade_smooth()
            mesh.set_sharp_from_angle(angle=0.6)
        elif part.smooth:
            mesh.set_sharp_from_angle(angle=1.0)
        return obj

    def _node_material(self, part: MeshPart) -> Any:
        """Return the node material of a part; parts of one material and orientation share it."""
        low, high = part.bounds
        shortest, _, longest = (int(axis) for axis in np.argsort(high - low))
        # Wood grain follows the longest axis, and tiles lie in the plane normal to the shortest.
        key = part.material, (shortest, 3 - shortest - longest, longest)
        if key not in self._node_materials:
            self._node_materials[key] = node_material(self._bpy, *key)
        return self._node_materials[key]

    def _read_output(self, name: str) -> NDArray[np.float32]:
        """Read and delete an output file, (H, W, 3)."""
        path = next(Path(self._folder.name).glob(f"{name}*.exr"))
        image = self._bpy.data.images.load(str(path))
        image.colorspace_settings.name = "Non-Color"
        width, height = image.size
        pixels = np.empty(width * height * 4, np.float32)
        image.pixels.foreach_get(pixels)
        self._bpy.data.images.remove(image)
        path.unlink()
        return pixels.reshape(height, width, 4)[::-1, :, :3].copy()


@contextmanager
def _silenced_stdout() -> Iterator[None]:
    """Discard what Blender itself prints, which bypasses ``sys.stdout``."""
    sys.stdout.flush()
    saved, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(null)
