"""Form section of a list of steps or conditions: selection, order, loops, and the parameters of an entry."""

from __future__ import annotations

from functools import partial
from typing import Any

from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.ui.document import step_edits
from nimbus.datagen.ui.document.declarations import Parameter, SkillForm, StepRow, skill_forms, step_rows
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.document.fields import as_text, named
from nimbus.datagen.ui.form import Control, FormSection, button, buttons


class StepList:
    """List of steps in order; steps of a loop follow the loop.

    Args:
        kind: ``skill`` or ``predicate``.
        key: Key of the list in the file.
        title: Title of the section.
    """

    def __init__(self, *, kind: str, key: str, title: str) -> None:
        self._kind, self._key, self._title = kind, key, title
        self._selected, self._skill = 0, ""
        self._typed: dict[str, str] = {}
        self._forms: dict[str, SkillForm] = {}

    def reset(self) -> None:
        """Clear the selection and typed text, when another task is opened."""
        self._selected = 0
        self._reset_fields()

    def build(self, draft: TaskDraft) -> FormSection:
        """Build the section of the current text."""
        rows = self._rows(draft)
        self._selected = min(self._selected, max(0, len(rows) - 1))
        self._forms = self._forms or {form.name: form for form in skill_forms(kind=self._kind)}
        row = rows[self._selected] if rows else None
        if self._skill not in self._forms:
            self._skill = row.name if row and row.is_skill else next(iter(self._forms))
        form = self._forms[self._skill]
        given = row.parameters if row is not None and row.name == form.name else {}
        values = {name: as_text(value) for name, value in given.items()} | self._typed
        controls = [
            *self._list_controls(draft, rows),
            self._skill_choice(),
            Control(id=f"{self._key} summary", kind="note", label=form.summary),
            *(self._parameter(one, values.get(one.name, "")) for one in form.parameters),
            button(f"{self._key} add", "add after", lambda: self._add(draft, values), hint=step_edits.ADD_HINT),
        ]
        if row is not None and row.is_skill:
            change = partial(self._change, draft, values)
            controls.append(button(f"{self._key} change", "change this one", change, hint=step_edits.CHANGE_HINT))
        return FormSection(title=self._title, controls=tuple(controls))

    def _rows(self, draft: TaskDraft) -> list[StepRow]:
        return step_rows(draft.value(self._key) or (), kind=self._kind, at=(self._key,))

    def _list_controls(self, draft: TaskDraft, rows: list[StepRow]) -> list[Control]:
        """Make the list, the buttons that move its entries, and the choice that puts an entry into a loop."""
        if not rows:
            return [Control(id=f"{self._key} none", kind="note", label="There are no entries in list form.")]
        labels = tuple(f"{number}. {row.label}" for number, row in enumerate(rows, 1))
        keys = rows[self._selected].keys
        moves = {how: partial(self._reorder, draft, keys, how) for how in ("up", "down", "remove")}
        return [
            Control(id=self._key, kind="rows", label="select", value=self._selected, options=labels, act=self._select),
            buttons(f"{self._key} move", "move", moves),
            Control(
                id=f"{self._key} for each of",
                kind="choice",
                label="for each of",
                value="",
                options=("", *named(draft, "objects")),
                hint=step_edits.LOOP_HINT,
                act=lambda group: self._wrap(draft, keys, group) if group else None,
            ),
        ]

    def _skill_choice(self) -> Control:
        return Control(
            id=f"{self._key} {self._kind}",
            kind="choice",
            label=self._kind,
            value=self._skill,
            options=tuple(self._forms),
            act=self._choose,
        )

    def _parameter(self, one: Parameter, value: str) -> Control:
        return Control(
            id=f"{self._key} . {one.name}",
            kind="choice" if one.choices else "text",
            label=one.name if one.required or one.choices else f"{one.name} (may be empty)",
            value=value,
            options=tuple(dict.fromkeys(["", *one.choices, value])) if one.choices else (),
            hint=one.hint,
            act=lambda typed: self._typed.__setitem__(one.name, str(typed)),
        )

    def _select(self, number: Any) -> None:
        self._selected = int(number)
        self._reset_fields()

    def _reset_fields(self) -> None:
        """Show the skill and the parameters of the selected entry."""
        self._skill = ""
        self._typed.clear()

    def _choose(self, skill: str) -> None:
        self._skill = skill
        self._typed.clear()

    def _add(self, draft: TaskDraft, values: dict[str, str]) -> None:
        rows = self._rows(draft)
        after: Keys = rows[self._selected].keys if rows else (self._key, -1)
        entry = step_edits.typed_entry(self._skill, values, kind=self._kind)
        self._follow(draft, step_edits.add_after(draft, after, entry))

    def _change(self, draft: TaskDraft, values: dict[str, str]) -> None:
        entry = step_edits.typed_entry(self._skill, values, kind=self._kind)
        draft.set(self._rows(draft)[self._selected].keys, entry)
        self._typed.clear()

    def _reorder(self, draft: TaskDraft, keys: Keys, how: str) -> None:
        after = step_edits.reorder(draft, keys, how)
        if after is None:
            self._reset_fields()
        elif after != keys:
            self._follow(draft, after)

    def _wrap(self, draft: TaskDraft, keys: Keys, group: str) -> None:
        step_edits.wrap(draft, keys, group)
        self._reset_fields()

    def _follow(self, draft: TaskDraft, keys: Keys) -> None:
        """Select the entry at ``keys``."""
        self._selected = next(number for number, row in enumerate(self._rows(draft)) if row.keys == keys)
        self._typed.clear()
