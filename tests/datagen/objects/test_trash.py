"""Some variants of every kind of trash: geometry, physics and looks."""

# mujoco has no stubs: pyright does not see what its extension modules export.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel, RestPose
from nimbus.datagen.objects.shapes.contact import piece_triangles

LIBRARY = open_library("trash")
VARIANTS = (0, 1, 5)
MODELS = [pytest.param(kind, variant, id=f"{kind}-{variant}") for kind in LIBRARY.kinds for variant in VARIANTS]
HAND_OPENING = 0.08


def first_hit(
    origins: FloatArray, directions: FloatArray, vertices: FloatArray, faces: NDArray[np.int32]
) -> FloatArray:
    """Return the distance along each ray to the first triangle; infinite for a miss."""
    a, b, c = (vertices[faces[:, corner]] for corner in range(3))
    edge_one, edge_two = b - a, c - a
    across = np.cross(directions[:, None], edge_two[None])
    determinant = np.einsum("tk,rtk->rt", edge_one, across)
    with np.errstate(all="ignore"):
        start = origins[:, None] - a[None]
        u = np.einsum("rtk,rtk->rt", start, across) / determinant
        turned = np.cross(start, edge_one[None])
        v = np.einsum("rk,rtk->rt", directions, turned) / determinant
        distance = np.einsum("tk,rtk->rt", edge_two, turned) / determinant
        hit = (np.abs(determinant) > 1e-16) & (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9) & (distance > 0)
    return np.where(hit, distance, np.inf).min(axis=1)


def side_rays(model: ObjectModel) -> tuple[FloatArray, FloatArray]:
    """Return horizontal rays from outside towards the axis, as fingers close; for a peel, around its stem."""
    low, high = model.bounds[:, 2]
    low = low + 0.7 * (high - low) if model.kind == "banana_peel" else low
    axis = model.keypoints.get("stem", np.zeros(3)) * [1, 1, 0] if model.kind == "banana_peel" else np.zeros(3)
    origins, directions = [], []
    for height in np.linspace(low + 0.1 * (high - low), high - 0.1 * (high - low), 9):
        for angle in np.linspace(0, 2 * np.pi, 12, endpoint=False):
            out = np.array([np.cos(angle), np.sin(angle), 0.0])
            origins.append(axis + out * 0.3 + [0.0, 0.0, height])
            directions.append(-out)
    return np.array(origins), np.array(directions)


def test_there_are_many_kinds_in_three_classes() -> None:
    by_class = {name: [k for k in LIBRARY.kinds if LIBRARY.kind(k).object_class == name] for name in LIBRARY.classes}
    assert set(by_class) == {"recycling", "organic", "residual"}
    assert all(len(kinds) >= 5 for kinds in by_class.values())


