"""Plans for goals from the declarations of skills and conditions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.catalogue import Catalogue
from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing
from nimbus.datagen.propose.planner import order_goals, plan_task
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks.plugins import discover

KINDS = {
    "carrot": "trash.battery",
    "egg": "trash.egg_shell",
    "crate": "containers.crate",
    "cabinet": "furniture.drawer_cabinet",
    "microwave": "furniture.microwave",
    "button": "furniture.button",
    "red": "blocks.red_cube",
    "green": "blocks.green_cube",
    "blue": "blocks.blue_cube",
    "cup": "kitchen.cup",
    "bowl": "kitchen.bowl",
    "beads": "beads.red_bead",
}
INSIDE = {"beads": "cup"}

LIGHT_UP = '''
from nimbus.datagen.plugin import ObjectReference, Outcome, Predicate, Skill, register


@register("skill", "light_up")
class LightUp(Skill):
    """Light a thing up."""

    main = "object"
    needs = ("held(object)",)
    gives = ("shining(object)",)
    object: ObjectReference

    def run(self, arm) -> None:
        """Wait."""
        arm.wait(1)


@register("predicate", "shining")
class Shining(Predicate):
    """It shines."""

    main = "object"
    states = ("shining(object)",)
    object: ObjectReference

    def failure(self, world) -> Outcome | None:
        """Never."""
        return None
'''


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    discover()
    return Catalogue(load_robot("panda"), ["trash", "containers", "furniture", "blocks", "kitchen", "beads"])


def graph(*goals: str, state: dict[str, str] | None = None, count: dict[str, int] | None = None) -> GoalGraph:
    """Return a graph of goals such as ``in carrot crate``, with all named objects, and the cup's beads."""
    parts = [(*goal.split(), "")[:3] for goal in goals]
    names = dict.fromkeys(name for _, one, other in parts for name in (one, other) if name in KINDS)
    names |= {name: None for name, inside in INSIDE.items() if inside in names}
    things = tuple(
        Thing(
            name,
            KINDS[name],
            inside=INSIDE.get(name, ""),
            state=(state or {}).get(name, ""),
            count=(count or {}).get(name, 1),
        )
        for name in names
    )
    return GoalGraph("panda", "table", things, tuple(Goal(*part) for part in parts))


def steps_of(catalogue: Catalogue, task: GoalGraph) -> list[Any]:
    return list(plan_task(task, catalogue).steps)


def test_drawer_is_opened_filled_and_closed(catalogue: Catalogue):
    plan = plan_task(graph("closed cabinet", "in carrot cabinet"), catalogue)
    assert plan.steps == (
        {"open": {"object": "cabinet", "to": "95 %"}},
        {"pick": "carrot"},
        {"place": {"object": "carrot", "into": "cabinet"}},
        {"close": "cabinet"},
        "home",
    )
    assert plan.success == (
        {"closed": "cabinet"},
        {"inside": {"object": "carrot", "container": "cabinet"}},
        "gripper_clear",
    )


def test_open_drawer_is_not_opened_again(catalogue: Catalogue):
    steps = steps_of(catalogue, graph("in carrot cabinet", state={"cabinet": "open"}))
    assert [next(iter(step)) for step in steps] == ["pick", "place"]


def test_stack_is_built_from_below(catalogue: Catalogue):
    steps = steps_of(catalogue, graph("on blue green", "on green red"))
    assert [step["place"]["object"] for step in steps if "place" in step] == ["green", "blue"]


def test_what_was_poured_from_is_put_back(catalogue: Catalogue):
    plan = plan_task(graph("poured_into cup bowl"), catalogue)
    assert plan.steps == (
        {"pick": {"object": "cup", "side": True, "lift": "12 cm"}},
        {"pour": {"object": "cup", "into": "bowl"}},
        {"place": {"object": "cup", "on": "cup_start"}},
    )
    assert plan.success[0] == {"poured_fraction": {"objects": "beads", "container": "bowl"}}


