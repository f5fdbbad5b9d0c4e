from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import create_model

from nimbus.datagen import pipeline
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import (
    STAGES,
    RunContext,
    build,
    load_pipeline,
    parse_pipeline,
    preload,
    register_component,
)
from nimbus.datagen.registry import forget, register
from nimbus.datagen.tasks.named_files import may_hold_text
from nimbus.datagen.tasks.plugins import discover_components
from tests.support import point_robot
from tests.support.refusals import refusal

PIPELINE = "load: map_file\nrandomize: start_and_goal\nplan+render: {point_robot: {view: 1}}\nstore: memory\n"


def context(tmp_path, **settings: object) -> RunContext:
    return RunContext(settings={"map_path": tmp_path / "yard.txt", "log": [], "episodes": {}} | settings)


def test_components_stand_in_the_stages_order_however_the_file_lists_them():
    lines = PIPELINE.splitlines()
    pipeline = parse_pipeline("\n".join(reversed(lines)))
    assert [component.kind for component in pipeline.components] == ["load", "randomize", "plan+render", "store"]
    assert [component.name for component in pipeline.components] == [
        "map_file",
        "start_and_goal",
        "point_robot",
        "memory",
    ]


def test_roles_are_no_part_of_the_content():
    fused = parse_pipeline(PIPELINE + "roles: fused\n")
    assert fused.is_fused and fused.content == parse_pipeline(PIPELINE).content


def test_every_pipeline_that_comes_with_nimbus_serves_all_stages():
    assert "manipulation" in scene_names("pipelines")
    for name in scene_names("pipelines"):
        served = [stage for component in load_pipeline(name).components for stage in component.kind.split("+")]
        assert tuple(served) == STAGES


TEXTS = {
    "CorrectionSettings.rollouts": "file",
    "DemonstrationSettings.recordings": "file",
    "ExternalSettings.command": "file",
    "ExternalSettings.options": "values for the program, which starts in the folder of the file",
    "PolicySettings.actions": "control mode",
    "PolicySettings.options": "file",
    "PolicySettings.policy": "file",
    "PolicySettings.rotation": "form of rotations",
    "PolicySettings.state": "form of states",
}
"""Texts in the settings of components that come with Nimbus."""


def test_every_text_in_the_settings_of_components_is_listed():
    """A new field that names a file moves with :meth:`seen_from`."""
    discover_components()
    models = {model for model in pipeline._settings_models.values() if model.__module__.startswith("nimbus.")}
    fields = {f"{model.__name__}.{name}": field for model in models for name, field in model.model_fields.items()}
    assert {name for name, field in fields.items() if may_hold_text(field.annotation)} == TEXTS.keys()
    moving = {model.__name__ for model in models if hasattr(model, "seen_from")}
    assert moving == {name.partition(".")[0] for name, kind in TEXTS.items() if kind == "file"}


@pytest.mark.parametrize(
    ("plan", "field", "expected"),
    [
        ("policy: {policy: 'mine.py:make_policy'}", "policy", "{here}/mine.py:make_policy"),
        ("policy: {policy: trained}", "policy", "{here}/trained"),
        ("policy: {policy: 'state:trained'}", "policy", "state:{here}/trained"),
        ("policy: {policy: 'replay:/data'}", "policy", "replay:/data"),
        ("policy: {policy: 'ws://host:80'}", "policy", "ws://host:80"),
        ("policy: {policy: demonstrator}", "policy", "demonstrator"),
        ("policy: {policy: 'ws://host:80', options: {map: names.yaml}}", "options", "{{'map': '{here}/names.yaml'}}"),
        ("demonstration: {recordings: takes}", "recordings", "{here}/takes"),
        ("correction: {rollouts: data}", "rollouts", "{here}/data"),
    ],
)
def test_paths_begin_in_the_folder_of_the_file(tmp_path, plan: str, field: str, expected: str):
    """A file of the same path in the current folder, which may be of another user, must not stand for it."""
    discover_components()
    (tmp_path / "mine.yaml").write_text(
        f"load: usd\nrandomize: tabletop\nplan: {{{plan}}}\nrender: newton\nstore: hdf5\n"
    )
    loaded = load_pipeline(tmp_path / "mine.yaml")
    _, settings = pipeline._settings(loaded, loaded.components[2], RunContext())
    assert str(getattr(settings, field)) == expected.format(here=tmp_path)


def test_a_path_that_the_run_chooses_is_its_own():
    discover_components()
    loaded = load_pipeline("evaluation")
    _, settings = pipeline._settings(loaded, loaded.components[2], RunContext(settings={"policy": "trained"}))
    assert getattr(settings, "policy", "") == "trained"


