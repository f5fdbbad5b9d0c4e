"""Every text of a task file that could name a file is in the list of its files, or declared harmless here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from nimbus.datagen import registry
from nimbus.datagen.files.scene_files import is_path, scene_folder
from nimbus.datagen.plugin import Field, Skill, Streams, Workcell
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization
from nimbus.datagen.tasks.named_files import is_shipped, may_hold_text, own_files
from nimbus.datagen.tasks.navigation_file import NavigationFile
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import ObjectReference, Statement
from nimbus.datagen.tasks.steps import Step
from nimbus.datagen.tasks.task import load_any_task, load_task, parse_any_task, task_names
from nimbus.datagen.tasks.task_file import TaskFile
from tests.support.one_can import TEXT

FILES = {
    "DistractorRandomization.library",
    "Do.demo",
    "DomeRandomization.textures",
    "MeshSource.meshes",
    "ObjectGroup.library",
    "RoomSettings.bench",
    "SplatFileSettings.proxy",
    "SplatFileSettings.splat",
    "StageFileSettings.file",
    "TaskFile.robot",
    "TaskFile.scene",
    "TexturesRandomization.folder",
}
"""Fields that name files; :func:`own_files` returns them."""
NOT_READ = {"NavigationFile.pipeline", "TaskFile.pipeline"}
"""Commands do not read the pipeline file of a stored task: ``check_pipeline`` and ``nimbus rerender`` refuse it."""
WORDS = {
    "CameraSettings.mount": "link of the robot",
    "Closed.joint": "joint of an object",
    "Close.joint": "joint of an object",
    "DistractorRandomization.kinds": "kinds of a library",
    "DistractorRandomization.region": "region of the task",
    "Handover.giver": "arm",
    "Handover.receiver": "arm",
    "Hang.hole": "frame of an object",
    "Hang.hook": "frame of a fixture",
    "Held.arm": "arm",
    "Insert.hole": "frame of an object",
    "Inserted.hole": "frame of an object",
    "Inside.cavity": "part of a container",
    "LanguageRandomization.frames": "sentences",
    "LiftTogether.arms": "arms",
    "MaterialRandomization.backdrop": "procedural textures, from a closed list",
    "MaterialRandomization.floor": "procedural textures, from a closed list",
    "MaterialRandomization.table": "procedural textures, from a closed list",
    "NavigateSettings.kinds": "kinds of things or rooms",
    "NavigateSettings.to": "registered kind of goal",
    "NavigationFile.cameras": "names of cameras",
    "NavigationFile.family": "word for readers",
    "NavigationFile.randomize": "validated by the model of each randomizer",
    "NavigationFile.scene": "validated by the model of the source",
    "ObjectGroup.classes": "names of classes",
    "ObjectGroup.joints": "joints of an object",
    "ObjectGroup.kinds": "kinds of a library",
    "ObjectGroup.region": "region of the task",
    "Open.joint": "joint of an object",
    "OpenBy.joint": "joint of an object",
    "Press.joint": "joint of an object",
    "Pressed.joint": "joint of an object",
    "Region.on": "surface of the scene",
    "StageFileSettings.surface": "prim of the scene",
    "TaskFile.cameras": "names of cameras",
    "TaskFile.family": "word for readers",
    "TaskFile.instructions": "sentences",
    "TaskFile.objects": "names of groups",
    "TaskFile.randomize": "validated by the model of each randomizer",
    "TaskFile.regions": "names of regions",
    "TaskFile.steps": "validated by the model of each skill",
    "TaskFile.success": "validated by the model of each condition",
    "Turn.joint": "joint of an object",
}
"""Fields that are looked up in the task, the scene, the robot or the code, and never name a file."""


def models() -> Iterator[type[BaseModel]]:
    """Yield the models of all parts of task files that come with Nimbus."""
    discover(())
    kinds = ("skill", "predicate", "randomizer", "scene")
    registered = [registry.lookup(kind, name) for kind in kinds for name in registry.names(kind)]
    left, seen = [TaskFile, NavigationFile, *registered], set[Any]()
    while left:
        model = left.pop()
        if model in seen or not model.__module__.startswith("nimbus."):
            continue
        seen.add(model)
        left += [found for field in model.model_fields.values() for found in parts(field.annotation)]
        yield model


def parts(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from parts(inner)


def test_every_text_of_a_task_file_is_a_listed_file_or_harmless() -> None:
    """A new field must be added to a list here, and to the files of a task if it names one."""
    found = set[str]()
    for model in models():
        marks = model.references() | model.poses() if issubclass(model, Statement) else {}
        for name, field in model.model_fields.items():
            if name not in marks and holds_text(field.annotation):
                found.add(f"{model.__name__}.{name}")
    assert found == FILES | NOT_READ | WORDS.keys()


def holds_text(annotation: Any) -> bool:
    """Return True for a type with texts of its own, apart from those of the models in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return False
    inner = get_args(annotation)
    return any(map(holds_text, inner)) if inner else may_hold_text(annotation)


