"""Relations of whole scenes, compared with labels written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.execute.scene_graph import Relation, describe_scene
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.transforms import quat_from_axis_angle
from tests.support import furniture
from tests.support.one_can import put, thing, workcell

X, Y = 0.45, 0.0


@pytest.fixture(scope="module")
def shared() -> SimulatedWorkcell:
    low = thing("low", kind="carton", x=X, y=Y)
    high = thing("high", kind="carton", x=X, y=Y, z=2 * low.position[2] + 0.001)
    return workcell(low, high, thing("can", x=0.3, y=0.25), thing("pear", kind="pear", x=0.62, y=-0.25))


@pytest.fixture
def cell(shared: SimulatedWorkcell):
    state = shared.simulation.state()
    yield shared
    shared.simulation.restore(state)


def told(cell: SimulatedWorkcell, *names: str) -> set[str]:
    """Return relations of some objects as text, without those to fixtures and ``untouched``."""
    return {
        f"{edge.relation} {edge.object} {edge.target}".strip()
        for edge in describe_scene(cell)
        if edge.object in names and edge.target not in cell.stage.fixtures and edge.relation != "untouched"
    }


def test_stack_is_on_and_clear_above(cell: SimulatedWorkcell):
    cell.wait(5)
    assert told(cell, "high") == {"clear high", "on high low", "stacked high low", "upright high"}
    assert told(cell, "low") == {"on low world", "upright low"}
    assert {edge.object for edge in describe_scene(cell) if edge.relation == "untouched"} == set(cell.objects)


@pytest.mark.parametrize(
    ("way", "side"),
    [((0.0, 0.09), "left_of"), ((0.0, -0.09), "right_of"), ((-0.09, 0.0), "in_front_of"), ((0.09, 0.0), "behind")],
)
def test_sides_are_seen_by_the_robot(way: Sequence[float], side: str, cell: SimulatedWorkcell):
    put(cell.simulation, "high", (0.3, -0.25, cell.pose("low")[2, 3]))
    put(cell.simulation, "can", (X + way[0], Y + way[1], cell.pose("can")[2, 3]))
    opposite = {"left_of": "right_of", "right_of": "left_of", "in_front_of": "behind", "behind": "in_front_of"}[side]
    near = {"on can world", "clear can", "upright can", "near can low", "beside can low", f"{side} can low"}
    assert told(cell, "can") == near
    assert f"{opposite} low can" in told(cell, "low")


def test_far_things_are_not_related(cell: SimulatedWorkcell):
    assert told(cell, "can") == {"on can world", "clear can", "upright can"}


@pytest.mark.parametrize(("angle", "state"), [(0.1, "upright"), (1.5, "lying"), (3.1, "inverted"), (0.8, "")])
def test_turned_things_have_states(angle: float, state: str, cell: SimulatedWorkcell):
    put(cell.simulation, "can", (0.3, 0.25, 0.3), quat_from_axis_angle((1, 0, 0), angle))
    assert told(cell, "can") == {"clear can"} | ({f"{state} can"} if state else set())
    assert Relation("untouched", "can") not in describe_scene(cell)


def test_thing_in_a_bin_is_in_it(cell: SimulatedWorkcell):
    name, fixture = next(iter(cell.stage.fixtures.items()))
    low, high = fixture.world_bounds
    put(cell.simulation, "pear", ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, low[2] + 0.06))
    edges = [edge for edge in describe_scene(cell) if edge.object == "pear" and edge.target == name]
    assert edges == [Relation("in", "pear", name)]


@pytest.mark.parametrize(("share", "state"), [(0.0, {"closed"}), (0.5, set()), (0.9, {"open"})])
def test_drawer_is_open_closed_or_neither(share: float, state: set[str]):
    scene = furniture.workcell(furniture.piece("drawer_cabinet", x=0.7, fractions={"drawer_0": share}))
    assert {edge.relation for edge in describe_scene(scene)} & {"open", "closed", "turned"} == state


def test_record_keeps_relations_between_skill_steps(cell: SimulatedWorkcell):
    with cell.step("pick", "can"):
        cell.wait(2)
    put(cell.simulation, "can", (0.3, 0.25, 0.3), quat_from_axis_angle((1, 0, 0), 3.1))
    with cell.step("place", "can"):
        cell.wait(1)
    record = cell.finish(Outcome(success=True))
    spans = {(span.relation, span.object): (span.start, span.stop) for span in record.scene_graph or ()}
    end, begun = record.step_count, next(part.start for part in record.segments if part.skill == "place")
    assert spans["untouched", "can"][1] == spans["upright", "can"][1] == begun
    assert spans["inverted", "can"] == (begun, end + 1)
    assert {span.object for span in record.relations_at(end) if span.relation == "untouched"} == {"high", "low", "pear"}
