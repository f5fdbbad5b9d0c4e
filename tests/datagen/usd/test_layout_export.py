"""Layouts and motions as USD stages: the values read back equal those written."""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.usd.layout_export import BodyMotion, body_prims, clear_static_poses, write_layout_stage
from nimbus.datagen.usd.physics_schemas import contact_friction
from nimbus.datagen.usd.stage import read_stage
from tests.support.render_scene import layout, states
from tests.support.usd_validation import validation_errors


def test_an_animation_reads_back_as_the_trajectory_says(tmp_path: Path):
    from pxr import Usd, UsdGeom

    names, positions, wxyz = states()
    info, path = read_stage("tabletop"), tmp_path / "episode.usda"
    motion = BodyMotion(names=names, positions=positions, wxyz=wxyz, rate=15.0)
    write_layout_stage(path, info, load_robot("panda"), layout(), motion)
    stage: Any = Usd.Stage.Open(str(path))
    assert validation_errors(stage) == []
    assert (stage.GetTimeCodesPerSecond(), stage.GetEndTimeCode()) == (15.0, len(positions) - 1)
    bodies = body_prims(stage, info)
    assert set(names) <= set(bodies)
    for step in range(len(positions)):
        cache = UsdGeom.XformCache(Usd.TimeCode(step))
        for row, name in enumerate(names):
            found = np.array(cache.GetLocalToWorldTransform(bodies[name])).T
            np.testing.assert_allclose(found, make_transform(positions[step, row], wxyz[step, row]), atol=2e-6)


def test_animations_with_cables_are_refused(tmp_path: Path):
    names, positions, wxyz = states()
    shown = layout()
    cable = replace(shown.physical.objects[0], name="cable", library="cables", kind="red_cable")
    shown = replace(shown, physical=replace(shown.physical, objects=(cable,)))
    motion = BodyMotion(names=names, positions=positions, wxyz=wxyz, rate=15.0)
    with pytest.raises(InputError, match="'cable' is a cable, and an animation in USD has rigid bodies only"):
        write_layout_stage(tmp_path / "episode.usda", read_stage("tabletop"), load_robot("panda"), shown, motion)
    assert not (tmp_path / "episode.usda").exists()


def test_physics_leaves_an_animation_alone_and_moves_a_layout(tmp_path: Path):
    names, positions, wxyz = states()
    info, robot = read_stage("tabletop"), load_robot("panda")
    still, moving = (tmp_path / name for name in ("layout.usda", "episode.usda"))
    write_layout_stage(still, info, robot, layout(), BodyMotion(names=names, positions=positions[:1], wxyz=wxyz[:1]))
    write_layout_stage(
        moving, info, robot, layout(), BodyMotion(names=names, positions=positions, wxyz=wxyz, rate=15.0)
    )
    bodies, joints, roots = simulated(still)
    assert bodies > 10 and joints > 7 and roots == 1
    assert simulated(moving) == (0, 0, 0)


