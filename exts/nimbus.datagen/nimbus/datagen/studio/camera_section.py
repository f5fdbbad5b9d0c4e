"""The folder of cameras."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.panel.forms import read_value
from nimbus.datagen.presets import expand_cameras, presets
from nimbus.datagen.studio.section import Section
from nimbus.datagen.studio.task_sections import as_text, set_or_remove


class CameraSection(Section):
    """Cameras."""

    title = "Cameras"

    def data(self) -> Any:
        """As they stand in the file."""
        return self.draft.value("cameras")

    def build(self) -> None:
        """The presets in words, and fields for each camera that is written out."""
        said = self.data()
        names = ", ".join(presets("cameras"))
        hint = f"Presets joined by +, of {names}; or cameras by name."
        text = self.gui.add_text("cameras", as_text(said), hint=hint)
        self.field(text, lambda typed: set_or_remove(self, ("cameras",), typed))
        for name, camera in (said if isinstance(said, dict) else {}).items():
            if not isinstance(camera, dict):
                continue
            for key in ("position", "look_at", "wxyz", "vertical_fov", "size", "mount"):
                if key in camera:
                    one = self.gui.add_text(f"{name} {key}", as_text(camera[key]))
                    keys = "cameras", name, key
                    self.field(one, lambda typed, keys=keys: self.draft.set(keys, read_value(typed), typing=True))
            if len(said) > 1:
                self.button(f"remove {name}", lambda name=name: self.draft.remove(("cameras", name)))
        self.adder("camera", "add a camera", self._named(), self._add)

    def _named(self) -> dict[str, Any]:
        said = self.data()
        if isinstance(said, dict):
            return said
        names = expand_cameras(said or "front+wrist")
        return {name: name for name in names} if isinstance(names, dict) else {}

    def _add(self, name: str) -> None:
        pose = {"position": [1.0, 0.6, 0.7], "look_at": [0.45, 0.0, 0.05], "vertical_fov": "45 deg"}
        self.draft.set(("cameras",), {**self._named(), name: pose})
