from dataclasses import dataclass, field

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.checks.names import check_task
from nimbus.datagen.tasks.task import Task, parse_task
from tests.support.refusals import refusal
from tests.support.task_text import TEXT, changed, place


@dataclass(frozen=True)
class Thing:
    name: str
    group: str = ""
    kind: str = ""
    object_class: str = ""


@dataclass(frozen=True)
class Slab:
    lower: tuple[float, float, float] = (-0.2, -0.7, -0.06)
    upper: tuple[float, float, float] = (0.9, 0.7, 0.0)


@dataclass(frozen=True)
class Stage:
    fixtures: dict[str, Thing] = field(
        default_factory=lambda: {name: Thing(name, "bins", "", name) for name in ("metal", "organic")}
    )
    surfaces: dict[str, Slab] = field(default_factory=lambda: {"table": Slab()})


@dataclass(frozen=True)
class Library:
    classes: dict[str, str]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.classes)

    def kind(self, name: str) -> Thing:
        return Thing(name, object_class=self.classes[name])


TRASH = {"trash": Library({"can": "metal", "pear": "organic"})}
LINKS = ("panda_hand",)


def check(task: Task, *, stage: Stage | None = None, libraries: dict[str, Library] | None = None) -> None:
    check_task(task, stage or Stage(), LINKS, TRASH if libraries is None else libraries)


def test_a_task_that_fits_its_scene_passes():
    check(parse_task(TEXT))


UNFIT = [
    ("on: table", "on: tabel", place(4, "table") + "regions.start.on: the scene has no surface 'tabel'; did you mean"),
    ("center: [0.5, 0.0]", "center: [0.8, 0.0]", "regions.start: x from 0.6 to 1 m reaches beyond 'table'; keep it"),
    (
        "[can, pear]",
        "[can, paer]",
        place(6, "pear") + "objects.items.kinds[1]: unknown kind 'paer'; did you mean 'pear'?",
    ),
    (
        "[can, pear], ",
        "all, distinct: true, ",
        "objects.items.count: impossible count: up to 4 distinct kinds, 'trash'",
    ),
    ("library: trash", "library: trsh", "objects.items.library: unknown object library 'trsh'; did you mean 'trash'?"),
    ("mount: hand", "mount: hnd", place(18, "hand") + "cameras.wrist.mount: the robot has no link 'hnd'; did you mean"),
    ("bins[item.class]", "bin[item.class]", place(10, '"bins') + "steps[0].'for item in items'[1].place.into: unknown"),
    ("bins[item.class]", "metl", "place.into: unknown name 'metl'; did you mean 'metal'?"),
    ("bins[item.class]", "bins", "place.into: 'bins' is a group of 2; one thing is needed here"),
    ("bins[item.class]", "bins[item.kind]", "place.into: 'bins' has no member of class 'can'; known: metal, organic"),
]


@pytest.mark.parametrize(("old", "new", "expected"), UNFIT)
def test_what_the_scene_does_not_have_is_one_line_with_its_place(old: str, new: str, expected: str):
    task = parse_task(changed(old, new))
    assert expected in refusal(check, task)


def test_a_class_without_a_bin_is_found_before_any_simulation():
    library = Library({"can": "metal", "pear": "organic", "jar": "glass"})
    task = parse_task(changed("kinds: [can, pear]", "kinds: all"))
    with pytest.raises(InputError, match="'bins' has no member of class 'glass'; known: metal, organic"):
        check(task, libraries={"trash": library})


def test_names_must_not_also_name_something_in_the_scene():
    fixtures = {name: Thing(name, "bins", "", name) for name in ("metal", "organic")}
    with pytest.raises(InputError, match="regions.start: 'start' also names a fixture"):
        check(parse_task(TEXT), stage=Stage(fixtures=fixtures | {"start": Thing("start")}))
    with pytest.raises(InputError, match="objects.items: 'items' also names something in the scene"):
        check(parse_task(TEXT), stage=Stage(fixtures=fixtures | {"tray": Thing("tray", "items")}))


def test_sort_trash_fits_the_scene_robot_and_library_that_it_names():
    from nimbus.datagen.objects.libraries import open_library
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.tasks.task import load_task
    from nimbus.datagen.usd.stage import read_stage

    task = load_task("sort_trash")
    libraries = {group.library: open_library(group.library) for group in task.objects.values()}
    check_task(task, read_stage(task.scene), load_robot(task.robot).camera_links, libraries)


def real_complaint(text: str) -> str:
    """Return the error of the real scene, robot and libraries about a task; empty if there is none."""
    from nimbus.datagen.objects.libraries import open_library
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.usd.stage import read_stage

    task = parse_task(text)
    libraries = {group.library: open_library(group.library) for group in task.objects.values()}
    robot = load_robot(task.robot)
    try:
        check_task(task, read_stage(task.scene), robot.camera_links, libraries, arms=robot.arm_names)
    except InputError as error:
        assert "\n" not in str(error)
        return str(error)
    return ""


UNABLE = [
    (
        "- home",
        "- {parallel: {left: home}}",
        "steps[1].parallel.left: the robot has no arm 'left'; leave it out",
    ),
    ("- home", "- {parallel: {arm: home}}", ""),
    (
        "- nothing_on_floor",
        "- held: {object: 'items[0]', arm: left}",
        "success[1].held.arm: the robot has no arm 'left'",
    ),
    ("- nothing_on_floor", "- open_by: items[0]", "success[1].open_by.object: a can has no moving part; choose kinds"),
    (
        "- home",
        "- lift_together: items[0]",
        "steps[1].lift_together: 'lift_together' needs two arms, and the robot has",
    ),
    ("- home", "- drive_to: items[0]", "steps[1].drive_to: 'drive_to' needs a robot whose base drives"),
    ("- home", "- move: items[0].top + [0, 0, 10 cm]", ""),
    ("- home", "- move: items[0].rimm", "steps[1].move.to: a can has no point 'rimm'"),
    ("- home", "- move: between(items[0], recycling.top)", ""),
    ("- home", "- move: above(itms[0], 3 cm)", "steps[1].move.to: unknown name 'itms'; did you mean 'items'?"),
    ("- home", "- move: tool + [0, 0, 3 cm]", ""),
]


@pytest.mark.parametrize(("old", "new", "expected"), UNABLE)
def test_what_the_robot_or_a_kind_cannot_do_is_one_line(old: str, new: str, expected: str):
    text = changed(old, new).replace("bins[item.class]", "recycling")
    said = real_complaint(text)
    assert expected in said and bool(said) == bool(expected)


def test_a_part_that_a_kind_lacks_is_named():
    cabinet = "library: furniture, kinds: [drawer_cabinet]"
    text = changed("library: trash, kinds: [can, pear]", cabinet).replace("bins[item.class]", "recycling")
    opened = text.replace("- nothing_on_floor", "- open_by: {object: 'items[0]', joint: drawer_0}")
    assert real_complaint(opened) == ""
    assert "open_by.joint: a drawer cabinet has no part 'door'" in real_complaint(opened.replace("drawer_0", "door"))


def test_a_frame_that_a_kind_lacks_is_named():
    text = changed("- home", "- pick: items[0]\n  - insert: {object: 'items[0]', into: 'items[1]'}").replace(
        "bins[item.class]", "recycling"
    )
    assert "a can has no frame 'tip'" in real_complaint(text)


def test_distractors_of_no_kind_are_refused():
    with pytest.raises(InputError, match=r"randomize\.distractors\.kinds: expected .*, found \[\]"):
        parse_task(changed("camera: {position: 5 cm}", "distractors: {region: start, kinds: []}"))
