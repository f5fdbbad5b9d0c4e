"""Blocks, tableware, tools, containers, pegs and beads: geometry, physics, and space inside open objects."""

# mujoco has no stubs: pyright does not see what its extension modules export.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.motions import grasps
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel, RestPose
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.robots.robot import load_robot

LIBRARIES = ("blocks", "kitchen", "tools", "containers", "pegs", "beads")


def kinds_of(name: str) -> list[str]:
    """Return every kind; if kinds differ only in color, only the first of them."""
    library, seen = open_library(name), set()
    kinds = []
    for kind in library.kinds:
        shape = kind.removeprefix(f"{next(iter(library.kind(kind).colors), '')}_")
        kinds += [] if shape in seen else [kind]
        seen.add(shape)
    return kinds


KINDS = [(name, kind) for name in LIBRARIES for kind in kinds_of(name)]
RINGS = [("tools", "wrench"), ("tools", "tape"), ("pegs", "red_ring")]
NEVER_HELD = {("kitchen", "cutting_board")}
"""Flat and wide kinds, of which no part fits between the fingers of a Panda."""


def model_of(address: tuple[str, str]) -> ObjectModel:
    return open_library(address[0]).model(address[1], 0)


def volume(vertices: FloatArray, faces: NDArray[np.int32]) -> float:
    a, b, c = (vertices[faces[:, corner]] for corner in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


@pytest.mark.parametrize("address", KINDS, ids="-".join)
def test_the_looks_are_closed_and_the_pieces_convex_around_them(address: tuple[str, str]) -> None:
    model = model_of(address)
    corners = model.vertices[model.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    np.testing.assert_allclose(normals.sum(axis=0), 0, atol=1e-9)  # a surface without holes
    assert volume(model.vertices, model.faces) > 0
    assert len(model.faces) <= 2500
    assert 1 <= len(model.convex_pieces) <= 64
    for vertices, faces in model.convex_pieces:
        assert len(vertices) <= 32
        corner = vertices[faces]
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-15)
        assert np.einsum("fk,vfk->vf", normal, vertices[:, None] - corner[None, :, 0]).max() < 1e-6
    felt = np.vstack([vertices for vertices, _ in model.convex_pieces])
    reach = np.abs(np.array([felt.min(axis=0), felt.max(axis=0)]) - model.bounds)
    assert reach.max() < 0.0025, reach


@pytest.mark.parametrize("address", KINDS, ids="-".join)
def test_its_mass_is_that_of_a_real_body(address: tuple[str, str]) -> None:
    model = model_of(address)
    low, middle, high = np.linalg.eigvalsh(model.inertia)
    assert 0 < low and high <= (low + middle) * (1 + 1e-9)
    assert (model.center_of_mass > model.bounds[0]).all() and (model.center_of_mass < model.bounds[1]).all()
    density = model.mass / volume(model.vertices, model.faces)
    assert 20 < density < 8000, density


@pytest.mark.parametrize("address", KINDS, ids="-".join)
def test_it_lies_still_as_it_is_said_to_rest(address: tuple[str, str]) -> None:
    model = model_of(address)
    for pose in model.rest_poses:
        data = settled(model, pose)
        start = Rotation.from_quat(pose.wxyz, scalar_first=True)
        up = (Rotation.from_quat(data.qpos[3:7], scalar_first=True) * start.inv()).apply([0.0, 0.0, 1.0])
        assert model.ball or np.arccos(np.clip(up[2], -1, 1)) < np.deg2rad(5), pose.name
        assert abs(float(data.qpos[2]) - pose.height) < 0.002, pose.name


@pytest.mark.parametrize("address", RINGS, ids="-".join)
def test_a_ball_falls_through_a_ring(address: tuple[str, str]) -> None:
    model = model_of(address)
    (cavity,) = model.cavities.values()
    radius = 0.55 * float((cavity[1] - cavity[0])[:2].min())
    assert dropped(model, cavity.mean(axis=0), cavity[1, 2] + radius, radius) < model.bounds[0, 2] - 0.1


@pytest.mark.parametrize("library", ["kitchen", "containers", "pegs"])
def test_a_ball_falls_through_the_mouth_to_the_floor(library: str) -> None:
    addresses = [address for address in KINDS if address[0] == library and address not in RINGS]
    open_kinds = {address: model for address in addresses if (model := model_of(address)).cavities}
    assert open_kinds
    for address, model in open_kinds.items():
        for name, cavity in model.cavities.items():
            _check_mouth(model, f"{address[1]} {name}", cavity, bail=address[1] in ("basket", "red_bucket"))
            middle = (cavity[0] + cavity[1]) / 2
            np.testing.assert_allclose(model.frames[name][:3, 3], [*middle[:2], cavity[1, 2]], atol=0.003)


def test_things_below_the_floor_of_a_cavity_are_inside() -> None:
    """The flat floor of an imported bowl's cavity is above its round bottom; beads there were once not in the bowl."""
    bowl = model_of(("kitchen", "bowl"))
    (name, cavity), bottom = next(iter(bowl.cavities.items())), bowl.bounds[0, 2]
    middle = cavity.mean(axis=0)
    upper, lower = (
        np.array([[*cavity[0, :2], middle[2]], cavity[1]]),
        np.array([cavity[0], [*cavity[1, :2], middle[2]]]),
    )
    assert replace(bowl, cavities={name: upper}).interiors[name][0, 2] == bottom
    shelves = replace(bowl, cavities={"upper": upper, "lower": lower}).interiors
    assert shelves["upper"][0, 2] == middle[2] and shelves["lower"][0, 2] == bottom


def _check_mouth(model: ObjectModel, name: str, cavity: FloatArray, *, bail: bool) -> None:
    """Drop a large ball in the middle and a small one at the edge; with a bail over the mouth, start below it."""
    radius = 0.4 * float((cavity[1] - cavity[0])[:2].min())
    middle = (cavity[0] + cavity[1]) / 2
    start = cavity[1, 2] - radius if bail else cavity[1, 2] + radius
    assert dropped(model, middle, start, radius) == pytest.approx(cavity[0, 2], abs=0.002), name
    small = min(0.12 * float((cavity[1] - cavity[0])[:2].min()), 0.004)
    edge = middle + [0.9 * (cavity[1, 0] - middle[0]) - small, 0, 0]
    assert dropped(model, edge, cavity[1, 2] + small, small) < middle[2], name


@pytest.mark.parametrize("clearance", [0.0005, 0.002])
def test_a_peg_goes_into_its_hole_and_a_wider_one_does_not(clearance: float) -> None:
    kind = "tight_board" if clearance < 0.001 else "round_board"
    board = open_library("pegs").model(kind, 0)
    (cavity,) = board.cavities.values()
    hole = float(cavity[1, 0] - cavity[0, 0])
    assert 0.03 + 0.0005 - 1e-9 <= hole <= 0.03 + 0.002 + 1e-9
    top = cavity[1, 2]
    assert dropped(board, cavity.mean(axis=0), top + 0.002, hole / 2 - 1e-4, half_length=0.03) < top - 0.02
    assert dropped(board, cavity.mean(axis=0), top + 0.002, hole / 2 + 1e-3, half_length=0.03) > top - 0.002


def test_a_hand_finds_grasps_on_all_that_is_meant_to_be_held() -> None:
    gripper = load_robot("panda").gripper.shape
    none = set()
    for address in KINDS[::3]:
        model = model_of(address)
        axes = grasps.model_axes(*address, 0, gripper)
        pose = np.eye(4)
        pose[:3, :3], pose[2, 3] = quat_to_matrix(model.rest_poses[0].wxyz), model.rest_poses[0].height
        none |= set() if rank_grasps(axes, pose) else {address}
    assert none <= NEVER_HELD


def test_kinds_in_colors_are_named_for_them_and_look_like_them() -> None:
    blocks = open_library("blocks")
    red, blue = blocks.model("red_cube", 0), blocks.model("blue_cube", 0)
    assert (red.color, red.object_class, red.category) == ("red", "red", "red cube")
    assert "cube" not in blocks.kinds
    one, other = red.texture.mean(axis=(0, 1)), blue.texture.mean(axis=(0, 1))
    assert one[0] > 2 * one[2] and other[2] > 2 * other[0]


def test_a_heavy_head_draws_the_centre_of_mass_to_it() -> None:
    hammer = open_library("tools").model("hammer", 0)
    head, handle = hammer.frames["head"][0, 3], hammer.frames["handle"][0, 3]
    assert hammer.center_of_mass[0] > 0.6 * head + 0.4 * handle


def settled(model: ObjectModel, pose: RestPose) -> mujoco.MjData:
    """Place an object in a rest pose and wait."""
    spec = scene()
    add(spec, model, pos=[0, 0, pose.height], quat=list(pose.wxyz)).add_freejoint()
    physics = spec.compile()
    data = mujoco.MjData(physics)
    mujoco.mj_step(physics, data, 300)
    return data


def dropped(model: ObjectModel, at: FloatArray, bottom: float, radius: float, *, half_length: float = 0.0) -> float:
    """Drop a ball or an upright rod onto a fixed object; return the height of its lowest point afterwards [m]."""
    spec = scene(plane=False)
    add(spec, model, pos=[0, 0, 0], quat=[1, 0, 0, 0])
    lowest = half_length or radius
    body = spec.worldbody.add_body(pos=[float(at[0]), float(at[1]), bottom + lowest])
    if half_length:
        body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, 0, 1])
        size, kind = [radius, half_length, 0], mujoco.mjtGeom.mjGEOM_CYLINDER
    else:
        body.add_freejoint()
        size, kind = [radius, 0, 0], mujoco.mjtGeom.mjGEOM_SPHERE
    body.add_geom(type=kind, size=size, density=800, friction=[0.5, 0.005, 0.002], condim=6)
    physics = spec.compile()
    data = mujoco.MjData(physics)
    mujoco.mj_step(physics, data, 400)
    return float(data.xpos[-1][2]) - lowest


def scene(*, plane: bool = True) -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    if plane:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1], friction=[0.8, 0.005, 0.0001])
    return spec


def add(spec: mujoco.MjSpec, model: ObjectModel, *, pos: list[float], quat: list[float]) -> mujoco.MjsBody:
    body = spec.worldbody.add_body(pos=pos, quat=quat)
    body.explicitinertial = True
    body.mass, body.ipos = model.mass, model.center_of_mass
    inertia = model.inertia
    body.fullinertia = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    friction = [model.friction, 0.005, 0.0001]
    if model.ball:
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[model.ball, 0, 0], friction=friction)
        return body
    for index, (vertices, faces) in enumerate(model.convex_pieces):
        spec.add_mesh(name=f"p{index}", uservert=vertices.ravel(), userface=faces.ravel())
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"p{index}", friction=friction)
    return body
