"""Cuts files: written and read again, edited, and refused in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.datasets.multiply.contact_rows import ContactRows
from nimbus.datagen.datasets.multiply.cuts import SubtaskCut, find_cuts
from nimbus.datagen.datasets.multiply.cuts_file import (
    KINDS,
    CutsScope,
    DemonstrationCuts,
    parse_cuts,
    row_at,
    seconds_of,
    write_cuts,
)
from nimbus.datagen.datasets.multiply.multiplied_task import keep_cuts
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.datasets.multiply.subtasks import make_subtasks
from nimbus.datagen.files.strict_yaml import parse
from tests.datagen.datasets.multiply.test_subtasks import lifting, story, take_and_put, thing
from tests.support.refusals import refusal

SCOPE = CutsScope(task="t", robot="panda", arms=("arm",), fixtures=frozenset({"shelf"}))
TWO_ARMS = replace(SCOPE, arms=("left", "right"))


def written(
    entries: dict[str, DemonstrationCuts], *shown: Demonstration, scope: CutsScope = SCOPE
) -> dict[str, DemonstrationCuts]:
    """Write cuts and read them again."""
    text = write_cuts(entries, shown, task="t", robot="panda")
    return parse_cuts(parse(text, "cuts.yaml"), shown, scope)


def shown_text() -> tuple[str, Demonstration, ContactRows]:
    """Return the cuts file of a demonstration that takes a cup and puts it down."""
    demonstration, rows = take_and_put()
    entries = {"by hand": DemonstrationCuts(cuts=find_cuts(demonstration, rows, related={}))}
    return write_cuts(entries, [demonstration], task="t", robot="panda"), demonstration, rows


def test_a_file_reads_like_a_list_of_subtasks():
    text, demonstration, _ = shown_text()
    assert text.splitlines()[1:6] == [
        "nimbus_cuts: 1",
        "task: t",
        "robot: panda",
        "demonstrations:",
        f"  by hand:  # 15 rows per second, until {(demonstration.row_count - 1) / 15:.4g}",
    ]
    (take,) = (line for line in text.splitlines() if "take" in line)
    assert take.startswith("      - {arms: [arm], kind: take, frame: cup_0, first: ")


def test_unchanged_cuts_give_the_same_takes():
    text, demonstration, rows = shown_text()
    found = find_cuts(demonstration, rows, related={})
    read = parse_cuts(parse(text, "cuts.yaml"), [demonstration], SCOPE)["by hand"]
    assert read == DemonstrationCuts(cuts=found)
    assert make_subtasks(demonstration, rows, read.cuts) == make_subtasks(demonstration, rows, found)


def test_a_moved_boundary_moves_the_rows_of_a_take():
    text, demonstration, rows = shown_text()
    take, put = find_cuts(demonstration, rows, related={})
    first = f"first: {seconds_of(take.start, 15)!r}"
    assert first in text
    text = text.replace(first, f"first: {seconds_of(take.start + 3, 15)!r}")
    cuts = parse_cuts(parse(text, "cuts.yaml"), [demonstration], SCOPE)["by hand"].cuts
    assert cuts == (replace(take, start=take.start + 3), put)
    before = make_subtasks(demonstration, rows, (take, put))
    after = make_subtasks(demonstration, rows, cuts)
    assert after[0].take.source == f"by hand[{take.start + 3}:{take.stop}]"
    assert after[0].take.tracks["arm"].poses == before[0].take.tracks["arm"].poses[3:]
    assert after[1] == before[1]


@pytest.mark.parametrize("rate", [4.0, 15.0, 29.97, 200.0, 240.0, 1000.0])
def test_a_written_time_is_the_time_of_its_row(rate: float):
    assert all(row_at(seconds_of(row, rate), rate) == row for row in range(0, 20000, 7))


@pytest.mark.parametrize("seed", range(20))
def test_any_cuts_are_read_as_written(seed: int):
    """Cuts of two arms with random boundaries, also of demonstrations that are not used."""
    rng = np.random.default_rng(seed)
    demonstration, _ = story({"left": lifting(1), "right": lifting(0)}, thing("tray_0", 0.3, 0, 0.02))
    one = replace(demonstration, rate=float(rng.choice([7.0, 29.97, 500.0])))
    cuts: list[SubtaskCut] = []
    free = {"left": 0, "right": 0}
    while True:
        arms = (("left",), ("right",), ("left", "right"))[rng.integers(3)]
        start = max(*(free[arm] for arm in arms), cuts[-1].start if cuts else 0) + int(rng.integers(3))
        stop = start + 2 + int(rng.integers(9))
        if stop > one.row_count:
            break
        frame = ("", "tray_0", "shelf")[rng.integers(3)]
        cuts.append(SubtaskCut(arms=arms, verb=KINDS[rng.integers(len(KINDS))], frame=frame, start=start, stop=stop))
        free |= dict.fromkeys(arms, stop)
    left_out = replace(one, name="left: out")
    entries = {
        "by hand": DemonstrationCuts(cuts=tuple(cuts)),
        "left: out": DemonstrationCuts(cuts=(), use=False, reason="no\ncontacts # at all"),
    }
    assert written(entries, one, left_out, scope=TWO_ARMS) == entries


def test_absent_demonstrations_are_left_out():
    _, demonstration, rows = shown_text()
    entries = {"by hand": DemonstrationCuts(cuts=find_cuts(demonstration, rows, related={}))}
    assert list(written(entries, demonstration, replace(demonstration, name="other"))) == ["by hand"]


def test_no_arm_has_two_subtasks_at_once():
    """One hand leaves the tray before the other one, and takes a cup meanwhile: that motion is in the first subtask."""
    left = lifting(1).stay(30, on="tray_0").go(0.3, 0.2, 0.5)
    right = lifting(0).stay(on="tray_0").go(0.3, -0.6, 0.3, rows=8).stay(5, holds="cup_0", near=("world",))
    right.go(0.3, -0.6, 0.5, rows=15, holds="cup_0")
    right.stay(len(left.places) - len(right.places), holds="cup_0")
    things = thing("tray_0", 0.3, 0, 0.02), thing("cup_0", 0.3, -0.6, 0.3)
    demonstration, rows = story({"left": left, "right": right}, *things)
    cuts = find_cuts(demonstration, rows, related={})
    assert [(one.verb, one.arms) for one in cuts] == [("take together", ("left", "right"))]
    assert written({"by hand": DemonstrationCuts(cuts=cuts)}, demonstration, scope=TWO_ARMS)["by hand"].cuts == cuts


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("nimbus_cuts: 1\n", "", "is not a cuts file: it has no nimbus_cuts: 1"),
        ("nimbus_cuts: 1", "nimbus_cuts: 2", "nimbus_cuts"),
        ("task: t\n", "task: u\n", "these are cuts for the task 'u', not for 't'"),
        ("robot: panda", "robot: ur5", "these are cuts for the robot 'ur5', not for 'panda'"),
        ("  by hand:", "  by hanf:", "no demonstration 'by hanf'; did you mean 'by hand'?"),
        ("states: ", "states: f", "these are cuts of another recording of the same name"),
        ("kind: take", "kind: tke", "kind"),
        ("frame: cup_0", "frame: cop_0", "no object 'cop_0'; did you mean 'cup_0'? known: cup_0, goal_0, shelf, world"),
        ("[arm], kind: take", "[arms], kind: take", "the robot has no arm 'arms'; did you mean 'arm'?"),
        ("[arm], kind: take", "[arm, arm], kind: take", "an arm is given twice"),
        ("first: FIRST", "first: -1", "first"),
        ("first: FIRST", "first: soon", "first"),
        ("first: FIRST", "first: .nan", "first"),
        ("last: LAST", "last: 1e5", "100000 s is after the end of the demonstration; it ends at"),
        ("last: LAST", "last: FIRST", "the subtask has 1 rows"),
        ("last: LAST", "last: 0", "the subtask has 0 rows"),
        ("last: LAST", "last: PUT", "the arm 'arm' is still in subtask 1; begin at"),
        ("first: FIRST, last: LAST", "first: LATER, last: END", "is before the start of subtask 1"),
        ("    subtasks:", "    use: false\n    subtasks:", "no demonstration is used"),
        ("    subtasks:", "    used: false\n    subtasks:", "used"),
        ("    subtasks:", "    use: true\n    subtasks: []\n    rest:", "rest"),
    ],
)
def test_a_wrong_file_is_one_line(old: str, new: str, what: str):
    text, demonstration, rows = shown_text()
    take, put = find_cuts(demonstration, rows, related={})
    times = {"FIRST": take.start, "LAST": take.stop - 1, "PUT": put.start, "LATER": put.start + 2, "END": put.stop - 1}
    for word, row in times.items():
        old, new = (one.replace(word, repr(seconds_of(row, 15))) for one in (old, new))
    assert old in text
    document = parse(text.replace(old, new, 1), "cuts.yaml")
    assert what in refusal(parse_cuts, document, [demonstration], SCOPE)


def test_a_used_demonstration_has_subtasks():
    demonstration, _ = take_and_put()
    entries = {"by hand": DemonstrationCuts(cuts=())}
    assert "this demonstration has no subtasks; add one, or write use: false" in refusal(
        written, entries, demonstration
    )


def test_edited_cuts_are_not_overwritten(tmp_path: Path):
    path = keep_cuts(tmp_path / "many.demonstrations", "nimbus_cuts: 1\n")
    assert keep_cuts(path.parent, "nimbus_cuts: 1\n") == path
    path.write_text("edited\n")
    assert "there is already a cuts file" in refusal(keep_cuts, path.parent, "nimbus_cuts: 1\n")
    assert path.read_text() == "edited\n"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert "this is a link" in refusal(keep_cuts, path.parent, "nimbus_cuts: 1\n")
