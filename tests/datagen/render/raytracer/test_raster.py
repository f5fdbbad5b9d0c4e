import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.geometry.transforms import look_at, quat_to_matrix
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.render.raytracer import raster
from nimbus.datagen.render.raytracer.geometry import put_pieces
from nimbus.datagen.render.raytracer.kernel_data import DeviceScene, Raster
from nimbus.datagen.render.raytracer.pieces import cut
from nimbus.datagen.render.render_parts import build_object_parts, build_scene_parts
from tests.support.render_scene import LIGHT, STEPS, layout, render, stage_and_robot, states

WIDTH, HEIGHT, FOCAL = 40, 30, 25.0


def picture(points, faces, eye, rotation):
    """Render triangles for a camera; return the distance along its axis (H, W), 0 for no hit, and the faces."""
    scene, shown = DeviceScene(), Raster()
    scene.mesh_count = 1
    flat = np.zeros((len(points), 2), dtype=np.float32)
    mesh = Triangles(vertices=points, faces=faces, normals=points, uvs=flat, colors=points)
    put_pieces(scene, [cut(mesh)], lambda values, dtype: wp.array(values, dtype=dtype))
    to_pixels = np.array([[FOCAL, 0, 0.5 * WIDTH], [0, FOCAL, 0.5 * HEIGHT], [0, 0, 1]]) @ np.diag((1.0, -1.0, -1.0))
    matrix = to_pixels @ rotation.T
    shown.width, shown.height, shown.perspective = WIDTH, HEIGHT, True
    shown.matrices, shown.offsets = wp.array([matrix], dtype=wp.mat33), wp.array([-matrix @ eye], dtype=wp.vec3)
    shown.shown = wp.array([1], dtype=wp.uint8)
    shown.layouts, shown.mesh_rows = wp.zeros(1, dtype=wp.int32), 1
    shown.vertex_rows, shown.piece_rows = scene.vertex_count, scene.piece_count
    raster.draw(wp.array([scene], dtype=DeviceScene), shown, steps=1, device=wp.get_device("cpu"))
    keys = shown.nearest.numpy().reshape(HEIGHT, WIDTH)
    closeness = (keys >> np.uint64(32)).astype(np.uint32).view(np.float32)
    depth = np.divide(1.0, closeness, out=np.zeros_like(closeness), where=closeness > 0)
    return depth, (keys & np.uint64(0xFFFFFFFF)).astype(int) - 1


def traced(points, faces, eye, rotation):
    """Return the same, computed by intersecting every ray with every triangle."""
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    toward = np.stack([(x - 0.5 * WIDTH) / FOCAL, (0.5 * HEIGHT - y) / FOCAL, -np.ones_like(x)], axis=-1) @ rotation.T
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    normal = np.cross(b - a, c - a)
    with np.errstate(all="ignore"):
        depth = np.sum(normal * (a - eye), axis=1) / (toward @ normal.T)
        at = eye + depth[..., None] * toward[:, :, None]
        sides = [np.sum(np.cross(q - p, at - p) * normal, axis=-1) for p, q in ((a, b), (b, c), (c, a))]
        inside = np.min(sides, axis=0) / np.sum(normal**2, axis=1)
    found = np.where((inside >= 0) & (depth > 0), depth, np.inf)
    return found.min(axis=-1), np.where(depth > 0, np.abs(inside), np.inf).min(axis=-1)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_a_picture_is_what_rays_meet_also_where_triangles_reach_behind_the_camera(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 3)).astype(np.float32)
    faces = np.stack([rng.permutation(12)[:3] for _ in range(8)]).astype(np.int32)
    eye = rng.normal(size=3) * 0.5
    rotation = quat_to_matrix(look_at(eye, rng.normal(size=3)))
    depth, face = picture(points, faces, eye, rotation)
    expected, margin = traced(points.astype(float), faces, eye, rotation)
    clear = (margin > 5e-3) & ((expected > 2e-3) | np.isinf(expected))
    np.testing.assert_array_equal((depth > 0)[clear], np.isfinite(expected)[clear])
    hit = clear & (depth > 0)
    np.testing.assert_allclose(depth[hit], expected[hit], rtol=2e-3)
    np.testing.assert_array_equal(face >= 0, depth > 0)


