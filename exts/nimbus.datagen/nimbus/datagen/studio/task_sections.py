"""The folders of the task tab: scene, regions, objects, wording, text."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.forms import read_value
from nimbus.datagen.panel.yaml_write import write_flow
from nimbus.datagen.scene_files import scene_names
from nimbus.datagen.strict_yaml import Keys
from nimbus.datagen.studio.section import Section

_REGION_FIELDS = (
    ("on", "Surface of the scene that it lies on."),
    ("center", "x, y of the middle [m]; or drag it in the scene."),
    ("size", "Extent along x and y [m]."),
)
_OBJECT_FIELDS = (
    ("count", "How many: a number, or [low, high]."),
    ("kinds", "Kinds to draw from: all, or a list."),
    ("yaw", "Heading: any, or a range such as [-30 deg, 30 deg]."),
    ("lying", "Share that lie: 33 %."),
    ("scale", "Times their size: [90 %, 110 %]."),
    ("distinct", "No kind twice in one episode: true or false."),
    ("anchored", "Fixed where they stand: true or false; empty: as the library says."),
    ("joints", "Where parts start, as shares of their range: {door: [0 %, 30 %]}."),
)


def as_text(value: Any) -> str:
    """A value as it is typed into a field."""
    return "" if value is None else value if isinstance(value, str) else write_flow(value)


class SceneSection(Section):
    """Robot and scene."""

    title = "Robot and scene"

    def data(self) -> Any:
        """What is named."""
        return self.draft.value("robot"), self.draft.value("scene"), self.draft.value("rate")

    def build(self) -> None:
        """Choices."""
        robot, scene, rate = self.data()
        self.choice("robot", str(robot), scene_names("robots"), lambda name: self.draft.set(("robot",), name))
        stages = scene_names("stages", suffix=".usda")
        self.choice("scene", str(scene), stages, lambda name: self.draft.set(("scene",), name))
        text = self.gui.add_text("rate", as_text(rate), hint="Recorded steps per second; empty: 15.")
        self.field(text, lambda typed: set_or_remove(self, ("rate",), typed))


def set_or_remove(section: Section, keys: Keys, typed: str) -> None:
    """Take what was typed into the task; nothing typed takes the entry out."""
    if typed.strip():
        section.draft.set(keys, read_value(typed), typing=True)
    elif section.draft.value(*keys) is not None:
        section.draft.remove(keys)


class RegionSection(Section):
    """Regions."""

    title = "Regions"

    def data(self) -> Any:
        """The regions as they stand in the file."""
        return self.draft.value("regions") or {}

    def build(self) -> None:
        """Fields for each region, and what makes another."""
        for name in self.data():
            for key, hint in _REGION_FIELDS:
                text = self.gui.add_text(f"{name} {key}", as_text(self.draft.value("regions", name, key)), hint=hint)
                self.field(text, lambda typed, at=("regions", name, key): set_or_remove(self, at, typed))
            self.button(f"remove {name}", lambda name=name: self.draft.remove(("regions", name)))
        self.adder("region", "add a region", self.data(), self._add)

    def _add(self, name: str) -> None:
        self.draft.set(("regions", name), {"on": "table", "center": [0.5, 0.0], "size": [0.15, 0.15]})


class ObjectSection(Section):
    """Groups of objects."""

    title = "Objects"

    def data(self) -> Any:
        """The groups and the names of the regions."""
        return self.draft.value("objects") or {}, tuple(self.draft.value("regions") or ())

    def build(self) -> None:
        """Fields for each group, and what makes another."""
        groups, regions = self.data()
        for name, group in groups.items():
            if not isinstance(group, dict):
                continue
            keys = "objects", name
            for key, options in (("library", scene_names("objects")), ("region", [*regions, *groups])):
                self.choice(
                    f"{name} {key}",
                    as_text(group.get(key)),
                    options,
                    lambda to, at=(*keys, key): self.draft.set(at, to),
                )
            for key, hint in _OBJECT_FIELDS:
                text = self.gui.add_text(f"{name} {key}", as_text(group.get(key)), hint=hint)
                self.field(text, lambda typed, at=(*keys, key): set_or_remove(self, at, typed))
            self.button(f"remove {name}", lambda keys=keys: self.draft.remove(keys))
        self.adder("things", "add objects", groups, self._add)

    def _add(self, name: str) -> None:
        regions = self.draft.value("regions") or {"start": None}
        self.draft.set(("objects", name), {"library": "blocks", "region": next(iter(regions))})


class WordingSection(Section):
    """Instructions."""

    title = "Language"

    def data(self) -> Any:
        """The wordings."""
        return self.draft.value("instructions") or ()

    def build(self) -> None:
        """One line for each wording."""
        text = self.gui.add_text(
            "instructions",
            "\n".join(map(str, self.data())),
            multiline=True,
            hint="One in a line; {items} names objects.",
        )
        self.field(text, self._take)

    def _take(self, typed: str) -> None:
        lines = [line.strip() for line in typed.splitlines() if line.strip()]
        if lines:
            self.draft.set(("instructions",), lines, typing=True)


class TextSection(Section):
    """The file itself."""

    title = "File"

    def data(self) -> Any:
        """Its text."""
        return self.draft.text

    def build(self) -> None:
        """The text, and what takes it over."""
        text = self.keep(self.gui.add_text("text", self.draft.text, multiline=True))

        def take() -> None:
            if not text.value.strip():
                raise InputError("an empty text is no task", instead="undo, or type one")
            self.draft.set_text(text.value if text.value.endswith("\n") else text.value + "\n")

        self.button("take this text", take)
