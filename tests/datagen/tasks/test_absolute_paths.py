"""Content of a task file for another folder: every path that loading resolves is absolute, and all else is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import pytest

from nimbus.datagen import registry
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.plugin import Field, Predicate, Streams, register
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization
from nimbus.datagen.tasks.absolute_paths import absolute_document
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import Outcome
from nimbus.datagen.tasks.task import load_task, parse_task

TEXT = """
robot: own.yaml
scene: SCENE
pipeline: ./p.yaml
regions: {start: {on: table, center: [50 cm, 0.0], size: [0.4, 0.5]}}
objects: {items: {library: lib/, kinds: [can], count: 2, region: start}}
steps: [do: {demo: take, on: 'items[0]'}]
success: [{for thing in items: [{fits: scan.ply}, {held: thing}]}, fits]
cameras: front
randomize: {distractors: {library: lib/, region: start}, dome: {textures: [sky.hdr]}, haze: {map: fog.png}, mass: }
instructions: [Go.]
"""


class Fits(Predicate):
    """Condition of a plug-in that reads a file."""

    main = "shape"
    shape: str = Field("cup.ply", description="file")

    def seen_from(self, folder: Path) -> Self:
        """Move the path."""
        return self.model_copy(update={"shape": resolve_from(folder, self.shape)})

    def failure(self, world: Any) -> Outcome | None:
        """Hold always."""


class Haze(LayoutRandomization):
    """Randomizer of a plug-in that reads a file."""

    part = "visual"
    map: str | Path = Field(description="file")

    def seen_from(self, folder: Path) -> Self:
        """Move the path."""
        return self.model_copy(update={"map": folder / self.map})

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw nothing."""
        return {}


@pytest.fixture
def plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the two components for one test."""
    discover(())  # otherwise the components that come with Nimbus would be gone after the test
    monkeypatch.setattr(registry, "_components", dict(registry._components))
    register("predicate", "fits")(Fits)
    register("randomizer", "haze")(Haze)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make an empty folder the current one."""
    monkeypatch.chdir(tmp_path)
    return str(tmp_path)


@pytest.mark.usefixtures("plug_ins")
@pytest.mark.parametrize(
    ("scene", "moved"),
    [
        ("{file: room/room.usda}", {"file": "PLACE/room/room.usda"}),
        ("{family: shop, bench: ./b.usda}", {"family": "shop", "bench": "PLACE/b.usda"}),
        ("./b.usda", "PLACE/b.usda"),
    ],
)
def test_paths_of_all_parts_become_absolute(scene: str, moved: Any, place: str) -> None:
    data = absolute_document(parse_task(TEXT.replace("SCENE", scene)))
    assert (data["robot"], data["pipeline"]) == (f"{place}/own.yaml", f"{place}/p.yaml")
    assert repr(data["scene"]) == repr(moved).replace("PLACE", place)
    assert data["objects"]["items"]["library"] == f"{place}/lib/"
    assert data["steps"] == ({"do": {"demo": f"{place}/take.demo.json", "on": "items[0]"}},)
    loop, alone = data["success"]
    assert loop["for thing in items"] == ({"fits": {"shape": f"{place}/scan.ply"}}, {"held": "thing"})
    assert alone == {"fits": {"shape": f"{place}/cup.ply"}}
    assert data["randomize"] == {
        "distractors": {"library": f"{place}/lib/", "region": "start"},
        "dome": {"textures": (f"{place}/sky.hdr",)},
        "haze": {"map": f"{place}/fog.png"},
        "mass": None,
    }
    assert data["regions"]["start"]["center"] == ("50 cm", 0.0) and data["cameras"] == "front"


@pytest.mark.parametrize("name", ["sort_trash", "place_beside"])
def test_tasks_without_paths_are_unchanged(name: str) -> None:
    task = load_task(name)
    assert absolute_document(task) == task.document.data
