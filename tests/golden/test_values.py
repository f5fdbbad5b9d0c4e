"""The golden values themselves: small, complete, and only updated with a raised version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nimbus.datagen.tasks.plugins import discover, discover_components
from tests.golden.values import FOLDER, GoldenFile, digest, is_close
from tests.golden.versions import built_in

discover()
discover_components()

ELSEWHERE = {
    "planner curobo",
    "simulator isaacsim",
    "render isaacsim",
    "render external",
    "render blender",
    "load handed over",
}
ELSEWHERE |= {"randomize elsewhere", "plan elsewhere"}
"""Components that need a GPU or another program."""
KINDS = ("skill", "predicate", "randomizer", "composite", "planner", "simulator", "load", "plan", "render", "store")


def test_values_are_at_most_24_kb() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) <= 24_000


def test_every_built_in_component_has_a_value() -> None:
    names = " ".join(key for path in FOLDER.glob("*.json") for key in json.loads(path.read_text()))
    components = {f"{kind} {name}" for kind in KINDS for name in built_in(kind)} - ELSEWHERE
    assert not {component for component in components if component not in names}


def test_changed_output_names_version_to_raise(tmp_path: Path) -> None:
    golden = GoldenFile(tmp_path / "some.json", update=True)
    golden.check("skill pick", [1.0, "done"], {"Pick.version": 1, "Planner.version": 3})
    for update in (False, True):
        golden = GoldenFile(tmp_path / "some.json", update=update)
        golden.check("skill pick", [1.0, "done"], {"Pick.version": 1, "Planner.version": 3})
        expected = (
            r"raise Pick\.version \(or, where the change is there, Planner\.version\), then run 'python -m pytest"
        )
        with pytest.raises(AssertionError, match=expected):
            golden.check("skill pick", [1.1, "done"], {"Pick.version": 1, "Planner.version": 3})
    golden.check("skill pick", [1.1, "done"], {"Pick.version": 2, "Planner.version": 3})
    assert json.loads((tmp_path / "some.json").read_text()) == {"skill pick": ["2.3", [1.1, "done"]]}


def test_raised_version_asks_for_update(tmp_path: Path) -> None:
    GoldenFile(tmp_path / "some.json", update=True).check("skill pick", "a", {"Pick.version": 1})
    with pytest.raises(AssertionError, match="was made with version 1, now 2: run 'python -m pytest"):
        GoldenFile(tmp_path / "some.json").check("skill pick", "a", {"Pick.version": 2})


def test_digest_forgives_rounding_and_nothing_else() -> None:
    assert digest({"a": 0.1 + 0.2, "b": [1, "x"]}) == digest({"b": (1, "x"), "a": 0.3})
    assert digest(0.3) != digest(0.300002)


def test_numbers_within_tolerance_are_close() -> None:
    assert is_close(["a", 1.004], ["a", 1.0], 0.01) and not is_close(["a", 1.02], ["a", 1.0], 0.01)
    assert not is_close(["b", 1.0], ["a", 1.0], 0.01) and not is_close([1.0], [1.0, 1.0], 0.01)
