"""The folder of cameras."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.panel import fields
from nimbus.datagen.panel.forms import named_cameras
from nimbus.datagen.studio.section import Section


class CameraSection(Section):
    """Cameras."""

    title = "Cameras"

    def data(self) -> Any:
        """As they stand in the file."""
        return self.draft.value("cameras")

    def build(self) -> None:
        """The presets in words, and fields for each camera that is written out."""
        self.entry(("cameras",), "cameras", fields.cameras_hint())
        said = fields.named(self.draft, "cameras")
        for name in fields.entries(self.draft, "cameras"):
            for key, hint in fields.CAMERA_FIELDS:
                if key in (said[name] or ()):
                    self.entry(("cameras", name, key), f"{name} {key}", hint)
            if len(said) > 1:
                self.button(f"remove {name}", lambda name=name: self.draft.remove(("cameras", name)))
        taken = named_cameras(self.draft.data)
        self.adder("camera", "add a camera", taken, lambda name: fields.add_camera(self.draft, name))
