"""The folders of the task tab: scene, regions, objects, wording, text."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.panel import fields
from nimbus.datagen.panel.fields import as_text, entries, named
from nimbus.datagen.studio.section import Section


class SceneSection(Section):
    """Robot and scene."""

    title = "Robot and scene"

    def data(self) -> Any:
        """What is named."""
        return self.draft.value("robot"), self.draft.value("scene"), self.draft.value("rate")

    def build(self) -> None:
        """Choices."""
        robot, scene, _ = self.data()
        self.choice("robot", str(robot), scene_names("robots"), lambda name: self.draft.set(("robot",), name))
        stages = scene_names("stages", suffix=".usda")
        self.choice("scene", str(scene), stages, lambda name: self.draft.set(("scene",), name))
        self.entry(("rate",), "rate", fields.RATE_HINT)


class RegionSection(Section):
    """Regions."""

    title = "Regions"

    def data(self) -> Any:
        """The regions as they stand in the file."""
        return named(self.draft, "regions")

    def build(self) -> None:
        """Fields for each region, and what makes another."""
        for name in entries(self.draft, "regions"):
            for key, hint in fields.REGION_FIELDS:
                self.entry(("regions", name, key), f"{name} {key}", hint)
            self.button(f"remove {name}", lambda name=name: self.draft.remove(("regions", name)))
        self.adder("region", "add a region", self.data(), lambda name: fields.add_region(self.draft, name))


class ObjectSection(Section):
    """Groups of objects."""

    title = "Objects"

    def data(self) -> Any:
        """The groups and the names of the regions."""
        return named(self.draft, "objects"), tuple(named(self.draft, "regions"))

    def build(self) -> None:
        """Fields for each group, and what makes another."""
        for name in entries(self.draft, "objects"):
            keys = "objects", name
            places = fields.places(self.draft, name)
            for key, options in (("library", scene_names("objects")), ("region", places)):
                self.choice(
                    f"{name} {key}",
                    as_text(self.draft.value(*keys, key)),
                    options,
                    lambda to, at=(*keys, key): self.draft.set(at, to),
                )
            for key, hint in fields.OBJECT_FIELDS:
                self.entry((*keys, key), f"{name} {key}", hint)
            self.button(f"remove {name}", lambda keys=keys: self.draft.remove(keys))
        groups = named(self.draft, "objects")
        self.adder("things", "add objects", groups, lambda name: fields.add_objects(self.draft, name))


class WordingSection(Section):
    """Instructions."""

    title = "Language"

    def data(self) -> Any:
        """The wordings."""
        return self.draft.value("instructions")

    def build(self) -> None:
        """One line for each wording."""
        wordings = fields.wordings(self.draft)
        text = self.gui.add_text("instructions", wordings, multiline=True, hint=fields.WORDINGS_HINT)
        self.field(text, lambda typed: fields.take_wordings(self.draft, typed, typing=True))


class TextSection(Section):
    """The file itself."""

    title = "File"

    def data(self) -> Any:
        """Its text."""
        return self.draft.text

    def build(self) -> None:
        """The text, and what takes it over."""
        text = self.keep(self.gui.add_text("text", self.draft.text, multiline=True))
        self.button("take this text", lambda: fields.take_text(self.draft, text.value))