def test_a_closed_surface_has_no_gaps():
    side = np.linspace(-2, 2, 24, dtype=np.float32)
    x, y = np.meshgrid(side, side)
    points = np.stack([x.ravel(), y.ravel(), (0.1 * np.sin(9 * x * y)).ravel()], axis=1)
    cell = np.arange(24 * 23).reshape(23, 24)[:, :-1].ravel()
    faces = np.concatenate(
        [np.stack([cell, cell + 1, cell + 25], axis=1), np.stack([cell, cell + 25, cell + 24], axis=1)]
    )
    for turn in np.linspace(0, 1, 20):
        eye = np.array([0.2 * np.cos(turn), 0.2 * np.sin(turn), 0.9])
        depth, _ = picture(
            points, faces.astype(np.int32), eye, quat_to_matrix(look_at(eye, (0, 0, 0), up=(turn, 1, 0)))
        )
        assert np.all(depth > 0)


def casters(step):
    """Return all shadow casters as one mesh."""
    names, positions, wxyz = states()
    vertices, faces = [], []
    objects = [part for item in layout().physical.objects for part in build_object_parts(item)]
    for part in [*build_scene_parts(*stage_and_robot()), *objects]:
        if part.instance not in ("floor", "backdrop"):
            row = names.index(part.body) if part.body else None
            place = part.triangles.vertices
            if row is not None:
                place = place @ quat_to_matrix(wxyz[step, row]).T + positions[step, row]
            faces.append(part.triangles.faces + sum(map(len, vertices)))
            vertices.append(place)
    points = wp.array(np.concatenate(vertices), dtype=wp.vec3)
    return wp.Mesh(points, wp.array(np.concatenate(faces).ravel(), dtype=wp.int32))


@pytest.mark.parametrize("camera", ["front", "wrist"])
def test_shadows_on_the_table_lie_where_rays_to_the_light_meet_something(camera):
    shown, step = layout(width=160, height=120), STEPS - 1
    with_shadows, renderer = render(shown)
    without, _ = render(shown, shadows=False)
    seen = with_shadows[camera]
    table = seen.instance[step] == renderer.labels.instance_names.index("table")
    table &= seen.normals[step, ..., 2] == 127
    y, x = np.nonzero(table)
    rays = np.stack([x + 0.5, y + 0.5, np.ones(len(x))]) * seen.depth[step][table]
    pose = seen.world_T_camera[step]
    points = (np.linalg.inv(seen.intrinsics) @ rays).T @ pose[:3, :3].T + pose[:3, 3]
    mesh, meets = casters(step), wp.zeros(len(points), dtype=wp.int32)
    towards = wp.vec3(*(-np.array(LIGHT.direction)))
    wp.launch(_meets, dim=len(points), inputs=[mesh.id, wp.array(points, dtype=wp.vec3), towards, meets])
    dark = np.any(seen.rgb[step][table] != without[camera].rgb[step][table], axis=-1)
    shaded = meets.numpy() > 0
    assert shaded.sum() > 200
    assert np.mean(dark != shaded) < 0.002


def test_distinct_places_of_vertices_keep_the_faces():
    rng = np.random.default_rng(0)
    vertices = rng.integers(0, 3, (30, 3)).astype(np.float32)
    faces = rng.integers(0, 30, (40, 3)).astype(np.int32)
    flat = np.zeros((30, 2), dtype=np.float32)
    triangles = Triangles(vertices=vertices, faces=faces, normals=vertices, uvs=flat, colors=vertices)
    places, corners = triangles.corners
    np.testing.assert_array_equal(places[corners], vertices[faces])
    assert len(places) == len(np.unique(vertices, axis=0))


@wp.kernel
def _meets(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), towards: wp.vec3, found: wp.array(dtype=wp.int32)):  # type: ignore
    index = wp.tid()
    start = points[index] + 4.0e-4 * wp.vec3(0.0, 0.0, 1.0)
    if wp.mesh_query_ray_anyhit(mesh, start, wp.normalize(towards), 1.0e6):  # type: ignore
        found[index] = 1
