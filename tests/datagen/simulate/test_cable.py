"""Cables: shape, physics, the condition on gates, and messages."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.execute.workcell import SimulatedWorld
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.success.cable import Routed
from nimbus.datagen.usd.stage import read_stage

CABLE, CLIP = open_library("cables").model("red_cable", 0), open_library("cables").model("cable_clip", 0)
ALONG_Y = (2**-0.5, 0.0, 0.0, 2**-0.5)


def placed(name: str, kind: str, at: tuple[float, float], *, wxyz: tuple[float, ...], over: float) -> PlacedObject:
    model = open_library("cables").model(kind, 0)
    return PlacedObject(
        name=name,
        group=name,
        library="cables",
        kind=kind,
        variant=0,
        object_class=model.object_class,
        position=(*at, model.rest_poses[0].height + over),
        wxyz=wxyz,  # pyright: ignore[reportArgumentType]
        rest_pose="lying",
        mass=model.mass,
        friction=model.friction,
        anchored=model.anchored,
    )


def layout(*, clip_at: tuple[float, float]) -> PhysicalLayout:
    """Return a cable that lies along y, 3 mm above the table, and a clip with its passage along y."""
    cable = placed("cable_0", "red_cable", (0.5, 0.0), wxyz=ALONG_Y, over=0.003)
    return PhysicalLayout(objects=(placed("clip_0", "cable_clip", clip_at, wxyz=(1.0, 0.0, 0.0, 0.0), over=0.0), cable))


@pytest.fixture(scope="module")
def simulation() -> NewtonSimulation:
    return NewtonSimulation(read_stage("table"), load_robot("panda"), rate=15.0)


def test_a_cable_lies_along_its_arc_and_a_clip_is_fixed(simulation: NewtonSimulation):
    assert CABLE.chain is not None
    simulation.load(layout(clip_at=(0.3, 0.3)))
    clip = simulation.body_pose("clip_0")
    for _ in range(5):
        simulation.advance(simulation.present_action())
    points = simulation.points("cable_0")
    assert points.shape == (25, 3)
    assert np.allclose(points[:, 2], CABLE.chain.radius, atol=5e-4)
    assert np.allclose(np.ptp(points[:, 1]), np.ptp(CABLE.chain.joints()[:, 0]), atol=1e-3)
    assert simulation.body_speed("cable_0")[0] < 0.02
    assert np.array_equal(simulation.body_pose("clip_0"), clip)


def test_motion_of_a_cable_repeats_to_the_last_bit(simulation: NewtonSimulation):
    ends = []
    for _ in range(2):
        simulation.load(layout(clip_at=(0.5, 0.0)))
        first = simulation.model.body("cable_0.0").dofadr[0]
        simulation.data.qvel[first : first + 3] = (0.0, 0.4, 0.8)
        simulation.restore(simulation.state())
        for _ in range(3):
            simulation.advance(simulation.present_action())
        ends.append(simulation.body_positions())
    assert np.array_equal(*ends)
    assert simulation.is_stable
    assert np.ptp(simulation.points("cable_0")[:, 2]) > 0.002
    link = simulation.body_names.index("cable_0.7")
    assert np.array_equal(ends[0][link], simulation.points("cable_0")[7])


def test_a_cable_is_routed_if_it_passes_between_the_posts(simulation: NewtonSimulation):
    condition = Routed(object="cable_0", through=("clip_0",))
    for at, is_routed in (((0.5, 0.05), True), ((0.6, 0.05), False), ((0.5, 0.3), False)):
        simulation.load(world := layout(clip_at=at))
        failure = condition.failure(SimulatedWorld(simulation, world))
        assert (failure is None) == is_routed
        assert failure is None or "cable_0 is not in clip_0" in failure.detail


def test_the_surface_of_a_cable_moves_with_its_links():
    """The vertices that the renderer binds to links are those of the mesh at rest, in the same order."""
    assert CABLE.chain is not None
    links, offsets = CABLE.chain.skin()
    frames = CABLE.chain.frames()[links]
    bound = np.einsum("vij,vj->vi", frames[:, :3, :3], offsets) + frames[:, :3, 3]
    assert np.ptp(bound - CABLE.vertices, axis=0).max() < 1e-9
    assert np.linalg.norm((bound - CABLE.vertices)[0]) < 1e-3
