import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen import registry
from nimbus.datagen.episode.layout import DEFAULT_MODALITIES
from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.task import load_any_task, load_task, parse_task, task_names
from tests.support.refusals import refusal
from tests.support.task_text import TEXT, changed, place


def complaint(text: str) -> str:
    return refusal(parse_task, text)


def test_a_task_file_becomes_values():
    task = parse_task(TEXT, name="sort")
    assert (task.name, task.robot, task.rate) == ("sort", "panda", 15.0)
    assert task.objects["items"].count == (2, 4)
    assert task.objects["items"].lying == 0.33
    assert task.cameras["front"].vertical_fov == pytest.approx(math.radians(42))
    assert task.randomize["camera"].model_dump()["position"] == 0.05
    assert task.text == TEXT


def test_every_task_that_comes_with_nimbus_loads():
    assert "sort_trash" in task_names()
    for name in task_names():
        assert load_any_task(name).name == name


def test_sort_trash_has_at_most_thirty_lines():
    lines = load_task("sort_trash").text.splitlines()
    assert sum(bool(line.split("#")[0].strip()) for line in lines) <= 30


CAMERAS = TEXT[TEXT.index("cameras:") : TEXT.index("randomize:")]
VARIED = TEXT[TEXT.index("randomize:") : TEXT.index("instructions:")]


def test_cameras_and_variations_have_names():
    short = TEXT.replace(CAMERAS, "cameras: front+wrist\n").replace(VARIED, "randomize: medium\n")
    task, shipped = parse_task(short), load_task("sort_trash")
    assert task.cameras == shipped.cameras
    assert task.randomize.keys() >= shipped.randomize.keys()
    assert list(task.cameras) == ["front", "wrist"]
    assert parse_task(TEXT.replace(CAMERAS, "")).cameras == shipped.cameras


def with_cameras(settings: str) -> str:
    return TEXT.replace(CAMERAS, f"cameras: {{front: {{preset: front, {settings}}}}}\n")


def test_camera_preset_takes_changes():
    plain, changed = (parse_task(with_cameras(text)).cameras["front"] for text in ("", "size: [640, 480]"))
    assert changed == plain.model_copy(update={"size": (640, 480)})


def test_modalities_default_to_all():
    assert parse_task(with_cameras("")).cameras["front"].camera("front").modalities == DEFAULT_MODALITIES
    asked = parse_task(with_cameras("modalities: [depth, rgb]")).cameras["front"]
    assert asked.camera("front").modalities == ("rgb", "depth")
    assert not {"flow", "keypoints"} & set(DEFAULT_MODALITIES)
    asked = parse_task(with_cameras("modalities: [rgb, keypoints, flow]")).cameras["front"]
    assert asked.camera("front").modalities == ("rgb", "flow", "keypoints")


def test_modalities_left_out_keep_the_hash():
    """A task from before the introduction of modalities makes the same episodes."""
    assert "modalities" not in parse_task(with_cameras("")).cameras["front"].model_dump()


def test_modalities_of_a_task_are_added_to_all_cameras():
    plain, asked = parse_task(TEXT), parse_task(TEXT + "modalities: [keypoints, end_effector]\n")
    assert asked.modalities == ("keypoints", "end_effector")
    for name, camera in asked.cameras.items():
        assert camera.camera(name).modalities == (*plain.cameras[name].camera(name).modalities, "keypoints")
    assert asked.content_hash != plain.content_hash
    assert parse_task(TEXT + "modalities: []\n").content_hash == plain.content_hash
    assert "modalities" in complaint(TEXT + "modalities: [rgb]\n")


@pytest.mark.parametrize(
    ("modalities", "line"),
    [
        ("[depth]", "a camera without rgb: previews and exports need it; write modalities: [rgb, depth]"),
        ("[rgb, rgb]", "'rgb' is listed twice"),
        ("[rgb, color]", "modalities"),
        ("[]", "a camera without rgb"),
        ("rgb", "modalities"),
    ],
)
def test_wrong_modalities_get_one_line(modalities: str, line: str):
    assert line in complaint(with_cameras(f"modalities: {modalities}"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CAMERAS, "cameras: [front, wrist]\n"),
        (CAMERAS, "cameras: {front: front, wrist: wrist}\n"),
        (CAMERAS, "cameras: wrist  +front\n"),
        (VARIED, "family: sorting\nrandomize:\n  camera: {position: 5 cm}\n"),
    ],
)
def test_presets_and_the_family_say_nothing_of_their_own(old: str, new: str):
    plain = TEXT.replace(CAMERAS, "cameras: front+wrist\n") if old == CAMERAS else TEXT
    tasks = [parse_task(text) for text in (TEXT.replace(old, new), plain)]
    assert tasks[0].cameras == tasks[1].cameras
    if list(tasks[0].cameras) == list(tasks[1].cameras):
        assert tasks[0].content_hash == tasks[1].content_hash


