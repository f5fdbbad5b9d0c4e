"""Visible parts, merged as far as possible: one per body, and one more for each texture on the body."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.meshes.simplify import FAR_TOLERANCE, NEAR_TOLERANCE, simplify
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.render_inputs import ROBOT, RenderPart
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.builder import SceneBuilder, parse_usd
from nimbus.datagen.simulate.newton_library import newton
from nimbus.datagen.usd.stage import StageInfo


def build_scene_parts(stage: StageInfo, robot: Robot) -> tuple[RenderPart, ...]:
    """Return the robot links and all static parts: fixtures, table, floor and backdrop."""
    return _scene_parts(stage.content_hash, _Key(stage, robot))


def build_object_parts(item: PlacedObject) -> tuple[RenderPart, ...]:
    """Return the parts of one object; its moving parts are labeled separately, such as ``cabinet_0.drawer_0``."""
    parts = _object_parts(item.library, item.kind, item.variant, item.scale)
    names = {part.body: part_label(item.name, part.body) if part.body else item.name for part in parts}
    bodies, offsets = _bind_vertices(item)
    return tuple(
        replace(
            part,
            instance=names[part.body],
            body=names[part.body],
            vertex_bodies=bodies,
            vertex_offsets=offsets,
        )
        for part in parts
    )


def _bind_vertices(item: PlacedObject) -> tuple[tuple[str, ...], FloatArray | None]:
    """Return the body of each vertex of a flexible object, and the positions (V, 3) in these bodies [m]."""
    model = open_library(item.library).model(item.kind, item.variant, item.scale)
    if model.sheet:
        return tuple(part_label(item.name, str(vertex)) for vertex in range(model.sheet.count)), None
    if bodies := model.chain or model.heap:
        owners, offsets = bodies.skin()
        return tuple(part_label(item.name, str(owner)) for owner in owners), offsets
    return (), None


class _Key:
    """Cache key for a stage with unhashable mappings; equal robots compare equal."""

    def __init__(self, stage: StageInfo, robot: Robot) -> None:
        self.stage, self.robot = stage, robot

    def __hash__(self) -> int:
        return hash((str(self.stage.path), self.robot.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (self.stage.path, self.robot) == (other.stage.path, other.robot)


@lru_cache(maxsize=4)
def _scene_parts(content_hash: str, key: _Key) -> tuple[RenderPart, ...]:
    stage, robot = key.stage, key.robot
    builder = SceneBuilder(stage, robot, visuals=True).world([])
    static = {path: role for role, paths in stage.roles.items() for path in paths}

    def owner(shape: int) -> tuple[str, str]:
        body = builder.shape_body[shape]
        if body >= 0:
            label = builder.body_label[body]
            return (label if label in stage.fixtures else ROBOT), label
        path = builder.shape_label[shape]
        roles = [role for prefix, role in static.items() if path == prefix or path.startswith(prefix + "/")]
        return (roles[0] if roles else "scene"), ""

    parts = _merge(builder, owner, coarse=simplify_bodies(stage, robot, builder))
    return tuple(
        replace(part, is_furnishing=True, casts_shadow=part.instance not in stage.flat)
        if part.instance in stage.furnishings
        else part
        for part in parts
    )


def simplify_bodies(stage: StageInfo, robot: Robot, builder: newton.ModelBuilder) -> dict[str, float]:
    """Return the tolerances of the robot's links [m]; they are smaller for the hand, because of wrist cameras."""
    bodies = {builder.body_label[body] for body in builder.shape_body if body >= 0} - set(stage.fixtures)
    return {body: NEAR_TOLERANCE if body in robot.gripper_links else FAR_TOLERANCE for body in sorted(bodies)}


@lru_cache(maxsize=64)
def _object_parts(library: str, kind: str, variant: int, scale: float) -> tuple[RenderPart, ...]:
    builder = parse_usd(open_library(library).usd_path(kind, variant, scale), visuals=True)
    names = ["", *(label.rsplit("/", 1)[-1] for label in builder.body_label[1:])]
    return tuple(_merge(builder, lambda shape: (kind, names[builder.shape_body[shape]])))


