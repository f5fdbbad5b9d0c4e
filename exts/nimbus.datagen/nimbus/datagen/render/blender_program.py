"""External renderer in Blender: Cycles draws scenes that arrive as lines of JSON; see docs/external-renderer.md.

It runs in a separate interpreter that has ``bpy`` and NumPy, and imports nothing of Nimbus. It is a single file,
because that interpreter runs isolated (``-I``) and cannot import modules from the program's folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

bpy: Any = None
"""Blender's module; :func:`main` imports it, so that it can answer with an error when it is missing."""
_BACKENDS = {"optix": "OPTIX", "cuda": "CUDA", "hip": "HIP", "metal": "METAL"}
"""Devices by their names in settings, the fastest first."""
_BOUNCES = {"max": 4, "diffuse": 2, "glossy": 2, "transmission": 2}
"""Largest numbers of light bounces; with fewer, rooms are visibly darker."""
_LAMP_POWER = 180.0
"""Power of a scene's lamp with color 1 [W]."""
_SAME_PLANE = 1e-4
"""Distance below which two faces count as lying in one plane [m]."""
_LAMP_RADIUS = 0.12
"""Radius of a scene's lamps [m], which makes shadows soft."""
_WITHOUT_SHADOW = ("floor", "backdrop", "ceiling")
"""Instances that cast no shadow when a sun lights a room, because its light must enter through them."""
_SUN_ANGLE = 0.05
"""Angular diameter of directional lights [rad]."""
_PINHOLE = 0.01
"""Width of the pixel filter for depth and masks [px]; it is so small that they are sampled at the center of a pixel."""
_FARTHEST = 1e6
"""Depth beyond which a pixel counts as empty [m]."""
_SHOULDER = 0.8
"""Linear light above which colors are compressed."""
_SENSOR = 36.0
"""Width of Blender's sensor [mm]."""
_PIXEL_TYPES = {0: ("<u4", 4), 1: ("<f2", 2), 2: ("<f4", 4)}
"""Types of EXR channels: NumPy type and bytes."""