def test_physx_is_told_what_the_default_simulator_does_with_the_robot(tmp_path: Path):
    from pxr import Usd, UsdPhysics

    robot, path = load_robot("panda"), tmp_path / "layout.usda"
    write_layout_stage(path, read_stage("tabletop"), robot, layout())
    stage: Any = Usd.Stage.Open(str(path))
    assert validation_errors(stage) == []
    inside = [prim for prim in stage.Traverse() if str(prim.GetPath()).startswith("/World/robot")]
    roots = [str(prim.GetPath()) for prim in inside if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
    assert roots == ["/World/robot"], "on a link, the base would float"
    assert not stage.GetPrimAtPath("/World/robot").GetAttribute("physxArticulation:enabledSelfCollisions").Get()
    links = [prim for prim in inside if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert len(links) > 9 and all(link.GetAttribute("physxRigidBody:disableGravity").Get() for link in links)
    joints = {prim.GetName(): prim.GetAttribute("physxJoint:armature").Get() for prim in inside}
    assert [joints[name] for name in robot.arm.joints] == pytest.approx([robot.arm.armature] * 7)


def test_arms_on_bases_of_their_own_are_articulations_that_begin_at_the_world(tmp_path: Path):
    from pxr import Usd, UsdPhysics

    path, shown = tmp_path / "layout.usda", layout()
    shown = replace(shown, visual=replace(shown.visual, cameras=()))
    write_layout_stage(path, read_stage("tabletop"), load_robot("dual_panda"), shown)
    stage: Any = Usd.Stage.Open(str(path))
    roots = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
    assert len(roots) == 2 and all(prim.IsA(UsdPhysics.FixedJoint) for prim in roots)


def test_an_objects_own_friction_is_what_counts(tmp_path: Path):
    from pxr import Usd, UsdPhysics, UsdShade

    shown, path = layout(), tmp_path / "layout.usda"
    write_layout_stage(path, read_stage("tabletop"), load_robot("panda"), shown)
    stage: Any = Usd.Stage.Open(str(path))
    for prim in stage.Traverse():
        if str(prim.GetPath()).startswith("/World/objects") and prim.HasAPI(UsdPhysics.MaterialAPI):
            assert prim.GetAttribute("physxMaterial:frictionCombineMode").Get() == "multiply"
    binding: Any = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath("/PhysicsScene"))
    rough, _ = binding.ComputeBoundMaterial("physics")
    assert UsdPhysics.MaterialAPI(rough).GetDynamicFrictionAttr().Get() == 1.0, "times an object's own it is that"
    assert validation_errors(stage) == []


def test_what_stands_below_a_joint_goes_with_it():
    from pxr import Usd, UsdGeom, UsdPhysics

    stage: Any = Usd.Stage.CreateInMemory()
    UsdPhysics.RevoluteJoint.Define(stage, "/arm/joint")
    UsdGeom.Xform.Define(stage, "/arm/joint/mark")
    UsdPhysics.FixedJoint.Define(stage, "/arm/joint/mark/other")
    clear_static_poses(stage)
    assert not stage.GetPrimAtPath("/arm/joint").IsActive()


def simulated(path: Path) -> tuple[int, int, int]:
    """Return the bodies, joints and articulations that physics moves."""
    from pxr import Usd, UsdPhysics

    stage: Any = Usd.Stage.Open(str(path))
    prims = list(stage.Traverse())
    bodies = [UsdPhysics.RigidBodyAPI(prim) for prim in prims if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    joints = [UsdPhysics.Joint(prim) for prim in prims if prim.IsA(UsdPhysics.Joint)]
    return (
        sum(body.GetRigidBodyEnabledAttr().Get() for body in bodies),
        sum(joint.GetJointEnabledAttr().Get() for joint in joints),
        sum(prim.HasAPI(UsdPhysics.ArticulationRootAPI) for prim in prims),
    )


def test_mass_and_friction_are_those_of_the_layout(tmp_path: Path):
    from pxr import Usd, UsdPhysics

    shown, path = layout(), tmp_path / "layout.usda"
    write_layout_stage(path, read_stage("tabletop"), load_robot("panda"), shown)
    stage: Any = Usd.Stage.Open(str(path))
    for item in shown.physical.objects:
        prim = stage.GetPrimAtPath(f"/World/objects/{item.name}")
        assert UsdPhysics.MassAPI(prim).GetMassAttr().Get() == pytest.approx(item.mass)
        frictions = [
            UsdPhysics.MaterialAPI(below).GetDynamicFrictionAttr().Get()
            for below in Usd.PrimRange(prim)
            if below.HasAPI(UsdPhysics.MaterialAPI)
        ]
        nominal = open_library(item.library).model(item.kind, item.variant).friction
        assert frictions == [pytest.approx(contact_friction(item.friction, nominal))]
        np.testing.assert_allclose(prim.GetAttribute("xformOp:translate").Get(), item.position)