def _merge(
    builder: newton.ModelBuilder, owner: Any, *, coarse: Mapping[str, float] | None = None
) -> Iterable[RenderPart]:
    """Join all untextured shapes of one owner; their colors become a palette texture.

    Untextured shapes of the bodies in ``coarse`` are simplified within the tolerance of each body.
    """
    plain: dict[tuple[str, str], list[Triangles]] = {}
    for shape in range(builder.shape_count):
        if not builder.shape_flags[shape] & newton.ShapeFlags.VISIBLE:
            continue
        instance, body = owner(shape)
        mesh = _as_mesh(builder, shape)
        texture = getattr(mesh, "texture", None)
        color = builder.shape_color[shape]
        triangles = Triangles.of_mesh(mesh, _matrix(builder.shape_transform[shape]), _scale(builder, shape))
        if texture is None:
            if coarse and body in coarse:
                # Textured shapes are not simplified, because their texture seams would have to be kept.
                triangles = simplify(triangles, tolerance=coarse[body])
            plain.setdefault((instance, body), []).append(triangles.painted(color))
        else:
            yield RenderPart(
                instance=instance,
                body=body,
                triangles=triangles,
                image=load_image(texture),
            )
    for (instance, body), pieces in plain.items():
        merged, image = Triangles.concatenate(pieces).with_palette()
        yield RenderPart(instance=instance, body=body, triangles=merged, image=image)


def _as_mesh(builder: newton.ModelBuilder, shape: int) -> newton.Mesh:
    kind, (a, b, c) = newton.GeoType(builder.shape_type[shape]), builder.shape_scale[shape]
    source = builder.shape_source[shape]
    if isinstance(source, newton.Mesh):
        return source
    z = newton.Axis.Z
    if kind == newton.GeoType.BOX:
        return newton.Mesh.create_box(a, b, c, compute_inertia=False)
    if kind == newton.GeoType.SPHERE:
        return newton.Mesh.create_sphere(a, compute_inertia=False)
    if kind == newton.GeoType.CYLINDER:
        return newton.Mesh.create_cylinder(a, b, up_axis=z, compute_inertia=False)
    if kind == newton.GeoType.CAPSULE:
        return newton.Mesh.create_capsule(a, b, up_axis=z, compute_inertia=False)
    if kind == newton.GeoType.CONE:
        return newton.Mesh.create_cone(a, b, up_axis=z, compute_inertia=False)
    raise ValueError(f"cannot draw a {kind.name} ({builder.shape_label[shape]})")


def _scale(builder: newton.ModelBuilder, shape: int) -> NDArray[np.float64]:
    is_mesh = isinstance(builder.shape_source[shape], newton.Mesh)
    return np.array(builder.shape_scale[shape], dtype=float) if is_mesh else np.ones(3)


def _matrix(transform: Any) -> NDArray[np.float64]:
    from nimbus.datagen.geometry.transforms import make_transform

    x, y, z, qx, qy, qz, qw = (float(value) for value in transform)
    return make_transform((x, y, z), (qw, qx, qy, qz))


def load_image(texture: Any) -> NDArray[np.uint8]:
    """Return the image (H, W, 3) of a path or an array."""
    if isinstance(texture, str | os.PathLike):
        return _read_image(Path(texture))
    image = np.asarray(texture)
    image = image if image.dtype == np.uint8 else np.rint(image * 255.0).astype(np.uint8)
    return (
        image[..., :3]
        if image.ndim == 3 and image.shape[2] >= 3
        else np.repeat(image.reshape(*image.shape[:2], 1), 3, 2)
    )


@lru_cache(maxsize=32)
def _read_image(path: Path) -> NDArray[np.uint8]:
    """Read an image once for all parts that show it, which then share its texels on the device."""
    from nimbus.datagen.media.picture_files import open_picture

    return np.asarray(open_picture(path).convert("RGB"))
