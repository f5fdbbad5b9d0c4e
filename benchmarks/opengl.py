"""Scene of an episode in MuJoCo's OpenGL renderer, set up as a user of MuJoCo would do it.

Every visual shape of the stage, the robot and the objects is one geom: boxes are boxes, meshes are those of their files
or, for comparison, simplified like those of Nimbus, plain colors are colors, and images are textures. Light, cameras
and looks are those of the layout.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nimbus.datagen.episode.layout import Layout, SurfaceLook
from nimbus.datagen.meshes.simplify import simplify
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.render_parts import load_image, simplify_bodies
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.builder import SceneBuilder, parse_usd
from nimbus.datagen.simulate.newton_library import newton
from nimbus.datagen.textures.procedural import procedural_texture
from nimbus.datagen.usd.stage import StageInfo

mujoco: Any = importlib.import_module("mujoco")

_VISIBLE = int(newton.ShapeFlags.VISIBLE)
_ROOM = {"table": "table", "leg": "table", "floor": "floor", "backdrop": "backdrop"}
"""Surface of a fixed shape, by the first word of its name."""


@dataclass(frozen=True)
class Shape:
    """A visual shape and the body with which it moves."""

    builder: newton.ModelBuilder
    index: int
    body: str
    surface: SurfaceLook


def shapes(layout: Layout, stage: StageInfo, robot: Robot) -> Iterator[Shape]:
    """Return every visual shape of an episode."""
    looks = layout.visual.surfaces
    scene = SceneBuilder(stage, robot, visuals=True).world([])
    for index in _visible(scene):
        body = scene.shape_body[index]
        name = scene.body_label[body] if body >= 0 else ""
        word = scene.shape_label[index].rsplit("/", 1)[-1].split("_")[0]
        yield Shape(scene, index, name, looks.get(name or _ROOM.get(word, ""), SurfaceLook()))
    for item in layout.physical.objects:
        usd = open_library(item.library).usd_path(item.kind, item.variant)
        thing = parse_usd(usd, visuals=True)
        for index in _visible(thing):
            yield Shape(thing, index, item.name, looks.get(item.name, SurfaceLook()))


def _visible(builder: newton.ModelBuilder) -> list[int]:
    return [index for index in range(builder.shape_count) if builder.shape_flags[index] & _VISIBLE]


class OpenGL:
    """MuJoCo's renderer: shadow map 1024, no multisampling; the pose of every body is set explicitly."""

    def __init__(
        self, layout: Layout, stage: StageInfo, robot: Robot, *, shadows: bool, simplify: bool = False
    ) -> None:
        spec = mujoco.MjSpec()
        spec.visual.quality.shadowsize, spec.visual.quality.offsamples = 1024, 0
        camera = layout.visual.cameras[0]
        spec.visual.global_.offwidth, spec.visual.global_.offheight = camera.width, camera.height
        look = layout.visual.light
        light = spec.worldbody.add_light(dir=look.direction, pos=(0, 0, 3), castshadow=shadows)
        light.diffuse, light.specular = look.color, (0, 0, 0)
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        spec.visual.headlight.ambient, spec.visual.headlight.diffuse = look.sky, (0, 0, 0)
        spec.visual.headlight.specular = (0, 0, 0)
        spec.visual.map.znear = 0.002
        found = list(shapes(layout, stage, robot))
        mounts = {camera.mount for camera in layout.visual.cameras}
        names = sorted(({shape.body for shape in found} | mounts) - {""})
        bodies = {name: spec.worldbody.add_body(name=name, mocap=True) for name in names}
        coarse = simplify_bodies(stage, robot, found[0].builder) if simplify else {}
        for index, shape in enumerate(found):
            body = bodies.get(shape.body, spec.worldbody)
            _add_geom(spec, body, shape, f"shape_{index}", tolerance=coarse.get(shape.body))
        for camera in layout.visual.cameras:
            bodies.get(camera.mount, spec.worldbody).add_camera(
                name=camera.name, pos=camera.position, quat=camera.wxyz, fovy=math.degrees(camera.vertical_fov)
            )
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.places = {name: self.model.body(name).mocapid[0] for name in names}
        self.renderer = mujoco.Renderer(self.model, camera.height, camera.width)
        self.flags = {mujoco.mjtRndFlag.mjRND_SHADOW: shadows, mujoco.mjtRndFlag.mjRND_REFLECTION: False}
        for flag, value in self.flags.items():
            self.renderer.scene.flags[flag] = value

    def close(self) -> None:
        """Release the context; only then may a second one be made."""
        self.renderer.close()

    def render(self, names: tuple[str, ...], positions: np.ndarray, wxyz: np.ndarray, camera: str) -> list[np.ndarray]:
        """Render all steps; return RGB, depth and segmentation of the last one."""
        shown, renderer = [], self.renderer
        for step in range(len(positions)):
            for name, place in self.places.items():
                self.data.mocap_pos[place] = positions[step, names.index(name)]
                self.data.mocap_quat[place] = wxyz[step, names.index(name)]
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_camlight(self.model, self.data)
            renderer.update_scene(self.data, camera)
            shown = [renderer.render()]
            renderer.enable_depth_rendering()
            shown.append(renderer.render())
            renderer.disable_depth_rendering()
            renderer.enable_segmentation_rendering()
            shown.append(renderer.render())
            renderer.disable_segmentation_rendering()
        return shown


