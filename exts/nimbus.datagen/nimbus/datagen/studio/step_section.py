"""The folder of steps (or conditions): a list to reorder, with parameters as the skills declare them."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.panel import step_edits
from nimbus.datagen.panel.fields import as_text, named
from nimbus.datagen.panel.forms import SkillForm, StepRow, skill_forms, step_rows
from nimbus.datagen.studio.section import Section


class StepSection(Section):
    """Steps, in order, those inside loops below them."""

    title = "Steps"
    kind, key = "skill", "steps"

    def __init__(self, *args: Any, **options: Any) -> None:
        self._selected = 0
        self._skill = ""
        self._values: dict[str, str] = {}
        super().__init__(*args, **options)

    def data(self) -> Any:
        """The list in the file."""
        return self.draft.value(self.key) or ()

    @property
    def rows(self) -> list[StepRow]:
        """Its lines."""
        return step_rows(self.data(), kind=self.kind, at=(self.key,))

    @property
    def selected_row(self) -> StepRow:
        """The line that fields and buttons are about."""
        return self.rows[self._selected]

    def build(self) -> None:
        """The list, what moves an entry, and the fields of a skill."""
        rows, forms = self.rows, {form.name: form for form in skill_forms(kind=self.kind)}
        self._selected = min(self._selected, max(0, len(rows) - 1))
        row = rows[self._selected] if rows else None
        if row:
            self._build_list(rows)
        else:
            self.keep(self.gui.add_markdown("None that can be listed."))
        self._skill = self._skill or (row.name if row and row.is_skill else next(iter(forms)))
        skill = self.keep(self.gui.add_dropdown(self.kind, list(forms), initial_value=self._skill))
        skill.on_update(lambda event: self._choose(event.target.value))
        self._build_parameters(forms[self._skill], row)
        self.button("add after", self._add, hint="A new step behind the one that is selected")
        if row and row.is_skill:
            self.button("change this one", self._replace, hint="The selected step becomes what the fields say")

    def _build_list(self, rows: list[StepRow]) -> None:
        labels = [f"{number}. {row.label}" for number, row in enumerate(rows, 1)]
        select = self.keep(self.gui.add_dropdown("select", labels, initial_value=labels[self._selected]))
        select.on_update(lambda event: self._select(labels.index(event.target.value)))
        lines = "\n".join(_line(row, number, number - 1 == self._selected) for number, row in enumerate(rows, 1))
        self.keep(self.gui.add_markdown(lines))
        order = self.keep(self.gui.add_button_group("move", ("up", "down", "remove")))
        order.on_click(lambda event: self.change(lambda: self._reorder(event.target.value)))
        groups = ["", *named(self.draft, "objects")]
        loop = self.keep(self.gui.add_dropdown("for each of", groups, initial_value="", hint=step_edits.LOOP_HINT))
        loop.on_update(lambda event: event.target.value and self.change(lambda: self._wrap(event.target.value)))

    def _build_parameters(self, form: SkillForm, row: StepRow | None) -> None:
        given = row.parameters if row and row.name == form.name else {}
        self._values = {name: as_text(value) for name, value in given.items()}
        self.keep(self.gui.add_markdown(f"*{form.summary}*"))
        for parameter in form.parameters:
            name, value = parameter.name, self._values.get(parameter.name, "")
            label = name if parameter.required else f"{name} (may be empty)"
            if parameter.choices:
                options = list(dict.fromkeys(["", *parameter.choices, value]))
                field = self.gui.add_dropdown(name, options, initial_value=value, hint=parameter.hint)
            else:
                field = self.gui.add_text(label, value, hint=parameter.hint)
            self.keep(field)
            field.on_update(lambda event, name=name: self._values.__setitem__(name, event.target.value))

    def _select(self, number: int) -> None:
        with self._lock:
            self._selected, self._skill = number, ""
            self.rebuild()

    def _choose(self, skill: str) -> None:
        with self._lock:
            self._skill = skill
            self.rebuild()

    def _reorder(self, how: str) -> None:
        keys = self.selected_row.keys
        after = step_edits.reorder(self.draft, keys, how)
        if after not in (None, keys):
            self._follow(after)

    def _wrap(self, group: str) -> None:
        step_edits.wrap(self.draft, self.selected_row.keys, group)

    def _entry(self) -> Any:
        return step_edits.typed_entry(self._skill, self._values, kind=self.kind)

    def _add(self) -> None:
        skill = self._skill
        after: Keys = self.selected_row.keys if self.rows else (self.key, -1)
        added = step_edits.add_after(self.draft, after, self._entry())
        self._skill = skill
        self._follow(added)

    def _replace(self) -> None:
        self.draft.set(self.selected_row.keys, self._entry())

    def _follow(self, keys: Keys) -> None:
        """Select the entry that stands there."""
        self._selected = next(number for number, row in enumerate(self.rows) if row.keys == keys)
        self.rebuild()


def _line(row: StepRow, number: int, selected: bool) -> str:
    """A step as Markdown; the dot is escaped, lest it begin a list with a count of its own."""
    text = f"{number}\\. {'&emsp;' * row.depth}{row.label.strip()}"
    return (f"**{text}**" if selected else text) + "  "


class SuccessSection(StepSection):
    """Conditions that must hold at the end."""

    title = "Success"
    kind, key = "predicate", "success"