class Engine:
    """Scene and settings of Blender.

    Args:
        options: ``samples``, ``device`` and ``threads``.

    Raises:
        ValueError: The device is not available.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        bpy.ops.wm.read_factory_settings(use_empty=True)
        self.device = self._choose(str(options.get("device", "auto")))
        self._bodies: dict[str, list[Any]] = {}

    def _choose(self, wanted: str) -> str:
        """Select the device, and check that Cycles has it; otherwise Cycles would silently render on the CPU."""
        preferences = bpy.context.preferences.addons["cycles"].preferences
        found = {}
        for name, backend in _BACKENDS.items():
            try:
                found[name] = [one for one in preferences.get_devices_for_type(backend) if one.type == backend]
            except (TypeError, ValueError):  # the backend of another platform
                found[name] = []
        if wanted == "auto":
            wanted = next((name for name, devices in found.items() if devices), "cpu")
        if wanted != "cpu" and not found.get(wanted):
            have = ", ".join([name for name, devices in found.items() if devices] + ["cpu"])
            raise ValueError(f"Blender finds no device for {wanted}, and would render on the CPU; it has: {have}")
        if wanted == "cpu":
            return "cpu"
        preferences.compute_device_type = _BACKENDS[wanted]
        for one in preferences.devices:
            one.use = one.type == _BACKENDS[wanted]
        return wanted

    def is_on_device(self) -> bool:
        """Test if Cycles still has the chosen device."""
        if self.device == "cpu":
            return True
        preferences = bpy.context.preferences.addons["cycles"].preferences
        is_active = preferences.compute_device_type == _BACKENDS[self.device] and preferences.has_active_device()
        return is_active and bpy.context.scene.cycles.device == "GPU"

    def load(self, message: Mapping[str, Any], folder: Path) -> None:
        """Replace the scene.

        Args:
            message: Request ``scene``.
            folder: Folder of its files.
        """
        bpy.ops.wm.read_factory_settings(use_empty=True)
        self._choose(self.device)
        self._bodies = {}
        scene = bpy.context.scene
        scene.render.engine = "CYCLES"
        scene.cycles.device = "CPU" if self.device == "cpu" else "GPU"
        scene.render.threads_mode, scene.render.threads = "FIXED", int(self._options.get("threads", 1))
        scene.render.use_persistent_data = True
        scene.render.film_transparent = False
        light = message["light"]
        images, index = BlenderImages(), {name: place for place, name in enumerate(message["instances"])}
        for part in message["parts"]:
            self._add_part(part, folder, images, index.get(part["instance"], 0), has_lamps=bool(message.get("lamps")))
        for lamp in message.get("lamps", []):
            _add_lamp(lamp)
        if not message.get("lamps"):
            for one in [light, *light.get("lamps", [])]:
                _add_sun(one["direction"], one["color"])
        _set_world(np.array(light["sky"], dtype=float), np.array(light["ground"], dtype=float))
        camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
        scene.collection.objects.link(camera)
        scene.camera = camera
        layer = bpy.context.view_layer
        layer.use_pass_z = layer.use_pass_object_index = True
        output = scene.render.image_settings
        if hasattr(output, "media_type"):  # Blender 5.0 and later
            output.media_type = "MULTI_LAYER_IMAGE"
        output.file_format, output.color_depth, output.exr_codec = "OPEN_EXR_MULTILAYER", "32", "NONE"

    def _add_part(
        self, part: Mapping[str, Any], folder: Path, images: BlenderImages, number: int, *, has_lamps: bool
    ) -> None:
        vertices, faces, normals, uvs, image = (
            np.load(folder / part[name], allow_pickle=False)
            for name in ("vertices", "faces", "normals", "uvs", "image")
        )
        mesh = bpy.data.meshes.new(part["instance"])
        mesh.vertices.add(len(vertices))
        mesh.vertices.foreach_set("co", np.ascontiguousarray(vertices, dtype=np.float32).ravel())
        mesh.loops.add(faces.size)
        mesh.loops.foreach_set("vertex_index", np.ascontiguousarray(faces, dtype=np.int32).ravel())
        mesh.polygons.add(len(faces))
        mesh.polygons.foreach_set("loop_start", np.arange(0, faces.size, 3, dtype=np.int32))
        mesh.polygons.foreach_set("use_smooth", np.ones(len(faces), dtype=bool))
        layer = mesh.uv_layers.new(name="uv")
        layer.data.foreach_set("uv", np.ascontiguousarray(uvs[faces.ravel()], dtype=np.float32).ravel())
        mesh.update(calc_edges=True)
        mesh.normals_split_custom_set_from_vertices(np.asarray(normals, dtype=np.float32).tolist())
        mesh.materials.append(_material(images.of(image), part.get("tint", (1, 1, 1)), part.get("glow", 0.0)))
        made = bpy.data.objects.new(part["instance"], mesh)
        made.pass_index = number
        made.visible_shadow = has_lamps or part["instance"] not in _WITHOUT_SHADOW
        bpy.context.scene.collection.objects.link(made)
        self._bodies.setdefault(part["body"], []).append(made)

    def pose(self, names: list[str], positions: np.ndarray, wxyz: np.ndarray) -> None:
        """Move the bodies.

        Args:
            names: B bodies.
            positions: (B, 3) [m]
            wxyz: (B, 4)
        """
        for name, position, quaternion in zip(names, positions, wxyz, strict=True):
            for made in self._bodies.get(name, []) if name else []:
                made.rotation_mode = "QUATERNION"
                made.location, made.rotation_quaternion = position, quaternion

    def draw(self, world_T_camera: np.ndarray, view: Mapping[str, Any], file: Path) -> tuple[np.ndarray, ...]:
        """Draw one view; return colors (H, W, 3) uint8, depth (H, W) float32 [m] and instance (H, W) uint8."""
        from mathutils import Matrix  # pyright: ignore[reportMissingImports]

        scene = bpy.context.scene
        width, height, matrix = view["width"], view["height"], np.array(view["intrinsics"])
        render, lens = scene.render, scene.camera.data
        render.resolution_x, render.resolution_y, render.resolution_percentage = width, height, 100
        lens.sensor_fit, lens.sensor_width = "HORIZONTAL", _SENSOR
        lens.lens = matrix[0, 0] * _SENSOR / width
        lens.shift_x = (width / 2 - matrix[0, 2]) / width
        lens.shift_y = (matrix[1, 2] - height / 2) / width
        lens.clip_start, lens.clip_end = 1e-3, 1e4
        pose = world_T_camera @ np.diag([1.0, -1.0, -1.0, 1.0])  # Blender looks along -z
        place, turn, _ = Matrix(pose.tolist()).decompose()
        scene.camera.rotation_mode = "QUATERNION"
        scene.camera.location, scene.camera.rotation_quaternion = place, turn
        self._set_quality(is_color=True)
        color = _rendered(scene, file)
        self._set_quality(is_color=False)
        exact = _rendered(scene, file)
        rgb = np.stack([_channel(color, f"Combined.{letter}") for letter in "RGB"], axis=-1)
        depth = _channel(exact, "Depth.Z", "Depth.V", "Z.V")
        depth = np.where(depth < _FARTHEST, depth, 0.0).astype(np.float32)
        instance = _channel(exact, "IndexOB.X", "IndexOB.V", "Object Index.X", "Object Index.V")
        return _srgb(rgb), depth, np.where(depth > 0, instance, 0).round().astype(np.uint8)

    def _set_quality(self, *, is_color: bool) -> None:
        cycles = bpy.context.scene.cycles
        cycles.samples = int(self._options.get("samples", 4)) if is_color else 1
        cycles.use_denoising, cycles.use_adaptive_sampling, cycles.seed = is_color, False, 0
        if is_color:
            cycles.denoiser = "OPTIX" if self.device == "optix" else "OPENIMAGEDENOISE"
            cycles.denoising_prefilter = "FAST"
            cycles.denoising_quality = "BALANCED"
        cycles.pixel_filter_type = "BLACKMAN_HARRIS" if is_color else "BOX"
        cycles.filter_width = 1.5 if is_color else _PINHOLE
        cycles.max_bounces = _BOUNCES["max"] if is_color else 0
        cycles.diffuse_bounces = _BOUNCES["diffuse"] if is_color else 0
        cycles.glossy_bounces = _BOUNCES["glossy"] if is_color else 0
        cycles.transmission_bounces = _BOUNCES["transmission"] if is_color else 0


class BlenderImages:
    """Images of a scene in Blender; equal arrays share one image."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def of(self, values: np.ndarray) -> Any:
        """Return the Blender image of sRGB values (H, W, 3), whose last row is the bottom one."""
        key = f"{values.shape}-{hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()}"
        if key not in self._known:
            height, width = values.shape[:2]
            made = bpy.data.images.new(key[-40:], width, height, alpha=False, float_buffer=False)
            made.colorspace_settings.name = "sRGB"
            texels = np.ones((height, width, 4), dtype=np.float32)
            texels[..., :3] = values[::-1].astype(np.float32) / 255.0
            made.pixels.foreach_set(texels.ravel())
            made.pack()
            self._known[key] = made
        return self._known[key]


