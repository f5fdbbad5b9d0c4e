"""Goal graphs: canonical forms, and errors that can be found without the kinds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing

CARROT, CRATE, CUP = Thing("a", "trash.carrot"), Thing("b", "containers.crate"), Thing("c", "kitchen.cup")
GRAPH = GoalGraph("panda", "table", (CARROT, CRATE, CUP), (Goal("in", "a", "b"), Goal("left_of", "c", "b")))


def test_canonical_form_ignores_names_and_order():
    things = (replace(CUP, name="x", place="left"), Thing("d", "tools.tape"), replace(CRATE, name="y"))
    goals = (Goal("left_of", "x", "y"), Goal("in", "z", "y"))
    assert GoalGraph("panda", "table", (*things, replace(CARROT, name="z")), goals).canonical() == GRAPH.canonical()


@pytest.mark.parametrize(
    "other",
    [
        replace(GRAPH, goals=(Goal("in", "a", "b"), Goal("right_of", "c", "b"))),
        replace(GRAPH, goals=(Goal("in", "a", "b"), Goal("left_of", "c", "a"))),
        replace(GRAPH, things=(replace(CARROT, count=2), CRATE, CUP)),
        replace(GRAPH, robot="ur5"),
    ],
)
def test_canonical_form_differs_for_other_tasks(other: GoalGraph):
    assert other.canonical() != GRAPH.canonical()


def test_plain_data_give_the_same_graph():
    assert GoalGraph.from_plain(GRAPH.to_plain()) == GRAPH


@pytest.mark.parametrize(
    ("things", "goals", "what"),
    [
        ((CARROT, CRATE), (), "0 goals"),
        ((CARROT, CRATE), (Goal("in", "a", "b"),) * 9, "9 goals"),
        ((), (Goal("in", "a", "b"),), "0 things"),
        ((replace(CARROT, name="../a"), CRATE), (Goal("open", "b"),), "cannot be the name of a thing"),
        ((replace(CARROT, name="{a}"), CRATE), (Goal("open", "b"),), "cannot be the name of a thing"),
        ((replace(CARROT, name="left"), CRATE), (Goal("open", "b"),), "cannot be the name of a thing"),
        ((CARROT, CARROT), (Goal("open", "a"),), "two things are named 'a'"),
        ((replace(CARROT, count=10**6), CRATE), (Goal("in", "a", "b"),), "count is 1000000"),
        ((replace(CARROT, place="moon"), CRATE), (Goal("in", "a", "b"),), "unknown place 'moon'"),
        ((replace(CARROT, inside="a"), CRATE), (Goal("in", "a", "b"),), "cannot start inside 'a'"),
        ((CARROT, CRATE), (Goal("eat", "a", "b"),), "unknown relation 'eat'"),
        ((CARROT, CRATE), (Goal("in", "z", "b"),), "no thing 'z'"),
        ((CARROT, CRATE), (Goal("in", "a", "left"),), "cannot have the target 'left'"),
        ((CARROT, CRATE), (Goal("at", "a", "b"),), "cannot have the target 'b'"),
        ((CARROT, CRATE), (Goal("open", "b", "a"),), "takes no target"),
        ((CARROT, CRATE), (Goal("beside", "a", "a"),), "related to itself"),
        ((CARROT, CRATE), (Goal("in", "a", "b"), Goal("in", "a", "b")), "given twice"),
        ((CARROT, CRATE, CUP), (Goal("in", "a", "b"), Goal("on", "a", "c")), "in, on or at two things"),
        (
            (CARROT, CRATE, CUP),
            (Goal("on", "a", "b"), Goal("on", "b", "c"), Goal("in", "c", "a")),
            "support each other",
        ),
    ],
)
def test_bad_graph_is_one_line(things: tuple[Thing, ...], goals: tuple[Goal, ...], what: str):
    with pytest.raises(InputError, match=what) as error:
        GoalGraph("panda", "table", things, goals).check(where="reply")
    assert error.value.instead
    assert "\n" not in str(error.value)


def test_good_graph_is_accepted():
    GRAPH.check()
