"""Contradictory steps are found before a run; other steps are not reported."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.task import parse_task
from tests.support.task_text import TEXT

HEAD, TAIL = TEXT.split("steps:\n")[0], "success:" + TEXT.split("success:")[1]
PLACE = "place: {object: 'items[0]', into: organic}"


def check(*steps: str) -> str:
    """Return the error about some steps; empty if there is none."""
    text = HEAD + "steps:\n" + "".join(f"  - {step}\n" for step in steps) + TAIL
    try:
        parse_task(text)
    except InputError as error:
        return str(error)
    return ""


WRONG = [
    ([PLACE], "steps[0].place.object: the gripper holds nothing here; pick: items[0] first"),
    (["home", PLACE], "steps[1].place.object: the gripper holds nothing here"),
    (["pick: items[0]", PLACE, PLACE], "steps[2].place.object: the gripper holds nothing here"),
    (["pick: items[0]", "pick: items[1]"], "steps[1].pick.object: the gripper still holds 'items[0]' here; place it"),
    (["pick: items[0]", "wait: 1", "pick: items[0]"], "steps[2].pick.object: the gripper still holds"),
    (["pick: items[1]", PLACE], "the gripper holds 'items[1]' here, not 'items[0]'; pick: items[0] first, or name"),
    (["pick: items[0]", "place: {object: 'items[0]', into: 'items[0]'}"], "place.into: 'items[0]' cannot be placed"),
    (["for item in items: [pick: item, pick: item]"], "'for item in items'[1].pick.object: the gripper still holds"),
    (["for item in items: [place: {object: item, into: organic}]"], "the gripper holds nothing here; pick: item first"),
    (["choose: [[pick: 'items[0]', home], pick: 'items[0]']", "pick: items[1]"], "still holds"),
    (["{if: gripper_clear, then: {pick: 'items[0]'}, else: {pick: 'items[0]'}}", PLACE], ""),
    (
        ["{try: {pick: 'items[0]'}, recover: [pick: 'items[0]', pick: 'items[0]']}"],
        "recover[1].pick.object: the gripper",
    ),
]


@pytest.mark.parametrize(("steps", "expected"), WRONG)
def test_what_cannot_be_done_after_what_came_before_is_one_line_at_its_place(steps: list[str], expected: str):
    said = check(*steps)
    assert expected in said and "\n" not in said and bool(said) == bool(expected)


FINE = [
    ["for item in items: [pick: item, place: {object: item, into: organic}]", "pick: items[0]"],
    ["for item in items: [pick: item]"],
    ["pick: items[0]", "gripper: open", "pick: items[1]"],
    ["{if: {held: 'items[0]'}, then: " + "{" + PLACE + "}}"],
    ["{if: gripper_clear, then: {pick: 'items[0]'}}", "{if: {held: 'items[0]'}, then: {" + PLACE + "}}"],
    ["choose: [pick: 'items[0]', home]", "{if: {held: 'items[0]'}, then: {" + PLACE + "}}"],
    ["{try: {pick: 'items[0]'}, recover: [{pick: 'items[1]'}, home]}", PLACE],
    ["{repeat: [pick: 'items[0]', " + PLACE + "], times: 3}"],
    ["{repeat: [{if: {held: 'items[0]'}, then: {" + PLACE + "}}, pick: 'items[0]'], times: 2}"],
    ["choose one in items: [pick: one]", PLACE],
]


@pytest.mark.parametrize("steps", FINE)
def test_what_may_be_done_is_not_complained_about(steps: list[str]):
    assert check(*steps) == ""


# Random programs are executed: a refused program must fail on every path.

simple = st.sampled_from(
    ["home", "pick: 'items[0]'", "pick: 'items[1]'", PLACE, "gripper: open", "place: {object: 'items[1]', into: metal}"]
)
programs = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"choose: [{', '.join(map(flow, parts))}]")
        | st.tuples(inner, inner).map(lambda p: f"if: gripper_clear, then: {flow(p[0])}, else: {flow(p[1])}")
        | st.lists(inner, min_size=1, max_size=3).map(lambda p: f"repeat: [{', '.join(map(flow, p))}], times: 2")
    ),
    max_leaves=6,
)


def flow(step: str) -> str:
    return step if step == "home" else "{" + step + "}"


def ways(canonical: Any, hand: frozenset[str]) -> frozenset[str]:
    """Return the possible contents of the gripper after a step, ``?`` for anything; empty if no path succeeds."""
    ((name, value),) = canonical.items() if len(canonical) == 1 else ((next(iter(canonical)), canonical),)
    if name == "choose":
        return frozenset().union(*(run(branch, hand) for branch in value))
    if name == "if":
        return run(value["then"], hand) | run(value["else"], hand)
    if name == "repeat":
        return run(value["repeat"], run(value["repeat"], hand))
    if name == "pick":
        return frozenset({value["object"]}) if hand & {"", "?"} else frozenset()
    if name == "place":
        return frozenset({""}) if hand & {value["object"], "?"} else frozenset()
    return frozenset({"?"}) if name == "gripper" and hand else hand


def run(steps: Any, hand: frozenset[str]) -> frozenset[str]:
    for step in steps:
        hand = ways(step, hand)
    return hand


@settings(max_examples=80)
@given(st.lists(programs, min_size=1, max_size=3))
def test_there_are_no_false_alarms(parts: list[str]):
    from nimbus.datagen.files.strict_yaml import parse
    from nimbus.datagen.tasks.steps import parse_steps

    document = parse("".join(f"- {flow(part)}\n" for part in parts), "steps.yaml")
    plain = [step.canonical() for step in parse_steps(document, (), document.data, kind="skill")]
    gets_through = bool(run(plain, frozenset({""})))
    said = check(*map(flow, parts))
    if re.search(r": steps\[\d+\](\.repeat\[\d+\])*\.(pick|place)", said):  # on every path, not in one branch
        assert not gets_through, said
