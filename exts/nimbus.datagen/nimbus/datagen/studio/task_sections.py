"""The folders of the task tab: scene, regions, objects, ranges, cameras, wording, text."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.forms import RangeField, range_fields, read_value
from nimbus.datagen.panel.yaml_write import write_flow
from nimbus.datagen.presets import expand_cameras, presets
from nimbus.datagen.scene_files import scene_names
from nimbus.datagen.strict_yaml import Keys
from nimbus.datagen.studio.section import Section

_OBJECT_FIELDS = (
    ("count", "How many: a number, or [low, high]."),
    ("kinds", "Kinds to draw from: all, or a list."),
    ("yaw", "Heading: any, or a range such as [-30 deg, 30 deg]."),
    ("lying", "Share that lie: 33 %."),
    ("scale", "Times their size: [90 %, 110 %]."),
)


def as_text(value: Any) -> str:
    """A value as it is typed into a field."""
    return "" if value is None else value if isinstance(value, str) else write_flow(value)


def free_name(stem: str, taken: Any) -> str:
    """A name that is not taken yet."""
    names = (stem, *(f"{stem}_{number}" for number in range(2, 1000)))
    return next(name for name in names if name not in (taken or {}))


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
            for key, hint in (("center", "x, y of the middle [m]; or drag it in the scene"), ("size", "along x and y")):
                text = self.gui.add_text(f"{name} {key}", as_text(self.draft.value("regions", name, key)), hint=hint)
                keys = "regions", name, key
                self.field(text, lambda typed, keys=keys: self.draft.set(keys, read_value(typed), typing=True))
            self.button(f"remove {name}", lambda name=name: self.draft.remove(("regions", name)))
        self.button("add a region", self._add)

    def _add(self) -> None:
        name = free_name("region", self.draft.value("regions"))
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
        self.button("add objects", self._add)

    def _add(self) -> None:
        regions = self.draft.value("regions") or {"start": None}
        name = free_name("things", self.draft.value("objects"))
        self.draft.set(("objects", name), {"library": "blocks", "region": next(iter(regions))})


class RangeSection(Section):
    """What is randomized, and how much."""

    title = "Randomization"

    def data(self) -> Any:
        """As it stands in the file."""
        return self.draft.value("randomize")

    def build(self) -> None:
        """A preset, and a slider for each range."""
        said = self.data()
        preset = said if isinstance(said, str) else "own ranges"
        options = [*sorted(presets("randomizations")), "own ranges"]
        self.choice("how much", preset, options, self._choose)
        for field in range_fields(self.draft.data):
            label = ".".join(map(str, field.keys[1:])) + (f" [{field.unit}]" if field.unit else "")
            least, most, step = limits(field)
            if field.is_pair:
                slider = self.gui.add_multi_slider(label, least, most, step, (field.low, field.high))
                self.field(slider, lambda pair, field=field: self.draft.set_range(field, *pair))
            else:
                slider = self.gui.add_slider(label, least, most, step, field.high)
                self.field(slider, lambda value, field=field: self.draft.set_range(field, value, value))

    def _choose(self, preset: str) -> None:
        if preset in presets("randomizations"):
            self.draft.set(("randomize",), preset)


def limits(field: RangeField) -> tuple[float, float, float]:
    """Least and most that a slider offers, and its step: round figures around what is written."""
    reach = max(abs(field.low), abs(field.high), 1e-6)
    unit = 10.0 ** len(str(int(reach))) / 10.0 if reach >= 1 else 0.1
    while unit > reach:
        unit /= 10.0
    most = unit * (2 * int(reach / unit) + 2)
    return (-most if field.low < 0 else 0.0), most, unit / 100.0


class CameraSection(Section):
    """Cameras."""

    title = "Cameras"

    def data(self) -> Any:
        """As they stand in the file."""
        return self.draft.value("cameras")

    def build(self) -> None:
        """The presets in words, and fields for each camera that is written out."""
        said = self.data()
        text = self.gui.add_text("cameras", as_text(said), hint="Presets, as front+wrist, or cameras by name.")
        self.field(text, lambda typed: set_or_remove(self, ("cameras",), typed))
        for name, camera in (said if isinstance(said, dict) else {}).items():
            if not isinstance(camera, dict):
                continue
            for key in ("position", "look_at", "wxyz", "vertical_fov", "size"):
                if key in camera:
                    one = self.gui.add_text(f"{name} {key}", as_text(camera[key]))
                    keys = "cameras", name, key
                    self.field(one, lambda typed, keys=keys: self.draft.set(keys, read_value(typed), typing=True))
            if len(said) > 1:
                self.button(f"remove {name}", lambda name=name: self.draft.remove(("cameras", name)))
        self.button("add a camera", self._add)

    def _add(self) -> None:
        cameras = self.data()
        if cameras is None or isinstance(cameras, str):
            cameras = {name: name for name in expand_cameras(cameras or "front+wrist")}
        name = free_name("camera", cameras)
        pose = {"position": [1.0, 0.6, 0.7], "look_at": [0.45, 0.0, 0.05], "vertical_fov": "45 deg"}
        self.draft.set(("cameras",), {**cameras, name: pose})


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