MISTAKES = [
    (
        "store: memory",
        "stor: memory",
        "p.yaml:4:1: stor: unknown stage 'stor'; did you mean 'store'? known: load, plan",
    ),
    ("store: memory\n", "", "p.yaml:1:1: stage 'store' is missing; add 'store: <component>'"),
    ("store: memory", "store: memory\nplan: point", "p.yaml:5:1: plan: stage 'plan' has two components"),
    ("store: memory", "store: memory\nstore: memory", "p.yaml:5:1: store: key 'store' is given twice, first in line 4"),
    (
        "plan+render",
        "plan+store",
        "p.yaml:3:1: plan+store: 'plan+store' are not consecutive stages; the order is load, rand",
    ),
    ("plan+render", "render+plan", "'render+plan' are not consecutive stages"),
    ("store: memory", "store: 3", "p.yaml:4:8: store: expected the name of one component; write 'store: name' or"),
    ("store: memory", "store: {memory: {}, hdf5: {}}", "p.yaml:4:8: store: expected the name of one component"),
    ("store: memory", "store: memory\nroles: merged", "roles: unknown roles 'merged'; write dynamic or fused"),
    (PIPELINE, "- load", "p.yaml:1:1: expected a mapping"),
]


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES)
def test_a_mistake_in_a_pipeline_is_one_line_with_its_place(old: str, new: str, expected: str):
    assert expected in refusal(parse_pipeline, PIPELINE.replace(old, new), name="p")


UNKNOWN = [
    ("memory", "memry", "p.yaml:4:1: store: unknown component 'memry' for store; did you mean 'memory'? known: "),
    ("point_robot", "arm", "p.yaml:3:15: plan+render.arm: unknown component 'arm' for plan+render; known: point_robot"),
    ("view: 1", "veiw: 1", "p.yaml:3:29: plan+render.point_robot.veiw: unknown key 'veiw'; did you mean 'view'?"),
    ("view: 1", "view: far", "p.yaml:3:35: plan+render.point_robot.view: expected a whole number, found 'far'"),
    ("store: memory", "store: {memory: {size: 1}}", "p.yaml:4:18: store.memory.size: unknown key 'size'; known: none"),
]


@pytest.mark.parametrize(("old", "new", "expected"), UNKNOWN)
def test_unknown_components_and_settings_are_answered_with_the_known_ones(old: str, new: str, expected: str, tmp_path):
    assert expected in refusal(build, parse_pipeline(PIPELINE.replace(old, new), name="p"), context(tmp_path))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (
            Path,
            "here",
            "p.yaml:4:24: store.typed.field: Settings.field is declared as Path, which is not a type of YAML",
        ),
        (
            list[int] | None,
            "[1]",
            "Settings.field is declared as list, which is not a type of YAML; declare it as tuple",
        ),
        (
            dict[str, datetime],
            "{a: 1}",
            "declared as datetime, which is not a type of YAML; declare it as str, int, fl",
        ),
        (tuple[int, Literal["a"]], "[1, b]", "p.yaml:4:28: store.typed.field[1]: expected 'a', found 'b'"),
    ],
)
def test_a_setting_of_a_type_that_no_file_holds_says_how_to_declare_it(kind, value: str, expected: str, tmp_path):
    settings = create_model("Settings", __base__=StrictModel, field=(kind, None))
    store: Any = point_robot.MemoryWriter
    register_component("store", "typed", store, settings)
    try:
        text = PIPELINE.replace("store: memory", f"store: {{typed: {{field: {value}}}}}")
        assert expected in refusal(build, parse_pipeline(text, name="p"), context(tmp_path))
    finally:
        forget([("store", "typed")])


def test_what_the_run_offers_is_no_setting(tmp_path):
    text = PIPELINE.replace("view: 1", "view: 2")
    built = build(parse_pipeline(text), context(tmp_path)).stages[2]
    assert isinstance(built, point_robot.PointRobot) and built.view == 2
    offered = context(tmp_path, view=5)
    with pytest.raises(InputError, match="unknown key 'view'; known: break_at"):
        build(parse_pipeline(text), offered)


def test_a_component_without_settings_model_is_refused(tmp_path):
    register("store", "bare")(point_robot.MemoryWriter)
    try:
        with pytest.raises(
            InputError, match="'bare' is registered without settings; register it with register_component"
        ):
            build(parse_pipeline(PIPELINE.replace("memory", "bare")), context(tmp_path))
    finally:
        forget([("store", "bare")])


def test_components_with_preload_load_once(tmp_path, monkeypatch):
    """Components are preloaded before workers are forked; those without ``preload`` are skipped."""
    seen, offered = [], context(tmp_path)
    monkeypatch.setattr(
        point_robot.MemoryWriter, "preload", classmethod(lambda cls, told: seen.append(told)), raising=False
    )
    preload(parse_pipeline(PIPELINE), offered)
    assert seen == [offered]


def test_a_component_that_needs_a_task_says_so():
    with pytest.raises(InputError, match="--task: this pipeline needs a task"):
        RunContext().need_task()


def test_components_already_made_are_closed_when_a_later_one_is_refused(tmp_path):
    offered = context(tmp_path)
    with pytest.raises(InputError):
        build(parse_pipeline(PIPELINE.replace("memory", "memry")), offered)
    assert offered.settings["log"] == ["close plan+render", "close randomize", "close load"]


def test_an_unknown_pipeline_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="task.yaml:3:11: pipeline: unknown pipeline 'manipulatoin'; did you mean"):
        load_pipeline("manipulatoin", where="task.yaml:3:11: pipeline")


def test_a_name_registered_twice_is_refused():
    with pytest.raises(ValueError, match="store 'memory' is registered twice"):
        register("store", "memory")(object)
    assert register("store", "memory")(point_robot.MemoryWriter) is point_robot.MemoryWriter