SAME = [
    ("robot: panda", "# a comment\nrobot:   'panda'"),
    ("- pick: item", "- pick: {object: item}"),
    ("lying: 33 %", "lying: 0.33"),
    ("center: [0.5, 0.0]", "center: [50 cm, 0]"),
    ("robot: panda\nscene: tabletop", "scene: tabletop\nrobot: panda"),
]
DIFFERENT = [
    ("count: [2, 4]", "count: [2, 3]"),
    ("- home\n", "- home\n  - home\n"),
    ("position: 5 cm", "position: 4 cm"),
    ("Sort {items}.", "Sort the {items}."),
    ("  - nothing_on_floor\n", ""),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_formatting_does_not_change_the_content_hash(old: str, new: str):
    assert parse_task(changed(old, new)).content_hash == parse_task(TEXT).content_hash


@pytest.mark.parametrize(("old", "new"), DIFFERENT)
def test_what_the_file_says_changes_the_content_hash(old: str, new: str):
    assert parse_task(changed(old, new)).content_hash != parse_task(TEXT).content_hash


MISTAKES = [
    (CAMERAS, "cameras: front+wirst\n", "task.yaml:16:10: cameras: unknown camera 'wirst'; did you mean 'wrist'?"),
    (
        VARIED,
        "randomize: mediun\n",
        "task.yaml:19:12: randomize: unknown randomization 'mediun'; did you mean 'medium'",
    ),
    (CAMERAS, "cameras: {mine: frnt}\n", "cameras: unknown camera 'frnt'; did you mean 'front'?"),
    (CAMERAS, "cameras: 3\n", "cameras: expected a mapping (key: value), found 3"),
    ("robot:", "robt:", place(1, "robot") + "robt: unknown key 'robt'; did you mean 'robot'?"),
    ("scene: tabletop\n", "", "task.yaml:1:1: 'scene' is missing; add 'scene: …' (USD stage: a name from"),
    ("robot: panda", "robot: [panda]", place(1, "panda") + "robot: expected text, found ['panda']"),
    (
        "count: [2, 4]",
        "count: [4, 2]",
        place(6, "[2, 4]") + "objects.items.count: the range is reversed: 4 is above",
    ),
    ("count: [2, 4]", "count: [0, 0]", place(6, "[2, 4]") + "objects.items.count: impossible count: 0 to 0 objects"),
    ("count: [2, 4]", "count: [2, 400]", "objects.items.count: impossible count: 2 to 400 objects"),
    (
        "count: [2, 4]",
        "count: [2, 4], distinct: true",
        "objects.items: impossible count: up to 4 distinct kinds from a",
    ),
    ("lying: 33 %", "lying: 1.5", place(6, "33 %") + "objects.items.lying: expected at most 1, found 1.5"),
    ("yaw: any", "yaw: [1, 0]", place(6, "any,") + "objects.items.yaw: the range is reversed: 1 is above 0"),
    ("kinds: [can, pear]", "kinds: [can, can]", "objects.items.kinds: 'can' is listed twice"),
    (
        "region: start",
        "region: strat",
        place(6, "start") + "objects.items.region: unknown region 'strat'; did you mean",
    ),
    ("- pick: item", "- pik: item", "task.yaml:9:9: steps[0].'for item in items'[0].pik: unknown skill 'pik'; did you"),
    ("- home", "- hme", "task.yaml:11:5: steps[1]: unknown skill 'hme'; did you mean 'home'? known: "),
    (
        "- pick: item",
        "- pick: itm",
        place(9, "item") + "steps[0].'for item in items'[0].pick.object: unknown object 'itm'",
    ),
    ("- pick: item", "- pick: start", "this names a region; name an object"),
    (
        "- pick: item",
        "- pick: items",
        "'items' is a group of objects; one object is needed; loop with 'for item in items:'",
    ),
    ("- pick: item", "- pick: items[2]", "'items' may have only 2 objects; write items[0]"),
    (
        "- pick: item",
        "- pick: 3",
        place(9, "item") + "steps[0].'for item in items'[0].pick.object: expected text, found 3",
    ),
    ("- pick: item", "- pick: {object: item, lft: 2 cm}", "unknown key 'lft'; did you mean 'lift'? known: "),
    ("- pick: item", "- pick: {lift: 2 cm}", "pick: 'object' is missing; add 'object: …' (Object to pick)"),
    (
        "- pick: item",
        "- pick: item\n        home:",
        "expected one name, or one 'name: parameters'; begin every step with",
    ),
    ("- home", "- home: 3", "steps[1].home: 'home' takes no value"),
    ("- nothing_on_floor", "- inside: items[0]", "success[1].inside: 'container' is missing; add 'container: …' (The"),
    ("- nothing_on_floor", "- nothing_on_floor: 3", "success[1].nothing_on_floor: 'nothing_on_floor' takes no value"),
    ("for item in items", "for item in itms", "task.yaml:8:5: steps[0].'for item in itms': unknown group of objects"),
    (
        "for item in items",
        "for item of items",
        "task.yaml:8:5: steps[0].'for item of items': 'for item of items' is not",
    ),
    ("for item in items", "for start in items", "the loop variable 'start' is already the name of something"),
    (
        "bins[item.class]",
        "bins[itm.class]",
        place(10, '"bins') + "steps[0].'for item in items'[1].place.into: unknown name",
    ),
    ("bins[item.class]", "bins[item.clas]", "unknown attribute 'clas'; did you mean 'class'? known: class, kind, name"),
    ("bins[item.class]", "bins[item]", "a class goes inside the brackets; write for example [item.class]"),
    ("bins[item.class]", "bins(item)", "'bins(item)' is not a reference; write one like item or bins[item.class]"),
    ("bins[item.class]", "item.class", "this names a text; name "),
    ("- nothing_on_floor", "- nothing_on_flor", "success[1]: unknown predicate 'nothing_on_flor'; did you mean"),
    ("- nothing_on_floor\n", "- for item in items: []\n", "success[1].'for item in items': expected a list of steps"),
    ("scene: tabletop\n", "scene: tabletop\nsteps: []\n", "task.yaml:8:1: steps: key 'steps' is given twice"),
    ("  start: {", "  items: {", "regions.items: 'items' also names a group of objects; rename one"),
    ("  start: {", "  Start: {", "task.yaml:4:3: regions.Start: 'Start' is not a name: lower-case letters"),
    ("size: [0.4, 0.5]", "size: [0.4, 0]", place(4, "0.5]}") + "regions.start.size[1]: expected more than 0 m"),
    ("size: [0.4, 0.5]", "size: 0.4", place(4, "[0.4") + "regions.start.size: expected a list [a, b], found 0.4"),
    ("look_at: [0.5, 0.0, 0.05], ", "", "task.yaml:17:10: cameras.front: give either look_at or wxyz, not both"),
    ("look_at: [0.5, 0.0, 0.05]", "look_at: [1.5, 0, 5]", "cameras.front: the camera looks along its up direction"),
    ("wxyz: [1, 0, 0, 0]", "wxyz: [1, 1, 0, 0]", "cameras.wrist: wxyz is not a unit quaternion"),
    ("42 deg", "42 degrees", place(17, "42 deg") + "cameras.front.vertical_fov: expected an angle such as 0.5 or"),
    ("camera: {", "camra: {", "task.yaml:20:3: randomize.camra: unknown randomizer 'camra'; did you mean 'camera'?"),
    ("position: 5 cm", "position: -5 cm", "randomize.camera.position: expected at least 0 cm, found '-5 cm'"),
    (
        "Sort {items}.",
        "Sort {itms}.",
        "task.yaml:21:35: instructions[1]: unknown field '{itms}'; did you mean 'items'?",
    ),
    ("Sort {items}.", "Sort {items.", "instructions[1]: malformed wording"),
    ("Sort {items}.", "Sort the trash.", "instructions: 'Sort the trash.' is listed twice"),
    (
        "scene: tabletop",
        "scene: tabletop\nscene: other",
        "task.yaml:3:1: scene: key 'scene' is given twice, first in line",
    ),
    ("[0.5, 0.0], size", "[0.5, 0.0, size", "task.yaml:4:"),
]


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES)
def test_a_mistake_is_one_line_with_its_place_and_the_nearest_name(old: str, new: str, expected: str):
    assert expected in complaint(changed(old, new))


