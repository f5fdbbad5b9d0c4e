"""Articulated objects: their shapes, their files, and their physics."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.objects.articulated.pose import joint_position, object_T_part, swept_vertices
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from tests.support.furniture import piece, simulation

FURNITURE = open_library("furniture")
KINDS = [kind for kind in FURNITURE.kinds if kind != "conveyor"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_has_parts_with_mass_and_convex_contact(kind: str) -> None:
    model = FURNITURE.model(kind, 1)
    assert model.parts
    assert 0 < sum(part.mass for part in model.parts) < model.mass
    for thing in (model, *model.parts):
        assert np.linalg.eigvalsh(thing.inertia).min() > 0
        for vertices, _ in thing.convex_pieces:
            assert len(ConvexHull(vertices).vertices) == len(vertices) <= 48


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_hand_takes_or_presses_is_on_the_part(kind: str) -> None:
    for part in FURNITURE.model(kind, 2).parts:
        points = [handle.position for handle in part.handles] + [place.position for place in part.pressings]
        assert points, f"{part.name} can neither be held nor pressed"
        low, high = part.vertices.min(axis=0) - 1e-4, part.vertices.max(axis=0) + 1e-4
        for point in points:
            assert np.all(point >= low) and np.all(point <= high)
        for handle in part.handles:
            assert abs(handle.along @ handle.approach) < 1e-6
            assert handle.width <= 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stands_in_the_rooms_inside(kind: str) -> None:
    model = FURNITURE.model(kind, 0)
    for thing in (model, *model.parts):
        for low, high in thing.cavities.values():
            inside = np.random.default_rng(0).uniform(low + 0.002, high - 0.002, size=(200, 3))
            for vertices, _ in thing.convex_pieces:
                planes = ConvexHull(vertices).equations
                assert (inside @ planes[:, :3].T + planes[:, 3]).max(axis=1).min() > 0


@given(
    st.sampled_from(KINDS),
    st.floats(0, 1),
    st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda axis: math.hypot(*axis) > 0.1),
    st.floats(-3, 3),
)
def test_poses_tell_the_joint_position_that_made_them(
    kind: str, share: float, axis: tuple[float, float, float], turn: float
) -> None:
    world = make_transform((0.3, -0.2, 0.5), quat_from_axis_angle(axis, turn))
    for part in FURNITURE.model(kind, 0).parts:
        low, high = part.joint.range
        position = low + share * (high - low)
        found = joint_position(part, world, world @ object_T_part(part, position))
        assert found == pytest.approx(position, abs=1e-6)


def test_room_is_left_for_a_door_to_swing() -> None:
    model = FURNITURE.model("cupboard", 0)
    width = float(np.ptp(model.bounds[:, 1]))
    assert swept_vertices(model)[:, 0].min() < model.bounds[0, 0] - 0.9 * width


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_has_a_body_for_each_part_on_a_joint_with_its_range(kind: str) -> None:
    from pxr import Usd, UsdPhysics

    model = FURNITURE.model(kind, 0)
    stage: Any = Usd.Stage.Open(str(FURNITURE.usd_path(kind, 0)))
    assert stage.GetDefaultPrim().HasAPI(UsdPhysics.ArticulationRootAPI)
    bodies = {prim.GetName() for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)}
    assert bodies == {"base", *(part.name for part in model.parts)}
    masses: list[Any] = [UsdPhysics.MassAPI(prim).GetMassAttr() for prim in stage.Traverse()]
    mass = sum(value.Get() or 0 for value in masses)
    assert mass == pytest.approx(model.mass, rel=1e-5)
    for part in model.parts:
        prim = stage.GetPrimAtPath(f"/{kind}/joints/{part.name}")
        hinge = part.joint.kind == "hinge"
        joint: Any = UsdPhysics.RevoluteJoint(prim) if hinge else UsdPhysics.PrismaticJoint(prim)
        upper = joint.GetUpperLimitAttr().Get()
        assert (math.radians(upper) if hinge else upper) == pytest.approx(part.joint.range[1], rel=1e-5)


def wait(made: NewtonSimulation, seconds: float) -> None:
    action = made.present_action()
    for _ in range(round(seconds * made.rate)):
        made.advance(action)


def test_an_anchored_cabinet_stays_where_it_was_put_with_its_drawer_as_it_was() -> None:
    made = simulation(piece("drawer_cabinet", x=0.7, fractions={"drawer_0": 0.5}))
    before, drawer = made.body_pose("thing_0"), made.body_pose("thing_0.drawer_0")
    wait(made, 1.0)
    assert np.array_equal(made.body_pose("thing_0"), before)
    assert np.abs(made.body_pose("thing_0.drawer_0") - drawer).max() < 1e-4
    part = FURNITURE.model("drawer_cabinet", 0).part("drawer_0")
    assert joint_position(part, before, drawer) == pytest.approx(0.5 * part.joint.range[1], abs=1e-6)


@pytest.mark.parametrize(("kind", "fraction"), [("laptop", 0.7), ("lidded_box", 0.6)])
def test_a_lid_stays_up_where_it_was_left(kind: str, fraction: float) -> None:
    made = simulation(piece(kind, x=0.5, fractions={"lid": fraction}))
    before = float(made.data.joint("thing_0.lid").qpos[0])
    wait(made, 2.0)
    assert float(made.data.joint("thing_0.lid").qpos[0]) == pytest.approx(before, abs=math.radians(3))


def test_a_free_standing_box_can_be_fixed() -> None:
    free, fixed = (simulation(piece("lidded_box", x=0.5, anchored=anchored)) for anchored in (False, True))
    assert free.model.nv == fixed.model.nv + 6


def test_a_button_springs_back() -> None:
    made = simulation(piece("button", x=0.5, fractions={"button": 1.0}))
    wait(made, 0.5)
    assert float(made.data.joint("thing_0.button").qpos[0]) < 0.0008


def test_parts_do_not_touch_what_they_are_joined_to() -> None:
    for kind in ("drawer_cabinet", "cupboard", "microwave", "lidded_box"):
        made = simulation(piece(kind, x=0.7))
        wait(made, 0.2)
        names = {
            tuple(sorted(made.model.body(body).name for body in made.model.geom_bodyid[contact.geom]))
            for contact in made.data.contact
        }
        assert not any(one.startswith("thing_0") and other.startswith("thing_0") for one, other in names)


def test_a_layout_with_joints_is_stored_and_read_and_one_without_reads_as_it_always_did() -> None:
    from nimbus.datagen.files.codec import from_json, parse_json, to_json

    item = piece("drawer_cabinet", x=0.7, fractions={"drawer_0": 0.5})
    assert from_json(PlacedObject, to_json(item)) == item
    old = {name: value for name, value in parse_json(to_json(item)).items() if name not in ("anchored", "joints")}
    assert from_json(PlacedObject, to_json(old)).joints == {} and not from_json(PlacedObject, to_json(old)).anchored


def test_each_part_is_a_file_of_its_own_for_a_stack_of_scenes(tmp_path: Path) -> None:
    from pxr import Sdf, Usd

    from nimbus.datagen.usd.robot import robot_usd
    from nimbus.datagen.usd.stacked_stage import body_prim
    from nimbus.datagen.usd.stage import read_stage
    from nimbus.datagen.usd.visual_assets import asset_bounds, write_visual_assets

    item, stage = piece("drawer_cabinet", x=0.7), read_stage("table")
    model = FURNITURE.model("drawer_cabinet", 0)
    usd = robot_usd(load_robot("panda"))  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
    assets = write_visual_assets(stage.path, usd, {}, [item], tmp_path)
    assert {"thing_0", *(f"thing_0.{part.name}" for part in model.parts)} <= set(assets.bodies)
    for name, thing in (("thing_0", model), ("thing_0.drawer_0", model.part("drawer_0"))):
        corners = np.stack([thing.vertices.min(axis=0), thing.vertices.max(axis=0)])
        assert np.allclose(asset_bounds(assets.bodies[name]), corners, atol=1e-5)
        opened: Any = Usd.Stage.Open(str(assets.bodies[name]))
        assert opened.GetDefaultPrim()
        assert Sdf.Path.IsValidIdentifier(body_prim(name))


def test_a_laid_out_stage_has_the_parts_where_they_are_and_the_anchor(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom, UsdPhysics

    from nimbus.datagen.usd.layout_export import OBJECTS, _add_things, body_prims
    from nimbus.datagen.usd.stage import read_stage

    item, info = piece("drawer_cabinet", x=0.7, fractions={"drawer_0": 0.5}), read_stage("table")
    stage: Any = Usd.Stage.CreateNew(str(tmp_path / "laid_out.usda"))
    _add_things(stage, tmp_path / "laid_out.usda", info, load_robot("panda"), PhysicalLayout(objects=(item,)))
    bodies = body_prims(stage, info)
    made, cache = simulation(item), UsdGeom.XformCache()
    for name in ("thing_0", "thing_0.drawer_0"):
        world: Any = cache.GetLocalToWorldTransform(bodies[name])
        assert np.allclose(np.array(world).T, made.body_pose(name), atol=1e-4)
    anchor: Any = UsdPhysics.FixedJoint(stage.GetPrimAtPath(f"{OBJECTS}/thing_0/anchor"))
    assert anchor.GetBody1Rel().GetTargets() == [bodies["thing_0"].GetPath()]
    masses: list[Any] = [UsdPhysics.MassAPI(bodies[name]).GetMassAttr() for name in bodies if "thing" in name]
    assert sum(mass.Get() for mass in masses) == pytest.approx(item.mass, rel=1e-5)
