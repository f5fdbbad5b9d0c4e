"""The folder of what is randomized, and how much."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.panel.forms import RangeField, addable, range_fields, written_out
from nimbus.datagen.presets import presets
from nimbus.datagen.studio.section import Section

_OWN = "own ranges"


class RangeSection(Section):
    """What is randomized, and how much."""

    title = "Randomization"

    def data(self) -> Any:
        """As it stands in the file."""
        return self.draft.value("randomize")

    def build(self) -> None:
        """A preset, numbers for each range, and what adds or takes away a kind."""
        said = self.data()
        preset = said if isinstance(said, str) else _OWN
        self.choice("how much", preset, [*sorted(presets("randomizations")), _OWN], self._choose)
        for field in range_fields(self.draft.data):
            label = ".".join(map(str, field.keys[1:])) + (f" [{field.unit}]" if field.unit else "")
            least, most, step = limits(field)
            if field.is_pair:
                pair = self.gui.add_vector2(label, (field.low, field.high), step=step, hint="Least and most")
                self.field(pair, lambda both, field=field: self.draft.set_range(field, *both))
            else:
                slider = self.gui.add_slider(label, least, most, step, field.high)
                self.field(slider, lambda value, field=field: self.draft.set_range(field, value, value))
        used, more = written_out(self.draft.data), addable(self.draft.data)
        for label, kinds, act in (("vary also", list(more), self._add), ("no longer", sorted(used), self._remove)):
            choice = self.keep(self.gui.add_dropdown(label, ["", *kinds], initial_value=""))
            choice.on_update(lambda event, act=act: event.target.value and self.change(lambda: act(event.target.value)))

    def _choose(self, preset: str) -> None:
        self.draft.set(("randomize",), preset if preset != _OWN else written_out(self.draft.data))
        self.rebuild()

    def _add(self, kind: str) -> None:
        data = self.draft.data
        self.draft.set(("randomize",), {**written_out(data), kind: addable(data)[kind]})

    def _remove(self, kind: str) -> None:
        left = {name: settings for name, settings in written_out(self.draft.data).items() if name != kind}
        self.draft.set(("randomize",), left)


def limits(field: RangeField) -> tuple[float, float, float]:
    """Least and most that a slider offers, and its step: round figures around what is written."""
    reach = max(abs(field.low), abs(field.high), 1e-6)
    unit = 10.0 ** len(str(int(reach))) / 10.0 if reach >= 1 else 0.1
    while unit > reach:
        unit /= 10.0
    most = unit * (2 * int(reach / unit) + 2)
    return (-most if field.low < 0 else 0.0), most, unit / 100.0
