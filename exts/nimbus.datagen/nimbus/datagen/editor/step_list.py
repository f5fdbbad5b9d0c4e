"""The list of steps, or of conditions: what is selected in it, what moves it, and the fields of a skill."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.editor.screen import Control, Section
from nimbus.datagen.editor.task_sections import button
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.panel import step_edits
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.panel.fields import as_text, named
from nimbus.datagen.panel.forms import SkillForm, StepRow, skill_forms, step_rows


class StepList:
    """Steps in order, those inside loops below them.

    Args:
        kind: ``skill`` or ``predicate``.
        key: Where the list stands in the file.
        title: Of the section.
    """

    def __init__(self, *, kind: str, key: str, title: str) -> None:
        self._kind, self._key, self._title = kind, key, title
        self._selected, self._skill = 0, ""
        self._typed: dict[str, str] = {}
        self._forms: dict[str, SkillForm] = {}

    def section(self, draft: TaskDraft) -> Section:
        """The controls as the task stands now."""
        rows = self._rows(draft)
        self._selected = min(self._selected, max(0, len(rows) - 1))
        self._forms = forms = self._forms or {form.name: form for form in skill_forms(kind=self._kind)}
        row = rows[self._selected] if rows else None
        if self._skill not in forms:
            self._skill = row.name if row and row.is_skill else next(iter(forms))
        key = self._key
        controls = [self._list(rows)]
        for how in ("up", "down", "remove"):
            controls.append(button(f"{key} {how}", how, lambda how=how: self._reorder(draft, how)))
        controls.append(
            Control(
                id=f"{key} for each of",
                kind="choice",
                label="for each of",
                value="",
                options=("", *named(draft, "objects")),
                hint=step_edits.LOOP_HINT,
                act=lambda group: self._wrap(draft, group) if group else None,
            )
        )
        controls.append(
            Control(
                id=f"{key} {self._kind}",
                kind="choice",
                label=self._kind,
                value=self._skill,
                options=tuple(forms),
                hint=forms[self._skill].summary,
                act=self._choose,
            )
        )
        controls += self._parameters(forms[self._skill], row)
        controls.append(button(f"{key} add", "add after", lambda: self._add(draft)))
        if row is not None and row.is_skill:
            controls.append(button(f"{key} change", "change this one", lambda: self._change(draft)))
        return Section(title=self._title, controls=tuple(controls))

    def _rows(self, draft: TaskDraft) -> list[StepRow]:
        return step_rows(draft.value(self._key) or (), kind=self._kind, at=(self._key,))

    def _list(self, rows: list[StepRow]) -> Control:
        labels = tuple(f"{number}. {row.label}" for number, row in enumerate(rows, 1))
        return Control(id=self._key, kind="rows", value=self._selected, options=labels, act=self._select)

    def _parameters(self, form: SkillForm, row: StepRow | None) -> list[Control]:
        given = row.parameters if row is not None and row.name == form.name else {}
        values = {name: as_text(value) for name, value in given.items()} | self._typed
        controls = []
        for one in form.parameters:
            value = values.get(one.name, "")
            controls.append(
                Control(
                    id=f"{self._key} . {one.name}",
                    kind="choice" if one.choices else "text",
                    label=one.name,
                    value=value,
                    options=tuple(dict.fromkeys(["", *one.choices, value])) if one.choices else (),
                    hint=one.hint + ("" if one.required else " May be empty."),
                    act=lambda typed, name=one.name: self._typed.__setitem__(name, str(typed)),
                )
            )
        self._values = values
        return controls

    def _select(self, number: Any) -> None:
        self._selected, self._skill = int(number), ""
        self._typed.clear()

    def _choose(self, skill: str) -> None:
        self._skill = skill
        self._typed.clear()

    def _entry(self) -> Any:
        return step_edits.typed_entry(self._skill, self._values | self._typed, kind=self._kind)

    def _add(self, draft: TaskDraft) -> None:
        rows = self._rows(draft)
        keys: Keys = rows[self._selected].keys if rows else (self._key, -1)
        self._follow(draft, step_edits.add_after(draft, keys, self._entry()))

    def _change(self, draft: TaskDraft) -> None:
        draft.set(self._rows(draft)[self._selected].keys, self._entry())
        self._typed.clear()

    def _reorder(self, draft: TaskDraft, how: str) -> None:
        rows = self._rows(draft)
        if not rows:
            return
        keys = rows[self._selected].keys
        after = step_edits.reorder(draft, keys, how)
        if after is None:
            self._skill = ""
        elif after != keys:
            self._follow(draft, after)

    def _wrap(self, draft: TaskDraft, group: str) -> None:
        rows = self._rows(draft)
        if not rows:
            return
        step_edits.wrap(draft, rows[self._selected].keys, group)
        self._skill = ""
        self._typed.clear()

    def _follow(self, draft: TaskDraft, keys: Keys) -> None:
        """Select the entry that stands there."""
        self._selected = next(number for number, row in enumerate(self._rows(draft)) if row.keys == keys)
        self._typed.clear()
