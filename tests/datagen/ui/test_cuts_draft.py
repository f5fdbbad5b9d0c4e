"""Editing of cuts: boundaries, frames, splitting and merging, undo, and the saved file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.datasets.multiply.cuts import find_cuts
from nimbus.datagen.datasets.multiply.cuts_file import CutsScope, DemonstrationCuts
from nimbus.datagen.ui.browser.timeline import draw_list, draw_timeline
from nimbus.datagen.ui.cuts_draft import CutsDraft
from nimbus.datagen.ui.cuts_source import ArmContacts
from tests.datagen.datasets.multiply.test_subtasks import take_and_put
from tests.support.refusals import refusal

SCOPE = CutsScope(task="t", robot="panda", arms=("arm", "other"), fixtures=frozenset())


def make_draft(path: Path, *, count: int = 2) -> CutsDraft:
    """Return a draft for demonstrations that take a cup and put it onto a goal."""
    demonstration, rows = take_and_put()
    shown = [replace(demonstration, name=f"demo {number}") for number in range(count)]
    found = {one.name: DemonstrationCuts(cuts=find_cuts(one, rows, related={})) for one in shown}
    return CutsDraft(shown, found, SCOPE, path / "cuts.yaml")


@pytest.fixture
def draft(tmp_path: Path) -> CutsDraft:
    return make_draft(tmp_path)


def spans(draft: CutsDraft) -> list[tuple[int, int]]:
    return [(one.start, one.stop) for one in draft.cuts]


def test_a_boundary_stops_at_its_neighbors(draft: CutsDraft):
    (start, stop), (later, end) = spans(draft)
    draft.set_span(start + 2, stop)
    assert spans(draft)[0] == (start + 2, stop)
    draft.set_span(start + 2, end)
    assert spans(draft)[0] == (start + 2, later)
    draft.set_span(-5, later)
    assert spans(draft)[0] == (0, later)
    draft.set_span(end, later)
    assert spans(draft)[0] == (later - 2, later)
    draft.select(draft.name, 1)
    draft.set_span(0, 10**6)
    assert spans(draft)[1] == (later, draft.demonstration.row_count)


def test_split_merge_remove_and_add(draft: CutsDraft):
    (start, stop), (later, end) = spans(draft)
    draft.split(start + 4)
    assert spans(draft) == [(start, start + 4), (start + 4, stop), (later, end)]
    assert draft.index == 1
    draft.select(draft.name, 0)
    draft.merge()
    assert spans(draft) == [(start, stop), (later, end)]
    draft.merge()
    assert spans(draft) == [(start, end)] and draft.cuts[0].verb == "take"
    draft.remove()
    assert draft.selected is None
    draft.add(5)
    assert spans(draft) == [(5, 20)] and draft.cuts[0].arms == ("arm",)
    draft.add(8)
    assert draft.cuts[draft.index].arms == ("other",)
    while draft.can_undo:
        draft.undo()
    assert spans(draft) == [(start, stop), (later, end)] and draft.text() == make_draft(draft.path.parent).text()


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda draft: draft.split(draft.cuts[0].start + 1), "is not inside the subtask; choose a time between"),
        (lambda draft: (draft.select(draft.name, 1), draft.merge()), "no later subtask has the same arms"),
        (lambda draft: (draft.remove(), draft.remove(), draft.remove()), "there is no subtask"),
        (lambda draft: (draft.set_arms(("arm", "other")), draft.add(draft.cuts[0].start + 1)), "there is no room"),
        (lambda draft: (draft.use(False), draft.select("demo 1"), draft.use(False), draft.save()), "no demonstration"),
        (lambda draft: (draft.remove(), draft.remove(), draft.save()), "this demonstration has no subtasks"),
    ],
)
def test_an_impossible_change_is_one_line(draft: CutsDraft, act: Callable[[CutsDraft], object], what: str):
    assert what in refusal(act, draft)
    assert not draft.path.exists()


def test_arms_with_a_subtask_at_that_time_are_refused(draft: CutsDraft):
    draft.add(draft.cuts[0].start)
    assert draft.cuts[draft.index].arms == ("other",)
    assert "the arm is in 'take cup_0' at that time" in refusal(draft.set_arms, ("arm",))
    draft.remove()
    draft.select(draft.name, 0)
    draft.set_arms(("other", "arm"))
    assert draft.cuts[0].arms == ("arm", "other")


def test_dragging_a_slider_is_one_change(draft: CutsDraft):
    (start, stop), _ = spans(draft)
    for row in range(start, start + 5):
        draft.set_span(row, stop)
    draft.set_frame("")
    draft.undo()
    assert spans(draft)[0] == (start + 4, stop)
    draft.undo()
    assert spans(draft)[0] == (start, stop) and not draft.can_undo


def test_demonstrations_with_another_sequence_are_reported(tmp_path: Path):
    draft = make_draft(tmp_path, count=3)
    draft.set_frame("goal_0")
    assert draft.left_out() == {"demo 0": "has another sequence: take goal_0, put goal_0"}
    draft.use_everywhere()
    assert draft.left_out() == {} and draft.sequence() == "take goal_0, put goal_0"
    draft.undo()
    draft.find_again()
    draft.select("demo 1")
    draft.use(False)
    assert draft.left_out() == {"demo 1": "not used"} and draft.sequence() == "take cup_0, put goal_0"


def test_a_saved_draft_is_opened_again(draft: CutsDraft):
    assert draft.is_changed  # the cuts that were found are not a file yet
    draft.set_frame("goal_0")
    draft.use_everywhere()
    draft.set_kind("move")
    draft.select("demo 1")
    draft.use(False)
    draft.save()
    assert not draft.is_changed
    again = make_draft(draft.path.parent)
    assert again.entries == draft.entries and not again.is_changed
    assert again.name == "demo 0" and again.cuts[0].verb == "move"


def test_demonstrations_that_the_file_lacks_are_not_used(draft: CutsDraft):
    draft.save()
    longer = make_draft(draft.path.parent, count=3)
    assert [one.use for one in longer.entries.values()] == [True, True, False]
    assert longer.entries["demo 2"].cuts == longer.entries["demo 0"].cuts


def test_a_file_that_changed_meanwhile_is_not_overwritten(draft: CutsDraft):
    draft.save()
    other = make_draft(draft.path.parent)
    other.use(False)
    other.save()
    text = draft.path.read_text()
    draft.set_frame("")
    assert "the file changed on the disk" in refusal(draft.save)
    draft.move_to(draft.path.with_name("mine.yaml"))
    draft.save()
    assert draft.path.name == "mine.yaml" and draft.path.with_name("cuts.yaml").read_text() == text
    other.move_to(draft.path)
    assert "a file of this name exists already" in refusal(other.save)


def test_a_link_in_place_of_the_file_is_refused(draft: CutsDraft):
    target = draft.path.with_name("other.txt")
    target.write_text("mine")
    draft.path.symlink_to(target)
    assert "this is a link" in refusal(draft.save)
    assert target.read_text() == "mine"


def test_a_timeline_shows_arms_subtasks_contacts_and_the_moment(draft: CutsDraft):
    flags = np.zeros(draft.demonstration.row_count, dtype=bool)
    flags[10:20] = flags[30:40] = True
    contacts = {"arm": ArmContacts(touches=flags, holds=~flags & False)}
    values = {"arms": ("arm", "other"), "rows": len(flags), "rate": 15.0, "chosen": 1, "row": 30}
    drawing = draw_timeline(draft.cuts, contacts, **values)
    assert drawing.count("<rect") == 2 + 2 + 2
    assert drawing.count(">arm<") == drawing.count(">other<") == 1
    table = draw_list(draft.cuts, rate=15.0, chosen=1, arms=("arm", "other"))
    assert table.index("1. take cup_0") < table.index("font-weight") < table.index("2. put goal_0")