def _material(image: Any, tint: Any, glow: float) -> Any:
    """Make a rough material, or one that emits the light of its image."""
    made = bpy.data.materials.new("part")
    made.use_nodes = True
    tree = made.node_tree
    tree.nodes.clear()
    picture, output = tree.nodes.new("ShaderNodeTexImage"), tree.nodes.new("ShaderNodeOutputMaterial")
    picture.image = image
    color = picture.outputs["Color"]
    linear = _linear(np.array(tint, dtype=float))
    if not np.allclose(linear, 1.0):
        mixed = tree.nodes.new("ShaderNodeVectorMath")
        mixed.operation = "MULTIPLY"
        tree.links.new(color, mixed.inputs[0])
        mixed.inputs[1].default_value = linear
        color = mixed.outputs[0]
    if glow > 0:
        shader = tree.nodes.new("ShaderNodeEmission")
        shader.inputs["Strength"].default_value = glow
        tree.links.new(color, shader.inputs["Color"])
        tree.links.new(shader.outputs["Emission"], output.inputs["Surface"])
        return made
    shader = tree.nodes.new("ShaderNodeBsdfPrincipled")
    shader.inputs["Roughness"].default_value = 0.7
    shader.inputs["Specular IOR Level"].default_value = 0.3
    tree.links.new(color, shader.inputs["Base Color"])
    # Faces in one plane would hide each other from the lamps, so a ray that has only just left a face passes through
    # the other one.
    path, is_near, mixed = (tree.nodes.new(f"ShaderNode{kind}") for kind in ("LightPath", "Math", "MixShader"))
    is_near.operation, is_near.inputs[1].default_value = "LESS_THAN", _SAME_PLANE
    tree.links.new(path.outputs["Ray Length"], is_near.inputs[0])
    tree.links.new(is_near.outputs[0], mixed.inputs[0])
    tree.links.new(shader.outputs["BSDF"], mixed.inputs[1])
    tree.links.new(tree.nodes.new("ShaderNodeBsdfTransparent").outputs[0], mixed.inputs[2])
    tree.links.new(mixed.outputs[0], output.inputs["Surface"])
    return made