@pytest.mark.parametrize(("kind", "variant"), MODELS)
def test_the_visual_mesh_is_closed_and_light(kind: str, variant: int) -> None:
    model = LIBRARY.model(kind, variant)
    _, point = np.unique(np.round(model.vertices * 1e6).astype(np.int64), axis=0, return_inverse=True)
    faces = point.reshape(-1)[model.faces]
    edges = np.sort(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    edges = edges[edges[:, 0] != edges[:, 1]]
    _, uses = np.unique(edges, axis=0, return_counts=True)
    assert (uses % 2 == 0).all()
    assert len(model.faces) <= 1500
    a, b, c = (model.vertices[model.faces[:, corner]] for corner in range(3))
    assert np.einsum("ij,ij->", a, np.cross(b, c)) > 0
    np.testing.assert_allclose(np.linalg.norm(model.normals, axis=1), 1, atol=1e-6)
    facing = np.einsum("ij,ij->i", np.cross(b - a, c - a), model.normals[model.faces].mean(axis=1))
    assert (facing > 0).mean() > 0.99


@pytest.mark.parametrize(("kind", "variant"), MODELS)
def test_mass_and_inertia_are_those_of_a_real_body(kind: str, variant: int) -> None:
    model = LIBRARY.model(kind, variant)
    assert 0.005 <= model.mass <= 0.3
    assert 0.5 <= model.friction <= 1.2
    assert (model.center_of_mass > model.bounds[0] * 0.6).all()
    assert (model.center_of_mass < model.bounds[1] * 0.6).all()
    np.testing.assert_allclose(model.inertia, model.inertia.T, atol=1e-12)
    low, middle, high = np.linalg.eigvalsh(model.inertia)
    assert 0 < low
    assert high <= low + middle
    assert high <= model.mass * np.square(np.ptp(model.bounds, axis=0)).sum() / 4


@pytest.mark.parametrize(("kind", "variant"), MODELS)
def test_the_contact_pieces_are_convex_and_hug_the_visual_mesh(kind: str, variant: int) -> None:
    model = LIBRARY.model(kind, variant)
    assert 1 <= len(model.convex_pieces) <= 12
    for vertices, faces in model.convex_pieces:
        assert len(vertices) <= 32
        corner = vertices[faces]
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        assert np.einsum("fk,vfk->vf", normal, vertices[:, None] - corner[None, :, 0]).max() < 1e-6
    origins, directions = side_rays(model)
    seen = first_hit(origins, directions, model.vertices, model.faces)
    felt = first_hit(origins, directions, *piece_triangles(model.convex_pieces))
    both = np.isfinite(seen) & np.isfinite(felt)
    assert both.mean() > 0.9
    error = np.abs(seen[both] - felt[both])
    assert np.quantile(error, 0.9) < (0.0025 if kind == "banana_peel" else 0.0015)
    assert np.quantile(error, 0.95) < 0.003


@pytest.mark.parametrize(("kind", "variant"), MODELS)
def test_a_hand_can_close_around_it_as_it_rests(kind: str, variant: int) -> None:
    model = LIBRARY.model(kind, variant)
    for pose in model.rest_poses:
        points = Rotation.from_quat([*pose.wxyz[1:], pose.wxyz[0]]).apply(model.vertices)
        reach = 0.02 if kind == "banana_peel" else 0.04
        upper = points[points[:, 2] > points[:, 2].max() - reach][:, :2]
        angle = np.linspace(0, np.pi, 36, endpoint=False)
        widths = np.ptp(upper @ np.vstack([np.cos(angle), np.sin(angle)]), axis=0)
        assert 0.008 < widths.min() <= 0.07, pose.name
        assert pose.height + points[:, 2].max() >= 0.018, pose.name


@pytest.mark.parametrize(("kind", "variant"), MODELS)
def test_rest_poses_are_stable_in_physics(kind: str, variant: int) -> None:
    model = LIBRARY.model(kind, variant)
    names = [pose.name for pose in model.rest_poses]
    assert "lying" in names
    assert "upright" not in names or names[0] == "upright"
    for pose in model.rest_poses:
        tilt, drop = settle(model, pose)
        assert tilt < np.deg2rad(5), pose.name
        assert drop < 0.002, pose.name


def settle(model: ObjectModel, pose: RestPose) -> tuple[float, float]:
    """Place an object in a rest pose and wait one second; return its tilt [rad] and vertical motion [m]."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1], friction=[0.8, 0.005, 0.0001])
    body = spec.worldbody.add_body(pos=[0, 0, pose.height], quat=list(pose.wxyz))
    body.add_freejoint()
    body.explicitinertial = True
    body.mass, body.ipos = model.mass, model.center_of_mass
    inertia = model.inertia
    body.fullinertia = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    for index, (vertices, faces) in enumerate(model.convex_pieces):
        spec.add_mesh(name=f"p{index}", uservert=vertices.ravel(), userface=faces.ravel())
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"p{index}", friction=[model.friction, 0.005, 0.0001])
    physics = spec.compile()
    data = mujoco.MjData(physics)
    mujoco.mj_step(physics, data, 500)
    w, x, y, z = data.qpos[3:7]
    start = Rotation.from_quat([*pose.wxyz[1:], pose.wxyz[0]])
    up = (Rotation.from_quat([x, y, z, w]) * start.inv()).apply([0.0, 0.0, 1.0])
    return float(np.arccos(np.clip(up[2], -1, 1))), abs(float(data.qpos[2]) - pose.height)


@pytest.mark.parametrize("kind", LIBRARY.kinds)
def test_variants_differ_in_shape_and_looks(kind: str) -> None:
    first, second = LIBRARY.model(kind, 0), LIBRARY.model(kind, 1)
    assert not np.allclose(np.ptp(first.bounds, axis=0), np.ptp(second.bounds, axis=0), atol=1e-5)
    assert first.texture.shape != second.texture.shape
    assert first.mass != second.mass


def test_no_two_textures_have_the_same_size_within_a_kind() -> None:
    for kind in LIBRARY.kinds:
        sizes = [LIBRARY.model(kind, variant).texture.shape for variant in range(4)]
        assert len(set(sizes)) == len(sizes)
        assert all(side % 2 == 1 for size in sizes for side in size[:2])


def fingerprint(model: ObjectModel) -> str:
    digest = hashlib.sha256()
    for array in (model.vertices, model.faces, model.uvs, model.texture, model.inertia, model.center_of_mass):
        digest.update(np.ascontiguousarray(array).tobytes())
    for vertices, faces in model.convex_pieces:
        digest.update(vertices.tobytes() + faces.tobytes())
    digest.update(repr((model.mass, model.friction, model.rest_poses)).encode())
    return digest.hexdigest()


def test_the_same_variant_is_made_again_in_another_process() -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1].split(':')\n"
        "from test_trash import LIBRARY, fingerprint\n"
        "print('\\n'.join(fingerprint(LIBRARY.model(k, 2)) for k in reversed(LIBRARY.kinds)))\n"
    )
    path = os.pathsep.join([os.path.dirname(__file__), *(entry for entry in sys.path if entry)])
    answer = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    here = [fingerprint(LIBRARY.model(kind, 2)) for kind in reversed(LIBRARY.kinds)]
    assert answer.stdout.split() == here
