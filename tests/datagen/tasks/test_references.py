from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.references import (
    AttributeRef,
    Expression,
    MemberRef,
    NameRef,
    build_environment,
    evaluate,
    names_in,
    parse_reference,
    resolve,
)
from tests.support.refusals import refusal


@dataclass(frozen=True)
class Thing:
    name: str
    group: str = ""
    kind: str = ""
    object_class: str = ""


ITEMS = [Thing("items_0", "items", "can", "metal"), Thing("items_1", "items", "pear", "organic")]
BINS = [Thing("blue", "bins", "", "metal"), Thing("green", "bins", "", "organic"), Thing("tray")]
NAMES = build_environment(objects=ITEMS, fixtures=BINS, regions=["start"]) | {"item": ITEMS[1]}


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("item", "items_1"),
        ("items[0]", "items_0"),
        ("items_0", "items_0"),
        ("tray", "tray"),
        ("start", "start"),
        ("bins[item.class]", "green"),
        ("bins[ items[0].class ]", "blue"),
        ("bins['metal']", "blue"),
        ('bins["organic"]', "green"),
    ],
)
def test_a_reference_leads_to_one_thing(reference: str, name: str):
    assert resolve(reference, NAMES).name == name


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("itm", "unknown name 'itm'; did you mean 'item'?"),
        ("item.colour", "unknown attribute 'colour'; known: class, kind, name"),
        ("start.class", "'start' has no class"),
        ("items", "'items' is a group of 2; one thing is needed here; loop over it"),
        ("items[2]", "'items[2]' does not exist: the group has 2 members"),
        ("bins['glass']", "'bins' has no member of class 'glass'; known: metal, organic"),
        ("bins[item]", "'items_1' cannot choose from 'bins'; write a class or a number"),
        ("tray['metal']", "'tray' is not a group: it has no members"),
        ("item.class", "'organic' does not name a thing in the scene"),
    ],
)
def test_a_reference_to_nothing_says_what_there_is(reference: str, expected: str):
    assert expected in refusal(resolve, reference, NAMES)


def test_two_members_of_one_class_are_no_answer():
    names = build_environment(fixtures=[Thing("a", "bins", "", "metal"), Thing("b", "bins", "", "metal")])
    with pytest.raises(InputError, match="2 members of class 'metal'"):
        resolve("bins['metal']", names)


@pytest.mark.parametrize(
    "text", ["", "a b", "a[", "a[.]", "a.", "f()", "a[0]]", "1", "a-b", "a['x", "__import__('os')"]
)
def test_what_is_not_a_reference_is_refused(text: str):
    with pytest.raises(InputError, match="is not a reference"):
        parse_reference(text)


words = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
expressions: st.SearchStrategy[Expression] = st.recursive(
    words.map(NameRef),
    lambda inner: (
        st.builds(AttributeRef, inner, words)
        | st.builds(MemberRef, inner, st.integers(0, 99) | st.text("abc -", max_size=5) | inner)
    ),
    max_leaves=6,
)


def written(expression: Expression | str | int) -> str:
    match expression:
        case NameRef(name):
            return name
        case AttributeRef(base, name):
            return f"{written(base)}.{name}"
        case MemberRef(base, index):
            inside = f"'{index}'" if isinstance(index, str) else written(index)
            return f"{written(base)}[{inside}]"
        case _:
            return str(expression)


@given(expressions)
def test_a_written_reference_parses_to_itself(expression: Expression):
    assert parse_reference(written(expression)) == expression


@given(expressions)
def test_a_reference_with_unknown_names_always_fails_in_one_line(expression: Expression):
    assert any(repr(name) in refusal(evaluate, expression, {}) for name in names_in(expression))
