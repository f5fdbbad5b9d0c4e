import json
from typing import Any

import pytest

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder, scene_names
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.tasks.json_schema import task_schema
from nimbus.datagen.tasks.task import NavigationTask, parse_any_task
from tests.support.json_schema import valid
from tests.support.task_text import TEXT, changed

SCHEMA = task_schema()
TASK, NAVIGATION = (SCHEMA["$defs"][name] for name in ("TaskFile", "NavigationFile"))
NAVIGATES = """\
scene: {homes: 4, rooms: [4, 9]}
body: {radius: 25 cm, turn: 70 deg/s}
navigate: {to: object, kinds: [chair, bed], length: [2 m, 25 m]}
keep: {duplicates: 40 cm}
cameras: {front: {tilt: 10 deg, modalities: [rgb, depth]}}
randomize: {rig: {height: [0.6, 1.4]}, lamps: {}}
"""


def holds(text: str) -> bool:
    return valid(parse(text, "task.yaml").data, SCHEMA, SCHEMA)


def inside(value: Any, key: str) -> list[Any]:
    """Yield every value of a key, at any depth."""
    if isinstance(value, dict):
        here = [value[key]] if key in value else []
        return here + [found for child in value.values() for found in inside(child, key)]
    return [found for child in value for found in inside(child, key)] if isinstance(value, list) else []


def test_the_tasks_that_come_with_nimbus_hold():
    for name in scene_names("tasks"):
        assert holds((scene_folder("tasks") / f"{name}.yaml").read_text()), name


CAMERAS = TEXT[TEXT.index("cameras:") : TEXT.index("randomize:")]
VALID = [
    ("- home", "- home\n  - pick: items[0]\n  - pick: {object: 'items[0]', lift: 5 cm}"),
    ("for item in items:", "for  thing  in items:"),
    ("count: [2, 4]", "count: 3"),
    ("yaw: any", "yaw: [0, 90 deg]"),
    ("camera: {position: 5 cm}", "camera:"),
    ("- nothing_on_floor", "- fixtures_unmoved\n  - fixtures_unmoved: {}"),
]
VALID += [
    (CAMERAS, "cameras: front+wrist\n"),
    (CAMERAS, "cameras: [front, top]\n"),
    (CAMERAS, "cameras: {}\n"),
    (CAMERAS, "cameras: {mine: front}\n"),
    (CAMERAS, "cameras: {mine: {preset: front, modalities: [rgb, depth]}}\n"),
    (CAMERAS, ""),
    ("randomize:\n  camera: {position: 5 cm}", "randomize: medium"),
    ("robot: panda", "family: sorting\nrobot: panda"),
]
INVALID = [
    (CAMERAS, "cameras: frnt\n"),
    (CAMERAS, "cameras: []\n"),
    (CAMERAS, "cameras: {mine: {preset: front, modalities: [rgbd]}}\n"),
    ("randomize:\n  camera: {position: 5 cm}", "randomize: huge"),
    ("robot:", "robt:"),
    ("scene: tabletop\n", ""),
    ("robot: panda", "robot: 3"),
    ("count: [2, 4]", "count: [2, 3, 4]"),
    ("count: [2, 4]", "count: two"),
    ("lying: 33 %", "lying: 1.5"),
    ("- pick: item", "- pik: item"),
    ("- pick: item", "- pick: 3"),
    ("- pick: item", "- pick: {object: item, lft: 2 cm}"),
    ("- pick: item", "- pick: {lift: 2 cm}"),
    ("- pick: item", "- pick: {object: item, lift: 5 kg}"),
    ("- pick: item", "- pick: item\n        home: {}"),
    ("- home", "- pick"),
    ("- home", "- nothing_on_floor"),
    ("- nothing_on_floor", "- home"),
    ("for item in items", "for item of items"),
    ("size: [0.4, 0.5]", "size: 0.4"),
    ("42 deg", "42 degrees"),
    ("camera: {", "camra: {"),
    ("position: 5 cm", "position: -0.1"),
    ('instructions: ["Sort the trash.", "Sort {items}."]', "instructions: []"),
]


@pytest.mark.parametrize(("old", "new"), VALID)
def test_what_the_loader_accepts_the_schema_accepts(old: str, new: str):
    assert holds(changed(old, new))


@pytest.mark.parametrize(("old", "new"), INVALID)
def test_what_the_schema_can_say_it_refuses(old: str, new: str):
    assert holds(TEXT)
    assert not holds(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{homes: 4, rooms: [4, 9]}", "{splat_homes: 4, per_home: 3000}"),
        ("kinds: [chair, bed]", "kinds: all"),
        ("{front: {tilt: 10 deg, modalities: [rgb, depth]}}", "front"),
        ("{rig: {height: [0.6, 1.4]}, lamps: {}}", "small"),
    ],
)
def test_navigation_that_the_loader_accepts_the_schema_accepts(old: str, new: str):
    assert old in NAVIGATES and holds(NAVIGATES)
    text = NAVIGATES.replace(old, new)
    assert isinstance(parse_any_task(text), NavigationTask)
    assert holds(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("homes: 4", "homes: none"),
        ("homes: 4", "house: 4"),
        ("to: object", "to: objekt"),
        ("25 cm", "25 kg"),
        ("turn:", "trun:"),
        ("depth]", "dept]"),
        ("lamps: {}", "lamp: {}"),
        ("keep:", "steps: [home]\nkeep:"),
    ],
)
def test_what_the_schema_can_say_of_navigation_it_refuses(old: str, new: str):
    assert old in NAVIGATES
    with pytest.raises(InputError):
        parse_any_task(NAVIGATES.replace(old, new))
    assert not holds(NAVIGATES.replace(old, new))


def test_every_skill_predicate_and_randomizer_is_offered():
    for kind, steps in (("skill", "steps"), ("predicate", "success")):
        assert TASK["properties"][steps]["items"] == {"$ref": f"#/$defs/{kind}"}
        assert sorted(SCHEMA["$defs"][kind]["anyOf"][1]["properties"]) == registry.names(kind)
    for file in (TASK, NAVIGATION):
        assert sorted(file["properties"]["randomize"]["anyOf"][0]["properties"]) == registry.names("randomizer")
    assert SCHEMA["$defs"]["NavigateSettings"]["properties"]["to"]["enum"] == registry.names("goal")


def test_every_reference_leads_to_a_definition():
    references = set(inside(SCHEMA, "$ref"))
    assert references
    assert all(reference.removeprefix("#/$defs/") in SCHEMA["$defs"] for reference in references)


def test_every_field_of_a_task_says_what_it_means():
    described = [TASK, NAVIGATION, *(SCHEMA["$defs"][name] for name in ("Region", "ObjectGroup", "CameraSettings"))]
    described += [SCHEMA["$defs"][name] for name in ("BodySettings", "NavigateSettings", "RigCameraSettings")]
    described += [SCHEMA["$defs"][f"scene.{name}"] for name in registry.names("scene")]
    described += [SCHEMA["$defs"][f"{kind}.{name}"] for kind in ("skill", "predicate") for name in registry.names(kind)]
    silent = [
        field for model in described for field, rule in model.get("properties", {}).items() if "description" not in rule
    ]
    assert silent == []


def test_the_schema_is_json():
    assert json.loads(json.dumps(SCHEMA)) == json.loads(json.dumps(task_schema()))