def test_several_objects_are_a_loop(catalogue: Catalogue):
    steps = steps_of(catalogue, graph("in carrot cabinet", count={"carrot": 2}))
    assert steps == [
        {"open": {"object": "cabinet", "to": "95 %"}},
        {
            "for each_carrot in carrot": [
                {"pick": "each_carrot"},
                {"place": {"object": "each_carrot", "into": "cabinet"}},
            ]
        },
    ]


def test_part_is_named_where_there_are_several(catalogue: Catalogue):
    plan = plan_task(graph("open microwave"), catalogue)
    assert plan.steps == ({"open": {"object": "microwave", "joint": "door"}}, "home")
    assert plan.success[0] == {"open_by": {"object": "microwave", "joint": "door"}}


def test_button_on_a_front_is_not_pressed(catalogue: Catalogue):
    with pytest.raises(InputError, match="no button"):
        plan_task(graph("pressed microwave"), catalogue)
    assert plan_task(graph("pressed button"), catalogue).steps[0] == {"press": "button"}


def test_sides_and_held_come_last(catalogue: Catalogue):
    task = graph("held egg", "left_of carrot crate", "in red crate")
    assert [goal.relation for goal in order_goals(task)] == ["in", "left_of", "held"]
    plan = plan_task(task, catalogue)
    assert plan.steps[-1] == {"pick": "egg"}
    assert plan.steps[-2] == {"place": {"object": "carrot", "beside": "crate", "side": "left"}}
    assert "gripper_clear" not in plan.success


@pytest.mark.parametrize(
    ("goals", "state", "what"),
    [
        (("open crate",), {}, "has no part that opens or closes"),
        (("in carrot red",), {}, "has no cavity"),
        (("in crate cabinet",), {}, "cm, too large"),
        (("in red microwave",), {}, "a microwave oven does not open to the top"),
        (("on carrot bowl",), {}, "has no flat top"),
        (("closed cabinet",), {}, "at the start"),
        (("open cabinet", "closed cabinet"), {}, "cannot be open and closed"),
        (("in carrot crate", "left_of carrot red"), {}, "cannot be in 'crate' and left_of 'red'"),
        (("held carrot", "held egg"), {}, "a hand holds only one"),
        (("in beads crate", "poured_into cup bowl"), {}, "starts inside another thing"),
        (("poured_into egg bowl",), {}, "nothing can be poured from"),
        (("held cabinet",), {}, "it is furniture"),
    ],
)
def test_goal_that_cannot_be_is_one_line(
    goals: tuple[str, ...], state: dict[str, str], what: str, catalogue: Catalogue
):
    with pytest.raises(InputError, match=what) as error:
        plan_task(graph(*goals, state=state), catalogue)
    assert error.value.where.startswith("goals[") and error.value.instead


def test_unknown_kind_is_one_line(catalogue: Catalogue):
    task = GoalGraph("panda", "table", (Thing("a", "kitchen.cupp"),), (Goal("held", "a"),))
    with pytest.raises(InputError, match="unknown kind 'kitchen.cupp'; did you mean 'kitchen.cup'"):
        plan_task(task, catalogue)


@pytest.fixture
def own_skill(tmp_path: Path) -> Iterator[None]:
    before = registry.registered()
    (tmp_path / "light_up.py").write_text(LIGHT_UP)
    discover([tmp_path])
    yield
    registry.forget(registry.registered() - before)


@pytest.mark.usefixtures("own_skill")
def test_own_skill_with_declarations_takes_part(catalogue: Catalogue):
    plan = plan_task(graph("shining carrot"), catalogue)
    assert plan.steps == (
        {"pick": "carrot"},
        {"light_up": "carrot"},
        {"place": {"object": "carrot", "on": "carrot_start"}},
    )
    assert plan.success[0] == {"shining": "carrot"}


def test_skill_without_declarations_is_never_proposed(catalogue: Catalogue):
    assert not registry.lookup("skill", "wait").gives
    with pytest.raises(InputError, match="no skill achieves this"):
        plan_task(graph("shining carrot"), catalogue)