def _add_lamp(lamp: Mapping[str, Any]) -> None:
    """Add a lamp of the scene at its position."""
    data = bpy.data.lights.new("lamp", "POINT")
    color, strongest = np.array(lamp["color"], dtype=float), max(*lamp["color"], 1e-6)
    data.color, data.energy = (color / strongest).tolist(), _LAMP_POWER * strongest
    data.shadow_soft_size = _LAMP_RADIUS
    made = bpy.data.objects.new("lamp", data)
    made.location = lamp["position"]
    bpy.context.scene.collection.objects.link(made)


def _add_sun(direction: Any, color: Any) -> None:
    """Add a directional light, scaled so that a white surface that faces it shows its color."""
    from mathutils import Vector  # pyright: ignore[reportMissingImports]

    strongest = max(*color, 0.0)
    if strongest <= 0:
        return
    data = bpy.data.lights.new("sun", "SUN")
    data.color, data.energy = (np.array(color) / strongest).tolist(), float(np.pi * strongest)
    data.angle = _SUN_ANGLE
    made = bpy.data.objects.new("sun", data)
    made.rotation_mode = "QUATERNION"
    made.rotation_quaternion = Vector(direction).to_track_quat("-Z", "Y")
    bpy.context.scene.collection.objects.link(made)


def _set_world(sky: np.ndarray, ground: np.ndarray) -> None:
    """Set the light from above and from below."""
    world = bpy.data.worlds.new("world")
    bpy.context.scene.world = world
    world.use_nodes = True
    tree = world.node_tree
    tree.nodes.clear()
    place, split = tree.nodes.new("ShaderNodeTexCoord"), tree.nodes.new("ShaderNodeSeparateXYZ")
    ramp, shader = tree.nodes.new("ShaderNodeValToRGB"), tree.nodes.new("ShaderNodeBackground")
    output, shift = tree.nodes.new("ShaderNodeOutputWorld"), tree.nodes.new("ShaderNodeMath")
    shift.operation = "MULTIPLY_ADD"  # maps -1..1 to 0..1
    shift.inputs[1].default_value = shift.inputs[2].default_value = 0.5
    brightest = max(*sky, *ground, 1e-6)
    ramp.color_ramp.elements[0].color = (*(ground / brightest), 1.0)
    ramp.color_ramp.elements[1].color = (*(sky / brightest), 1.0)
    shader.inputs["Strength"].default_value = brightest
    tree.links.new(place.outputs["Generated"], split.inputs[0])
    tree.links.new(split.outputs["Z"], shift.inputs[0])
    tree.links.new(shift.outputs[0], ramp.inputs[0])
    tree.links.new(ramp.outputs["Color"], shader.inputs["Color"])
    tree.links.new(shader.outputs["Background"], output.inputs["Surface"])


def _rendered(scene: Any, file: Path) -> dict[str, np.ndarray]:
    """Render the scene, and return the channels (H, W) of its file."""
    scene.render.filepath = str(file)
    bpy.ops.render.render(write_still=True)
    found = read_exr(file)
    file.unlink()
    return found


def _channel(channels: Mapping[str, np.ndarray], *endings: str) -> np.ndarray:
    """Find a channel by the end of its name; the beginning is the name of its layer."""
    for ending in endings:
        for name, values in channels.items():
            if name.lower() == ending.lower() or name.lower().endswith("." + ending.lower()):
                return values.astype(np.float32)
    raise ValueError(f"Blender wrote no channel {endings[0]}, it has: {', '.join(channels)}")


def read_exr(file: Path) -> dict[str, np.ndarray]:
    """Read the channels (H, W) of an uncompressed OpenEXR file of scan lines, of one part or several.

    Source: https://openexr.com/en/latest/OpenEXRFileLayout.html
    """
    data = file.read_bytes()
    magic, flags = struct.unpack_from("<2I", data)
    if magic != 20000630:
        raise ValueError("Blender wrote no EXR file")
    is_multipart, at, headers = bool(flags & 0x1000), 8, []
    while data[at]:
        header, at = _read_header(data, at)
        headers.append(header)
        if not is_multipart:
            break
    at += is_multipart
    found: dict[str, np.ndarray] = {}
    for header in headers:
        if header["compression"] != b"\0":
            raise ValueError("Blender compressed its EXR file")
        x0, y0, x1, y1 = struct.unpack("<4i", header["dataWindow"])
        width, height = x1 - x0 + 1, y1 - y0 + 1
        channels = _read_channels(header["channels"])
        found |= {name: np.empty((height, width), dtype=kind) for name, kind, _ in channels}
        for start in struct.unpack_from(f"<{height}q", data, at):
            place = start + 4 * is_multipart
            row = struct.unpack_from("<i", data, place)[0] - y0
            place += 8
            for name, kind, size in channels:
                found[name][row] = np.frombuffer(data, kind, width, place)
                place += width * size
        at += 8 * height
    return found


