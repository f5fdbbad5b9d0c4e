"""Renders a stage as one world with the default renderer, with any regions; reads it with USD alone."""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.episode.layout import Camera, VisualLayout
from nimbus.datagen.episode.observation import CameraFrames, Labels
from nimbus.datagen.geometry.transforms import quat_from_matrix
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart
from nimbus.datagen.render.stacked import StackedRenderer
from nimbus.datagen.usd.robot import robot_usd
from nimbus.datagen.usd.stack_layout import StackLayout
from nimbus.datagen.usd.stacked_stage import RegionPaths, write_stacked_stage
from nimbus.datagen.usd.visual_assets import VisualAssets, write_visual_assets
from tests.support.render_scene import layout, stage_and_robot, states

CUBE = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
CUBE_FACES = np.array(
    [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4)]
    + [(1, 5, 7), (1, 7, 3)]
)


def visual_assets(folder: Path) -> VisualAssets:
    """Return the assets of the scene of these tests."""
    stage, robot = stage_and_robot()
    fixtures = {name: fixture.prim_path for name, fixture in stage.fixtures.items()}
    return write_visual_assets(stage.path, robot_usd(robot), fixtures, layout().physical.objects, folder)


def _pieces(root: Any) -> list[Triangles]:
    """Return everything below a prim, in its frame."""
    from pxr import Usd, UsdGeom

    found = []
    cache = UsdGeom.XformCache()
    for prim in Usd.PrimRange(root):
        if prim.IsA(UsdGeom.Mesh):
            mesh: Any = UsdGeom.Mesh(prim)
            points = np.array(mesh.GetPointsAttr().Get(), dtype=float)
            counts, corners = mesh.GetFaceVertexCountsAttr().Get(), list(mesh.GetFaceVertexIndicesAttr().Get())
            faces, start = [], 0
            for count in counts:
                fan = corners[start : start + count]
                faces += [(fan[0], fan[i], fan[i + 1]) for i in range(1, count - 1)]
                start += count
        elif prim.IsA(UsdGeom.Cube):
            points, faces = CUBE * float(UsdGeom.Cube(prim).GetSizeAttr().Get()), CUBE_FACES.tolist()
        elif prim.IsA(UsdGeom.Gprim):
            raise AssertionError(f"{prim.GetPath()} is a {prim.GetTypeName()}")
        else:
            continue
        matrix, _ = cache.ComputeRelativeTransform(prim, root)
        world = np.array(matrix).T
        found.append(_triangles(points @ world[:3, :3].T + world[:3, 3], np.array(faces), world[:3, :3]))
    return found


def _triangles(points: np.ndarray, faces: np.ndarray, rotation: np.ndarray) -> Triangles:
    if np.linalg.det(rotation) < 0:
        faces = faces[:, ::-1]
    corners = points[faces].reshape(-1, 3)
    edges = corners.reshape(-1, 3, 3)
    normals = np.repeat(np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0]), 3, axis=0)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    count = len(corners)
    return Triangles(
        vertices=corners.astype(np.float32),
        faces=np.arange(count, dtype=np.int32).reshape(-1, 3),
        normals=normals.astype(np.float32),
        uvs=np.zeros((count, 2), np.float32),
        colors=np.ones((count, 3), np.float32),
    )


_GREY = np.full((1, 1, 3), 128, np.uint8)


@cache
def _thing(asset: str) -> Triangles | None:
    """Read the shape of an asset file; shared, so that it is uploaded once."""
    from pxr import Usd

    stage: Any = Usd.Stage.Open(asset)
    pieces = _pieces(stage.GetDefaultPrim())
    return Triangles.concatenate(pieces) if pieces else None


def _parts(stage: Any, regions: Sequence[RegionPaths], assets: VisualAssets) -> Iterator[tuple[RenderPart, np.ndarray]]:
    """Yield every object of every region with its world matrix, from the stage's own references."""
    from pxr import UsdGeom

    world = UsdGeom.XformCache()
    for region in regions:
        for name, place in {"scene": f"{region.root}/scene", **region.bodies}.items():
            prim = stage.GetPrimAtPath(place)
            arcs = prim.GetPrimStack()
            asset = next(spec.layer.realPath for spec in arcs if spec.layer != stage.GetRootLayer())
            assert Path(asset).samefile(assets.scene if name == "scene" else assets.bodies[name])
            triangles = _thing(asset)
            if triangles is not None:
                body = place.replace("/", "_")
                part = RenderPart(instance=name, body=body, triangles=triangles, image=_GREY)
                yield part, np.array(world.GetLocalToWorldTransform(prim)).T


def _cameras(stage: Any, regions: Sequence[RegionPaths], sizes: Mapping[str, tuple[int, int]]) -> Iterator[Camera]:
    """Return the cameras of the stage."""
    from pxr import UsdGeom

    world = UsdGeom.XformCache()
    for number, region in enumerate(regions):
        for name, place in region.cameras.items():
            prim = stage.GetPrimAtPath(place)
            lens: Any = UsdGeom.Camera(prim)
            matrix = np.array(world.GetLocalToWorldTransform(prim)).T
            aperture, focal = lens.GetVerticalApertureAttr().Get(), lens.GetFocalLengthAttr().Get()
            width, height = sizes[name]
            yield Camera(
                name=f"{number}/{name}",
                mount="",
                position=tuple(matrix[:3, 3]),
                wxyz=quat_from_matrix(matrix[:3, :3]),
                vertical_fov=2 * math.atan(0.5 * aperture / focal),
                width=width,
                height=height,
            )


def render_as_one_world(
    path: Path, regions: Sequence[RegionPaths], assets: VisualAssets, sizes: Mapping[str, tuple[int, int]]
) -> tuple[dict[str, CameraFrames], tuple[str, ...]]:
    """Return every camera's frame, by ``<region>/<camera>``, and the meaning of the instance indices."""
    from pxr import Usd

    stage: Any = Usd.Stage.Open(str(path))
    found = list(_parts(stage, regions, assets))
    parts = [part for part, _ in found]
    names = ("background", *dict.fromkeys(part.instance for part in parts))
    labels = Labels(
        instance_names=names,
        instance_bodies=("",) * len(names),
        instance_semantics=np.arange(len(names), dtype=np.uint8),
        semantic_names=names,
        boxes_3d=np.full((len(names), 2, 3), np.nan),
    )
    shown = layout()
    visual = VisualLayout(light=shown.visual.light, cameras=tuple(_cameras(stage, regions, sizes)))
    renderer = StackedRenderer(stack=1, shadows=False, modalities=("rgb", "depth", "instance", "semantic"))
    renderer.load_inputs(RenderInputs(parts=tuple(parts), labels=labels, visual=visual))
    poses = np.stack([matrix for _, matrix in found])
    wxyz = np.array([quat_from_matrix(matrix[:3, :3]) for matrix in poses])
    return renderer.render([part.body for part in parts], poses[None, :, :3, 3], wxyz[None]), names


def write(path: Path, assets: VisualAssets, placed: StackLayout, cameras: Sequence[Camera], steps: list[int]):
    """Write the stacked stage of some steps."""
    names, positions, wxyz = states()
    poses = {"names": names, "positions": positions[steps], "wxyz": wxyz[steps]}
    return write_stacked_stage(path, assets, placed, cameras=cameras, **poses)