def _add_geom(spec: Any, body: Any, shape: Shape, name: str, *, tolerance: float | None) -> None:
    builder, index = shape.builder, shape.index
    x, y, z, *xyzw = np.asarray(builder.shape_transform[index], dtype=float)
    mesh, size = builder.shape_source[index], builder.shape_scale[index]
    geom = body.add_geom(name=name, pos=(x, y, z), quat=np.roll(xyzw, 1), contype=0, conaffinity=0)
    if isinstance(mesh, newton.Mesh):
        geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_MESH, name
        if tolerance and getattr(mesh, "texture", None) is None:
            mesh, size = _coarse(mesh, size, tolerance), (1.0, 1.0, 1.0)
        _add_mesh(spec, mesh, size, name, period=2.0 if shape.surface.texture else 0.0)
    else:
        kind = newton.GeoType(builder.shape_type[index])
        if kind != newton.GeoType.BOX:
            raise ValueError(f"no geom for a {kind.name}")
        geom.type, geom.size = mujoco.mjtGeom.mjGEOM_BOX, size
    image = _image(mesh, shape.surface)
    paint = (1.0, 1.0, 1.0) if shape.surface.texture else builder.shape_color[index] or (1.0, 1.0, 1.0)
    geom.rgba = (*(np.asarray(paint) * shape.surface.color), 1.0)
    if image is not None:
        texture = spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, nchannel=3)
        texture.width, texture.height = image.shape[1], image.shape[0]
        texture.data = np.ascontiguousarray(image).tobytes()
        material = spec.add_material(name=name)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
        geom.material = name


def _coarse(mesh: newton.Mesh, scale: Any, tolerance: float) -> newton.Mesh:
    """Return the mesh that Nimbus renders, with corners of equal position and normal merged into one vertex."""
    found = simplify(Triangles.of_mesh(mesh, np.eye(4), np.asarray(scale, dtype=float)), tolerance=tolerance)
    rows = np.concatenate([found.vertices, found.normals.round(2)], axis=1)
    rows, numbers = np.unique(rows, axis=0, return_inverse=True)
    faces = numbers.ravel()[found.faces].ravel()
    return newton.Mesh(rows[:, :3], faces, normals=rows[:, 3:], compute_inertia=False)


def _add_mesh(spec: Any, mesh: newton.Mesh, scale: Any, name: str, *, period: float) -> None:
    vertices = np.asarray(mesh.vertices, dtype=float)
    added = spec.add_mesh(name=name, uservert=vertices.ravel(), userface=np.asarray(mesh.indices), scale=scale)
    added.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    if mesh.normals is not None:
        added.usernormal = np.asarray(mesh.normals, dtype=float).ravel()
    uvs = np.asarray(mesh.uvs) if mesh.uvs is not None else None
    if period:
        thin = np.argsort(np.ptp(vertices, axis=0))[1:]
        uvs = vertices[:, np.sort(thin)] / period
    if uvs is not None and len(uvs) == len(vertices):
        added.usertexcoord = np.stack([uvs[:, 0], 1.0 - uvs[:, 1]], axis=1).astype(np.float32).ravel()


def _image(mesh: Any, surface: SurfaceLook) -> np.ndarray | None:
    if surface.texture:
        return procedural_texture(surface.texture, surface.texture_seed)
    texture = getattr(mesh, "texture", None)
    return None if texture is None else load_image(texture)
