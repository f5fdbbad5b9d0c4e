"""Choice of the tests that a change affects: nearest first, within a limit of time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.affected_tests import ROOT, choose, distances, find_importers, find_modules, imported_names, room_tests

A, B, C, TEST_A, TEST_C = (Path(name) for name in ("a.py", "b.py", "c.py", "test_a.py", "test_c.py"))
IMPORTERS = {A: {B, TEST_A}, B: {C}, C: {TEST_C}, TEST_A: set(), TEST_C: set()}


def test_distance_counts_imports_to_the_change():
    assert distances([A], IMPORTERS) == {A: 0, B: 1, TEST_A: 1, C: 2, TEST_C: 3}
    assert distances([C], IMPORTERS) == {C: 0, TEST_C: 1}


def test_nearest_tests_are_chosen_within_limit():
    found = choose({TEST_A: 1, TEST_C: 3}, seconds=lambda _: 2.0, limit=3.0)
    assert (found.run, found.left_out) == ((TEST_A,), (TEST_C,))


def test_nearest_test_runs_however_long():
    assert choose({TEST_A: 1}, seconds=lambda _: 900.0, limit=1.0).run == (TEST_A,)


@pytest.mark.parametrize(
    "text",
    [
        "from nimbus.runner.cell import run",
        "def load():\n    import nimbus.runner.cell.run",
        "CODE = 'from nimbus.runner.cell import run'",
        "CODE = 'import sys\\nimport nimbus.runner.cell.run'",
    ],
)
def test_imports_are_found_wherever_they_stand(text: str):
    assert "nimbus.runner.cell.run" in set(imported_names(ast.parse(text)))


@pytest.fixture(scope="module")
def importers() -> dict[Path, set[Path]]:
    return find_importers(find_modules(ROOT))


def test_this_test_is_nearest_to_the_tool(importers: dict[Path, set[Path]]):
    assert distances([ROOT / "tools/affected_tests.py"], importers)[Path(__file__).resolve()] == 1


def test_skills_are_imported_by_their_loader(importers: dict[Path, set[Path]]):
    assert any(path.name == "plugins.py" for path in importers[ROOT / "skills/pick.py"])


def test_scene_files_are_found_by_name(importers: dict[Path, set[Path]]):
    assert ROOT / "tests/skills/test_robots.py" in distances([ROOT / "scenes/robots/ur5.yaml"], importers)


def test_room_of_a_skill_holds_its_tests():
    inside, outside = ROOT / "tests/skills/test_x.py", ROOT / "tests/runner/test_x.py"
    assert room_tests(ROOT / "skills/pick.py", [inside, outside]) == [inside]