@pytest.mark.parametrize("name", task_names())
def test_shipped_tasks_name_no_files(name: str) -> None:
    assert own_files(load_any_task(name), draws=True, runs=True) == ()


def test_a_scene_file_and_all_pictures_are_listed() -> None:
    randomize = "{textures: {folder: Pictures}, dome: {textures: [sky.hdr]}}"
    text = TEXT.replace("scene: tabletop", "scene: {file: room.usd}") + f"randomize: {randomize}\n"
    task = parse_any_task(text, name="t")
    assert own_files(task) == ("room.usd",)
    assert own_files(task, draws=True) == ("room.usd", "Pictures/", "sky.hdr")


@pytest.mark.parametrize(
    ("scene", "robot"),
    [("{file: room.usd}", "panda"), ("{family: shop, bench: ./b.usda}", "own.yaml"), ("./b.usda", "panda")],
)
def test_all_paths_begin_at_the_folder_of_the_task_file(scene: str, robot: str) -> None:
    """Otherwise a file of the current folder, which may be of another user, would stand for that of the task."""
    textures = "textures: {folder: Pictures}, dome: {textures: [sky.hdr]}"
    randomize = f"{{distractors: {{library: ./own/, region: start}}, {textures}}}"
    text = TEXT[: TEXT.index("steps:")] + "steps:\n  - do: {demo: take}\nsuccess:\n  - nothing_on_floor\n"
    text = text.replace("scene: tabletop", f"scene: {scene}").replace("robot: panda", f"robot: {robot}")
    text = re.sub("library: [a-z]+", "library: ./own/", text) + f"instructions: [Move it.]\nrandomize: {randomize}\n"
    found = own_files(parse_any_task(text, name="t", folder=Path("mine")), draws=True, runs=True)
    assert len(found) >= 6 and all(name.startswith("mine/") for name in found), found


@pytest.mark.parametrize(
    "scene", ["{meshes: a.ply}", "{meshes: ['*/a.ply', b.glb]}", "{splats: [{splat: a.spz, proxy: b.glb}]}"]
)
def test_paths_of_scans_begin_at_the_folder_of_the_task_file(scene: str) -> None:
    text = (scene_folder("tasks") / "navigate_homes.yaml").read_text()
    text = "\n".join(f"scene: {scene}" if line.startswith("scene:") else line for line in text.splitlines())
    found = own_files(parse_any_task(text, name="t", folder=Path("mine")))
    assert [name for name in found if is_path(name)] and all(
        name.startswith("mine/") for name in found if is_path(name)
    )


def test_names_are_looked_up_in_a_closed_list() -> None:
    assert is_shipped("robots", "panda") and is_shipped("stages", "tabletop") and is_shipped("objects", "trash")
    for name in ("", "panda.yaml", "./panda", "Panda", "panda ", "other"):
        assert not is_shipped("robots", name)


class Look(Skill):
    """Skill of a plug-in that declares no files."""

    scan: str = Field("", description="file")
    object: ObjectReference = Field("", description="thing")

    def run(self, arm: Workcell) -> None:
        """Do nothing."""


class Haze(LayoutRandomization):
    """Randomizer of a plug-in that declares no files."""

    part = "visual"
    maps: dict[str, tuple[Path | str, ...]] = Field({}, description="files")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw nothing."""
        return {}


def test_texts_in_the_settings_of_plug_ins_are_listed() -> None:
    task = load_task("sort_trash")
    look, haze = Look(scan="scan", object="items"), Haze(maps={"fog": ("fog/a", Path("b.png"), "word")})
    task = replace(task, randomize={"haze": haze}, steps=(Step("look", look, ("steps", 0), "skill"),))
    assert own_files(task) == ("fog", "fog/a", "b.png", "word")
    assert own_files(task, runs=True) == ("fog", "fog/a", "b.png", "word", "scan")