def test_an_unknown_task_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(InputError, match="unknown task 'sort_trsh'; did you mean 'sort_trash'?"):
        load_task("sort_trsh")
    with pytest.raises(InputError, match="no such file"):
        load_task(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="is a folder"):
        load_task(f"{tmp_path}/")


def test_a_file_whose_name_cannot_be_part_of_other_names_is_refused(tmp_path):
    (tmp_path / "my task.yaml").write_text(TEXT)
    with pytest.raises(InputError, match="cannot be the name of a task"):
        load_task(tmp_path / "my task.yaml")


SKILL = '''
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import Skill

@register("skill", "wave_from_a_folder")
class Wave(Skill):
    """Wave."""
    times: int = 3

    def run(self, arm): ...
'''


@pytest.fixture
def registry_of_its_own(monkeypatch):
    """Separate the components that a test registers from those of other tests."""
    monkeypatch.setattr(registry, "_components", dict(registry._components))


@pytest.mark.usefixtures("registry_of_its_own")
def test_a_folder_of_ones_own_adds_skills(tmp_path):
    (tmp_path / "wave.py").write_text(SKILL)
    (tmp_path / "greet.yaml").write_text(changed("- home", "- wave_from_a_folder: {times: 2}"))
    task = load_task(tmp_path / "greet.yaml", skill_folders=[tmp_path])
    assert load_task(tmp_path / "greet.yaml", skill_folders=[tmp_path]).content_hash == task.content_hash


