"""The registry: a name refers to one component."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError
from nimbus.datagen.registry import lookup, names, register
from tests.support.refusals import refusal


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    before = dict(registry._components)
    yield
    registry._components.clear()
    registry._components.update(before)


def test_what_was_registered_is_found():
    @register("tool", "hammer")
    class Hammer: ...

    assert lookup("tool", "hammer") is Hammer


def test_names_are_sorted_and_kept_apart_by_kind():
    for name in ("saw", "awl"):
        register("tool", name)(object())
    register("fruit", "pear")(object())
    assert names("tool") == ["awl", "saw"]
    assert names("fruit") == ["pear"]


def test_a_name_taken_is_refused_and_keeps_its_meaning():
    first = register("tool", "saw")(object())
    with pytest.raises(ValueError, match="tool 'saw' is registered twice"):
        register("tool", "saw")(object())
    assert lookup("tool", "saw") is first


def test_registering_the_same_thing_again_changes_nothing():
    saw = object()
    assert register("tool", "saw")(saw) is register("tool", "saw")(saw)


def test_an_unknown_name_is_answered_with_the_known_ones():
    register("tool", "hammer")(object())
    register("tool", "saw")(object())
    told = refusal(lookup, "tool", "hamer", where="a.yaml:1:2")
    assert told == "a.yaml:1:2: unknown tool 'hamer'; did you mean 'hammer'? known: hammer, saw"


@pytest.mark.parametrize("version", [0, -1, True, "2", 1.5, None])
def test_version_other_than_positive_int_refused(version: object):
    component = type("Saw", (), {"version": version})
    with pytest.raises(InputError, match="tool 'saw' in .*: version .* is not a whole number from 1"):
        register("tool", "saw")(component)
    assert names("tool") == []


def test_a_kind_without_names_says_so():
    with pytest.raises(InputError, match="unknown tool 'saw'; known: none"):
        lookup("tool", "saw")
