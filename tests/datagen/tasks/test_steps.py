"""The language of steps and conditions: its meaning, and its equivalence with the plain form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Document, parse
from nimbus.datagen.tasks.json_schema import task_schema
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.steps import Step, Steps, parse_steps, walk
from nimbus.datagen.tasks.task import parse_task
from tests.support.json_schema import valid
from tests.support.refusals import refusal
from tests.support.task_text import TEXT, changed

discover()
SCHEMA = task_schema()


def complaint(text: str) -> str:
    return refusal(parse_task, text)


def steps_of(text: str, *, kind: str = "skill") -> Steps:
    document = parse(text, "steps.yaml")
    return parse_steps(document, (), document.data, kind=kind)


def plain(steps: Steps) -> list[Any]:
    return [step.canonical() for step in steps]


SAME = [
    ("- choose: [home, wait: 5]", "- choose:\n    - [home]\n    - - wait: {time: 5}"),
    ("- choose: [2: home, 6: [home, home]]", "- choose: [25 %: home, 75 %: [home, home]]"),
    ("- {if: {upright: a}, then: home}", "- if: [upright: {object: a, tolerance: 15 deg}]\n  then: [home]"),
    ("- {repeat: home, until: gripper_clear}", "- {repeat: [home], until: [gripper_clear], at_most: 10}"),
    ("- {try: home, recover: retry}", "- {try: [home], recover: [{do: [retry]}], at_most: 1}"),
    ("- {try: home, recover: [home, retry]}", "- {try: home, recover: [[home, retry]]}"),
    ("- {try: home, recover: [{on: no_ik, do: give_up}]}", "- {try: home, recover: [{on: [no_ik], do: [give_up]}]}"),
    ("- {parallel: {left: home, right: {wait: 3}}}", "- parallel:\n    left: [home]\n    right: [wait: 3]"),
    ("- move: cup + [0, 0, 10 cm]", "- move: {to: 'cup+[0,0,5 cm] + [0, 0, 0.05]'}"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_short_and_long_forms_say_the_same(one: str, other: str):
    assert plain(steps_of(one)) == plain(steps_of(other))


def test_conditions_combine():
    text = "- any: [upright: a, not: {near: {object: a, to: b}}]\n- all: [gripper_clear]\n- for x in xs: [at_rest: x]"
    names = [(step.name, step.kind) for step, _ in walk(steps_of(text, kind="predicate"))]
    assert names == [(name, "predicate") for name in ("upright", "near", "gripper_clear", "at_rest")]


def test_walking_tells_conditions_from_skills():
    steps = steps_of("- {if: gripper_clear, then: home, else: {repeat: home, until: at_rest}}")
    assert [(step.kind, step.name) for step, _ in walk(steps)] == [
        ("predicate", "gripper_clear"),
        ("skill", "home"),
        ("skill", "home"),
        ("predicate", "at_rest"),
    ]


WRONG = [
    ("- choose: [home]", "steps[1].choose: expected a list of two branches or more; write [home, wait: 5]"),
    ("- choose: [70 %: home, 20 %: home]", "steps[1].choose: the weights add up to 90 %; make them add up to 100 %"),
    ("- choose: [70 %: home, home]", "some branches have a weight and some have none"),
    ("- choose: [0: home, 1: home]", "a branch of weight 0 is never taken"),
    ("- choose: [hme, home]", "steps[1].choose[0]: unknown skill 'hme'; did you mean 'home'?"),
    ("- choos: [home, home]", "steps[1].choos: unknown skill 'choos'; did you mean 'choose'?"),
    ("- choose item of items: [home]", "unknown skill 'choose item of items'"),
    ("- choose home in items: [pick: item]", "unknown object 'item'; did you mean"),
    ("- {if: gripper_clear}", "steps[1].if: 'then' is missing; add 'then: …'"),
    ("- {if: gripper_clear, thn: home}", "steps[1].thn: unknown key 'thn'; did you mean 'then'?"),
    ("- {if: home, then: home}", "steps[1].if: unknown predicate 'home'"),
    ("- {if: {upright: itm}, then: home}", "steps[1].if.upright.object: unknown object 'itm'"),
    ("- {repeat: home}", "steps[1].repeat: the number of repetitions is missing; write 'until:'"),
    ("- {repeat: home, times: 3, at_most: 2}", "the number of repetitions is missing"),
    ("- {repeat: home, times: 0}", "steps[1].times: expected a whole number from 1 to 100, found 0"),
    ("- {repeat: home, times: true}", "expected a whole number from 1 to 100"),
    ("- {try: home}", "steps[1].try: 'recover' is missing"),
    ("- {try: home, recover: [{on: no_luck, do: home}]}", "steps[1].recover[0].on: unknown reason 'no_luck'"),
    ("- {try: home, recover: [{on: no_ik, steps: home}, [home]]}", "expected one name, or one 'name: parameters'"),
    ("- retry", "steps[1]: 'retry' is only allowed in 'recover:'"),
    ("- {try: retry, recover: home}", "steps[1].try: 'retry' is only allowed in 'recover:'"),
    ("- parallel: [home]", "steps[1].parallel: expected steps by the name of an arm"),
    ("- any: [gripper_clear]", "steps[1]: 'any' is only allowed among conditions"),
]


@pytest.mark.parametrize(("step", "expected"), WRONG)
def test_a_mistake_in_a_composite_is_one_line_at_its_place(step: str, expected: str):
    assert expected in complaint(changed("- home", step))


def test_a_condition_that_only_steps_have_is_unknown_in_success():
    assert "success[1]: 'repeat' is only allowed among steps" in complaint(
        changed("- nothing_on_floor", "- {repeat: home, times: 2}")
    )


# The following functions write random steps in random forms.

names = st.sampled_from(["a", "items[0]", "x"])
conditions = st.deferred(
    lambda: (
        st.sampled_from(["gripper_clear", "nothing_on_floor", "at_rest"])
        | st.builds(lambda name: {"upright": name}, names)
        | st.builds(lambda name, other: {"near": {"object": name, "to": other, "within": "3 cm"}}, names, names)
        | st.builds(lambda word, inside: {word: inside}, st.sampled_from(["any", "all", "not"]), blocks_of(conditions))
        | st.builds(lambda inside: {"for x in items": inside}, st.lists(conditions, min_size=1, max_size=2).map(tuple))
    )
)


def blocks_of(entries: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return entries | st.lists(entries, min_size=1, max_size=2).map(tuple)


def choices(entries: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    weighed = st.builds(lambda weight, block: {str(weight): block}, st.integers(1, 9), blocks_of(entries))
    return (st.lists(weighed, min_size=2, max_size=3) | st.lists(blocks_of(entries), min_size=2, max_size=3)).map(tuple)


def recoveries(entries: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    block = blocks_of(entries | st.sampled_from(["retry", "give_up"]))
    selective = st.builds(lambda reason, do: {"on": reason, "do": do}, st.sampled_from(["no_ik", ("no_path",)]), block)
    return block | st.lists(selective, min_size=1, max_size=2).map(tuple)


steps = st.deferred(
    lambda: (
        st.sampled_from(["home", {"wait": 3}])
        | st.builds(lambda name: {"pick": name}, names)
        | st.builds(lambda word, body: {f"{word} x in items": body}, st.sampled_from(["for", "choose"]), lists)
        | st.builds(lambda branches: {"choose": branches}, choices(steps))
        | st.builds(
            lambda test, then, other: {"if": test, "then": then} | ({"else": other} if other else {}),
            blocks_of(conditions),
            blocks_of(steps),
            st.none() | blocks_of(steps),
        )
        | st.builds(lambda body, until: {"repeat": body, "until": until}, blocks_of(steps), blocks_of(conditions))
        | st.builds(lambda body, times: {"repeat": body, "times": times}, blocks_of(steps), st.integers(1, 100))
        | st.builds(lambda body, recover: {"try": body, "recover": recover}, blocks_of(steps), recoveries(steps))
        | st.builds(
            lambda arms: {"parallel": arms}, st.dictionaries(st.sampled_from("ab"), blocks_of(steps), min_size=1)
        )
    )
)
lists = st.lists(steps, min_size=1, max_size=3).map(tuple)


def tuples(data: Any) -> Any:
    """Convert to plain data as in a document."""
    if isinstance(data, dict):
        return {key: tuples(value) for key, value in data.items()}
    return tuple(map(tuples, data)) if isinstance(data, list) else data


@settings(max_examples=60)
@given(lists)
def test_the_plain_form_is_read_as_itself_and_holds_against_the_schema(data: Any):
    document = Document("steps.yaml", "", None, {}, {})
    once = plain(parse_steps(document, (), data, kind="skill"))
    assert plain(parse_steps(document, (), tuples(once), kind="skill")) == once
    for form in (data, once):
        assert valid(form, SCHEMA["$defs"]["TaskFile"]["properties"]["steps"], SCHEMA)


@settings(max_examples=60)
@given(lists)
def test_walking_finds_every_statement(data: Any):
    def count(value: Any) -> int:
        if isinstance(value, dict):
            return sum(map(count, value.values())) + sum(key in STATEMENTS for key in value)
        return sum(map(count, value)) if isinstance(value, list) else 0

    document = Document("steps.yaml", "", None, {}, {})
    parsed = parse_steps(document, (), data, kind="skill")
    found = list(walk(parsed))
    assert all(isinstance(step, Step) for step, _ in found)
    assert len(found) == count(plain(parsed))


STATEMENTS = {"home", "wait", "pick", "gripper_clear", "nothing_on_floor", "at_rest", "upright", "near"}


@settings(max_examples=40)
@given(
    st.integers(0, 5), st.sampled_from(["choose", "if", "then", "try", "recover", "repeat", "until", "any", "- [", "5"])
)
def test_words_of_the_language_in_wrong_places_end_in_one_line(place: int, word: str):
    lines: list[str] = list(TEXT.splitlines())
    at = lines.index("steps:") + 1 + place
    lines[at] = lines[at].replace(lines[at].strip().removeprefix("- ").split(":")[0], word, 1)
    try:
        parse_task("\n".join(lines) + "\n")
    except InputError as error:
        assert "\n" not in str(error) and str(error).startswith("task.yaml:")