def test_a_broken_skill_file_is_one_line_with_its_place(tmp_path):
    (tmp_path / "broken.py").write_text("import nimbus\ndef run(:\n")
    with pytest.raises(InputError, match=r"broken.py:2: cannot be imported: SyntaxError"):
        load_task("sort_trash", skill_folders=[tmp_path])
    with pytest.raises(InputError, match="no such folder"):
        load_task("sort_trash", skill_folders=[tmp_path / "none"])


def test_a_camera_looks_where_it_is_told():
    from scipy.spatial.transform import Rotation

    camera = parse_task(TEXT).cameras["front"].camera("front")
    turn = Rotation.from_quat(camera.wxyz, scalar_first=True)
    sight = np.subtract((0.5, 0.0, 0.05), (1.5, 0.0, 0.9))
    assert turn.apply([0, 0, -1]) == pytest.approx(sight / np.linalg.norm(sight))
    assert turn.apply([0, 1, 0])[2] > 0
    assert turn.apply([1, 0, 0])[2] == pytest.approx(0)


TOKENS = [
    "",
    " ",
    ":",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "#",
    "&a ",
    "*a",
    "!x ",
    "0",
    "-1",
    "1e99",
    ".inf",
    "null",
    "any",
]


@settings(max_examples=100)
@given(st.integers(0, len(TEXT)), st.integers(0, 12), st.sampled_from(TOKENS) | st.text(max_size=3))
def test_no_change_of_a_file_ends_in_anything_but_a_task_or_one_line(start: int, length: int, token: str):
    try:
        parse_task(TEXT[:start] + token + TEXT[start + length :])
    except InputError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("task.yaml:")


def test_another_robot_is_as_if_the_file_named_it(tmp_path):
    """The hash and the text that is stored in episodes include the robot."""
    own, other = load_task("pick_and_place"), load_task("pick_and_place", robot="ur10")
    assert (other.robot, other.text) == ("ur10", own.text.replace("robot: panda", "robot: ur10"))
    assert other.content_hash == parse_task(other.text).content_hash != own.content_hash
    assert load_task("pick_and_place", robot="panda") == own
    (tmp_path / "arms").mkdir()
    (tmp_path / "arms" / "mine.yaml").write_text("")
    (tmp_path / "task.yaml").write_text(own.text)
    found = load_task(tmp_path / "task.yaml", robot=str(tmp_path / "arms" / "mine.yaml"))
    assert "robot: arms/mine.yaml\n" in found.text and found.robot == str(tmp_path / "arms" / "mine.yaml")


@pytest.mark.parametrize(
    ("task", "robot", "said"),
    [
        ("pick_and_place", "pandda", "--robot: unknown robot 'pandda'; did you mean 'panda'"),
        ("pick_and_place", "none.yaml", "--robot: none.yaml: no such file"),
        ("navigate_homes", "panda", "is a navigation task, which has a body and no robot"),
    ],
)
def test_another_robot_that_cannot_be(task: str, robot: str, said: str):
    assert said in refusal(lambda name: load_any_task(name, robot=robot), task)
