"""Draft of a cuts file: the subtasks of each demonstration, with editing, undo and saving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nimbus.datagen.datasets.multiply.cuts import LEAST_ROWS, SubtaskCut
from nimbus.datagen.datasets.multiply.cuts_file import (
    KINDS,
    CutsScope,
    DemonstrationCuts,
    parse_cuts,
    seconds_of,
    write_cuts,
)
from nimbus.datagen.datasets.multiply.cutting import describe, find_uncommon
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import check_own
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.ui.document.safe_file import alone_in, decoded, digest, read_content, replace_content

_NEW_SECONDS = 1.0
"""Length of an added subtask, if there is room [s]."""
_MOST_UNDO = 200


class CutsDraft:
    """Cuts of the demonstrations of a dataset, one of which is selected.

    Args:
        demonstrations: Demonstrations of the dataset.
        found: Cuts found from contacts, by the name of their demonstration.
        scope: Names to which cuts may refer.
        path: File of the cuts; if it exists, its cuts replace the found ones.

    Raises:
        InputError: The file has an error, or belongs to other demonstrations.
    """

    def __init__(
        self,
        demonstrations: Sequence[Demonstration],
        found: Mapping[str, DemonstrationCuts],
        scope: CutsScope,
        path: Path,
    ) -> None:
        self.demonstrations = {one.name: one for one in demonstrations}
        self.scope, self.path, self._found = scope, path, dict(found)
        check_own(path)
        content = read_content(path)
        self._digest = digest(content)
        self.entries: dict[str, DemonstrationCuts] = dict(found)
        if content is not None:
            given = parse_cuts(parse(decoded(content, path), str(path)), demonstrations, scope)
            self.entries = {name: given.get(name) or replace(one, use=False) for name, one in found.items()}
        self._saved = dict(self.entries)
        self._undo: list[tuple[dict[str, DemonstrationCuts], str, int]] = []
        self._joined: tuple[str, str, int] | None = None
        self.name = next((name for name, one in self.entries.items() if one.use), next(iter(self.entries)))
        self.index = 0

    @property
    def cuts(self) -> tuple[SubtaskCut, ...]:
        """Subtasks of the selected demonstration."""
        return self.entries[self.name].cuts

    @property
    def demonstration(self) -> Demonstration:
        """Selected demonstration."""
        return self.demonstrations[self.name]

    @property
    def selected(self) -> SubtaskCut | None:
        """Selected subtask; None if the demonstration has none."""
        return self.cuts[self.index] if self.index < len(self.cuts) else None

    @property
    def is_changed(self) -> bool:
        """True if something is not saved, also the cuts that were found at first."""
        return self.entries != self._saved or not self._digest

    @property
    def can_undo(self) -> bool:
        """True if there is a change that can be reverted."""
        return bool(self._undo)

    def left_out(self) -> dict[str, str]:
        """Return the demonstrations that will not be multiplied, with the reasons."""
        uncommon = find_uncommon({name: one.cuts for name, one in self.entries.items() if one.use})
        reasons = {name: one.reason or "not used" for name, one in self.entries.items() if not one.use} | uncommon
        return {name: reasons[name] for name in self.entries if name in reasons}

    def sequence(self) -> str:
        """Return the sequence of subtasks that will be repeated; empty if no demonstration is used."""
        out = self.left_out()
        used = next((one for name, one in self.entries.items() if name not in out), None)
        return describe(used.cuts) if used else ""

    def select(self, name: str, index: int = 0) -> None:
        """Select a subtask of a demonstration."""
        if name in self.entries:
            self.name, self._joined = name, None
            self.index = max(0, min(index, len(self.cuts) - 1))

    def set_span(self, start: int, stop: int) -> None:
        """Set the rows ``[start, stop)`` of the selected subtask, up to the neighbors of its arms."""
        one = self._chosen()
        low, high = self._room(one.arms, self._others(), one.start)
        if start != one.start:
            start = max(low, min(start, stop - LEAST_ROWS))
        stop = min(high, max(stop, start + LEAST_ROWS))
        self._replace(replace(one, start=start, stop=stop), joined="span")

    def set_frame(self, frame: str) -> None:
        """Set the object in whose frame the selected subtask is expressed; empty for the world."""
        self._replace(replace(self._chosen(), frame=frame))

    def set_kind(self, kind: str) -> None:
        """Set the kind of the selected subtask."""
        if kind in KINDS:
            self._replace(replace(self._chosen(), verb=kind))

    def set_arms(self, arms: tuple[str, ...]) -> None:
        """Set the arms of the selected subtask.

        Raises:
            InputError: One of them has another subtask at that time.
        """
        one = self._chosen()
        for other in self._others():
            if set(arms) & set(other.arms) and other.start < one.stop and one.start < other.stop:
                what = f"the arm is in '{describe([other])}' at that time"
                raise InputError(what, where=self.name, instead="end one of the subtasks earlier")
        self._replace(replace(one, arms=tuple(sorted(arms, key=self.scope.arms.index))))

    def split(self, row: int) -> None:
        """Split the selected subtask before a row.

        Raises:
            InputError: The row is not inside the subtask.
        """
        one = self._chosen()
        if not one.start + LEAST_ROWS <= row <= one.stop - LEAST_ROWS:
            what = f"{self._seconds(row):g} s is not inside the subtask"
            instead = f"choose a time between {self._seconds(one.start):g} and {self._seconds(one.stop - 1):g} s"
            raise InputError(what, where=self.name, instead=instead)
        self._change((*self._others(), replace(one, stop=row), (last := replace(one, start=row))), last)

    def merge(self) -> None:
        """Merge the selected subtask with the next one of the same arms.

        Raises:
            InputError: There is no such subtask.
        """
        one = self._chosen()
        later = [other for other in self._others() if set(other.arms) & set(one.arms) and other.start >= one.stop]
        following = min(later, key=lambda other: other.start, default=None)
        if following is None or following.arms != one.arms:
            what = "no later subtask has the same arms" if following is None else "the next subtask has other arms"
            raise InputError(what, where=self.name, instead="select an earlier subtask")
        kept = tuple(other for other in self._others() if other is not following)
        self._change((*kept, (merged := replace(one, stop=following.stop))), merged)

    def remove(self) -> None:
        """Remove the selected subtask."""
        self._chosen()
        self._change(self._others(), None)

    def add(self, row: int) -> None:
        """Add a subtask that begins at a row, of the first arm that has none there.

        Raises:
            InputError: Every arm has a subtask there, or there is too little time before the next one.
        """
        for arm in self.scope.arms:
            low, high = self._room((arm,), self.cuts, row)
            if low <= row and high - row >= LEAST_ROWS:
                stop = min(high, row + max(LEAST_ROWS, round(_NEW_SECONDS * self.demonstration.rate)))
                new = SubtaskCut(arms=(arm,), verb="work on", frame="", start=row, stop=stop)
                self._change((*self.cuts, new), new)
                return
        what = f"there is no room for a subtask at {self._seconds(row):g} s"
        raise InputError(what, where=self.name, instead="choose a time outside of the other subtasks, or split one")

    def use(self, is_used: bool) -> None:
        """Use the selected demonstration, or leave it out."""
        self._put(replace(self.entries[self.name], use=is_used))

    def find_again(self) -> None:
        """Restore the cuts of the selected demonstration that were found from contacts."""
        self._put(replace(self._found[self.name], use=self.entries[self.name].use))
        self.index = 0

    def use_everywhere(self) -> None:
        """Give the frame and kind of the selected subtask to the same subtask of all demonstrations."""
        one = self._chosen()
        number = [other for other in self.cuts if other.arms == one.arms].index(one)
        entries = dict(self.entries)
        for name, entry in self.entries.items():
            same = [other for other in entry.cuts if other.arms == one.arms]
            if number < len(same) and one.frame in ("", *self.scope.frames_of(self.demonstrations[name])):
                old = same[number]
                new = replace(old, frame=one.frame, verb=one.verb)
                entries[name] = replace(entry, cuts=tuple(new if other is old else other for other in entry.cuts))
        self._remember()
        self.entries = entries

    def undo(self) -> None:
        """Revert the last change."""
        if self._undo:
            self.entries, self.name, self.index = self._undo.pop()
            self._joined = None

    def text(self) -> str:
        """Return the content of the file.

        Raises:
            InputError: A used demonstration has no subtasks, or none is used.
        """
        shown = list(self.demonstrations.values())
        text = write_cuts(self.entries, shown, task=self.scope.task, robot=self.scope.robot)
        parse_cuts(parse(text, self.path.name), shown, self.scope)
        return text

    def save(self) -> None:
        """Write the file.

        Raises:
            InputError: The file changed on the disk, is a link, or the cuts cannot be used.
        """
        content = self.text().encode()
        check_own(self.path)
        with alone_in(self.path.parent):
            if digest(read_content(self.path)) != self._digest:
                what = "the file changed on the disk" if self._digest else "a file of this name exists already"
                instead = "open it again, or write another name for the cuts file"
                raise InputError(what, where=str(self.path), instead=instead)
            replace_content(self.path, content)
        self._digest, self._saved = digest(content), dict(self.entries)

    def move_to(self, path: Path) -> None:
        """Save under another name from now on; an existing file there is not overwritten."""
        if path != self.path:
            self.path, self._digest = path, ""

    def _seconds(self, row: int) -> float:
        return seconds_of(row, self.demonstration.rate)

    def _chosen(self) -> SubtaskCut:
        if self.selected is None:
            raise InputError("there is no subtask", where=self.name, instead="add one, or find the cuts again")
        return self.selected

    def _others(self) -> tuple[SubtaskCut, ...]:
        return tuple(one for one in self.cuts if one is not self.selected)

    def _room(self, arms: Sequence[str], others: Sequence[SubtaskCut], row: int) -> tuple[int, int]:
        """Return the free rows ``[low, high)`` around a row, between the subtasks of the same arms."""
        near = [one for one in others if set(one.arms) & set(arms)]
        low = max((one.stop for one in near if one.start <= row), default=0)
        high = min((one.start for one in near if one.start > row), default=self.demonstration.row_count)
        return low, high

    def _replace(self, new: SubtaskCut, *, joined: str = "") -> None:
        if new != self.selected:
            self._change((*self._others(), new), new, joined=joined)

    def _change(self, cuts: tuple[SubtaskCut, ...], chosen: SubtaskCut | None, *, joined: str = "") -> None:
        """Set the cuts of the selected demonstration, in order of time."""
        ordered = tuple(sorted(cuts, key=lambda one: (one.start, one.arms)))
        self._put(replace(self.entries[self.name], cuts=ordered), joined=joined)
        places = [place for place, one in enumerate(ordered) if one is chosen]
        self.index = places[0] if places else max(0, min(self.index, len(ordered) - 1))
        if joined:
            self._joined = joined, self.name, self.index

    def _put(self, entry: DemonstrationCuts, *, joined: str = "") -> None:
        if not joined or self._joined != (joined, self.name, self.index):
            self._remember()
        self._joined = None
        self.entries = {**self.entries, self.name: entry}

    def _remember(self) -> None:
        """Keep the present state for undo; changes while a slider is dragged count as one."""
        self._undo = [*self._undo[-_MOST_UNDO:], (self.entries, self.name, self.index)]
        self._joined = None
