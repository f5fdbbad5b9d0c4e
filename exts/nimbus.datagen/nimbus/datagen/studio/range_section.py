"""The folder of what is randomized, and how much."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.panel import fields
from nimbus.datagen.panel.forms import addable, range_fields, written_out
from nimbus.datagen.studio.section import Section


class RangeSection(Section):
    """What is randomized, and how much."""

    title = "Randomization"

    def data(self) -> Any:
        """As it stands in the file."""
        return self.draft.value("randomize")

    def build(self) -> None:
        """A preset, numbers for each range, and what adds or takes away a kind."""
        self.choice("how much", fields.randomization(self.draft), fields.randomizations(), self._choose)
        for field in range_fields(self.draft.data):
            least, most, step = field.limits
            if field.is_pair:
                pair = self.gui.add_vector2(field.label, (field.low, field.high), step=step, hint="Least and most")
                self.field(pair, lambda both, field=field: self.draft.set_range(field, *both))
            else:
                slider = self.gui.add_slider(field.label, least, most, step, field.high)
                self.field(slider, lambda value, field=field: self.draft.set_range(field, value, value))
        used, more = written_out(self.draft.data), addable(self.draft.data)
        for label, kinds, act in (("vary also", list(more), self._add), ("no longer", sorted(used), self._remove)):
            choice = self.keep(self.gui.add_dropdown(label, ["", *kinds], initial_value=""))
            choice.on_update(lambda event, act=act: event.target.value and self.change(lambda: act(event.target.value)))

    def _choose(self, preset: str) -> None:
        fields.choose_randomization(self.draft, preset)
        self.rebuild()

    def _add(self, kind: str) -> None:
        fields.add_randomizer(self.draft, kind)

    def _remove(self, kind: str) -> None:
        fields.remove_randomizer(self.draft, kind)