def _read_header(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    """Read the attributes of one part; return them and the offset of the first byte after them."""
    header = {}
    while data[at]:
        end = data.index(0, at)
        name = data[at:end].decode()
        end = data.index(0, end + 1)
        (size,) = struct.unpack_from("<i", data, end + 1)
        header[name] = data[end + 5 : end + 5 + size]
        at = end + 5 + size
    return header, at + 1


def _read_channels(raw: bytes) -> list[tuple[str, str, int]]:
    """Read the names, NumPy types and bytes of the channels of a part, in their order."""
    channels, at = [], 0
    while raw[at]:
        end = raw.index(0, at)
        channels.append((raw[at:end].decode(), *_PIXEL_TYPES[struct.unpack_from("<i", raw, end + 1)[0]]))
        at = end + 17
    return channels


def _linear(srgb: np.ndarray) -> np.ndarray:
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _srgb(light: np.ndarray) -> np.ndarray:
    """Convert linear light to sRGB bytes; light above the shoulder is compressed."""
    light = np.maximum(light, 0.0)
    over = np.maximum(light - _SHOULDER, 0.0)
    light = np.minimum(light, _SHOULDER) + (1 - _SHOULDER) * over / (over + 1 - _SHOULDER)
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.power(light, 1 / 2.4) - 0.055)
    return (255.0 * curve + 0.5).astype(np.uint8)


def render(engine: Engine, message: Mapping[str, Any], folder: Path, out: TextIO) -> dict[str, dict[str, str]]:
    """Draw the steps of a request; return the files of each camera."""
    positions, wxyz = (np.load(folder / message[name]) for name in ("body_positions", "body_wxyz"))
    poses = {view["name"]: np.load(folder / view["world_T_camera"]) for view in message["cameras"]}
    made: dict[str, list[tuple[np.ndarray, ...]]] = {name: [] for name in poses}
    for step in range(message["count"]):
        engine.pose(message["bodies"], positions[step], wxyz[step])
        for view in message["cameras"]:
            made[view["name"]].append(engine.draw(poses[view["name"]][step], view, folder / "blender.exr"))
            say(out, {"type": "alive"})
        if not engine.is_on_device():
            raise ValueError(f"Blender no longer renders on {engine.device}; write device: cpu to render there")
    files: dict[str, dict[str, str]] = {}
    for name, frames in made.items():
        files[name] = {}
        for kind, values in zip(("rgb", "depth", "instance"), zip(*frames, strict=True), strict=True):
            np.save(folder / f"{name}_{kind}.npy", np.stack(values))
            files[name][kind] = f"{name}_{kind}.npy"
    return files


def say(out: TextIO, message: Mapping[str, Any]) -> None:
    """Write one line."""
    out.write(json.dumps(message) + "\n")
    out.flush()


def main() -> None:
    """Answer each line of the input until it ends; Blender's own output goes to the log."""
    global bpy
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    folder, engine = Path(), None
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, Any] = {"type": "ready", "protocol": 1}
        try:
            if message["type"] == "hello":
                import bpy as module  # pyright: ignore[reportMissingImports]

                bpy, folder = module, Path(message["folder"])
                engine = Engine(message["options"])
                answer |= {"device": engine.device, "engine": f"Blender {bpy.app.version_string}"}
            elif message["type"] == "scene" and engine is not None:
                engine.load(message, folder)
            elif message["type"] == "render" and engine is not None:
                answer = {"type": "frames", "cameras": render(engine, message, folder, out)}
        except ImportError as error:
            answer = {"type": "error", "what": f"{sys.executable} has no Blender: {error}"}
        except ValueError as error:
            answer = {"type": "error", "what": str(error)}
        say(out, answer)


if __name__ == "__main__":
    main()
