"""Contact measures compared with their definition: the deepest contact between two kinds of bodies."""

from __future__ import annotations

import mujoco
import pytest

from nimbus.datagen.execute.contacts import ContactMeter
from nimbus.datagen.simulate.newton import NewtonSimulation
from tests.support.one_can import put, simulation, thing


@pytest.fixture(scope="module")
def made() -> NewtonSimulation:
    """Return a scene with a can in the hand and one sunk into the table."""
    found = simulation(thing(), thing("items_1", y=0.2))
    put(found, "items_0", tuple(found.body_pose("panda_hand")[:3, 3] - (0.0, 0.0, 0.1)))
    put(found, "items_1", (0.6, 0.2, found.body_pose("items_1")[2, 3] - 0.003))
    mujoco.mj_forward(found.model, found.data)
    return found


@pytest.mark.parametrize("target", [None, "items_0", "items_1", "items_0"])
def test_depths_are_the_largest_of_their_bodies(made: NewtonSimulation, target: str | None) -> None:
    meter = ContactMeter(made, made.robot)
    for meter.closing_on in ("items_1", target):  # objects of earlier steps do not count
        meter.read()
    read = meter.read()
    assert read["table_penetration"] == deepest(made, lambda one, other: is_still(made, one) != is_still(made, other))
    gripper = set(made.robot.gripper.links)
    held = deepest(made, lambda one, other: target in (one, other) and bool(gripper & {one, other}))
    assert read["held_penetration"] == held
    assert (held > 0) == (target == "items_0")


def test_no_contact_reads_as_zero() -> None:
    free = simulation(thing(z=0.5))
    mujoco.mj_forward(free.model, free.data)
    assert set(ContactMeter(free, free.robot).read().values()) == {0.0}


def deepest(made: NewtonSimulation, counts) -> float:
    depths = [0.0]
    for contact in made.data.contact:
        one, other = (made.model.body(made.model.geom_bodyid[geom]).name for geom in contact.geom)
        if counts(one, other):
            depths.append(-contact.dist)
    return max(depths)


def is_still(made: NewtonSimulation, name: str) -> bool:
    return bool(made.model.body_weldid[made.model.body(name).id] == 0)
