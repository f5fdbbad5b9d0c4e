"""Form fields of a task, derived from declarations: steps with parameters, ranges and regions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nimbus.datagen import registry
from nimbus.datagen.files.strict_yaml import Keys, parse
from nimbus.datagen.files.yaml_write import write_flow
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import Statement
from nimbus.datagen.tasks.task_file import presets

_LONGEST = 100
"""Longest text that is matched [characters]: the time grows with the square of its length."""
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\D*?)\s*")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Parameter of a skill, as declared by its class."""

    name: str
    meaning: str
    required: bool
    default: str
    """Default value in the notation of a task file; empty for none."""
    choices: tuple[str, ...] = ()
    """All possible values, if there are few."""

    @property
    def hint(self) -> str:
        """Hint about the values of its field."""
        return self.meaning + (f" Default: {self.default}." if self.default else "")


@dataclass(frozen=True, kw_only=True)
class SkillForm:
    """Skill with its parameters."""

    name: str
    summary: str
    main: str
    """Parameter that the short form fills; empty if there is none."""
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """Row of the list of steps."""

    keys: Keys
    """Location of the entry in the file: ``("steps", 0)``."""
    depth: int
    name: str
    """Name of the skill, or the text of a loop."""
    is_skill: bool
    parameters: dict[str, Any]

    @property
    def label(self) -> str:
        """Label for display."""
        said = ", ".join(f"{name} {write_flow(value)}" for name, value in self.parameters.items())
        return "    " * self.depth + (f"{self.name}: {said}" if said else self.name)


@dataclass(frozen=True, kw_only=True)
class RangeField:
    """Range of values that a randomizer draws from, in the unit of the file."""

    keys: Keys
    low: float
    high: float
    unit: str
    is_pair: bool
    """True for a range of two numbers; False for a single number, such as the largest deviation from the center."""

    @property
    def name(self) -> str:
        """Location below ``randomize``: ``light.intensity``."""
        return ".".join(map(str, self.keys[1:]))

    @property
    def label(self) -> str:
        """Name and unit for display."""
        return self.name + (f" [{self.unit}]" if self.unit else "")

    @property
    def limits(self) -> tuple[float, float, float]:
        """Range and step of the slider: round numbers around the current values."""
        reach = max(abs(self.low), abs(self.high), 1e-6)
        unit = 10.0 ** len(str(int(reach))) / 10.0 if reach >= 1 else 0.1
        while unit > reach:
            unit /= 10.0
        most = unit * (2 * int(reach / unit) + 2)
        return (-most if self.low < 0 else 0.0), most, unit / 100.0

    def written(self, low: float, high: float) -> Any:
        """Return new bounds in the notation of the file."""
        pair = [f"{bound:.6g} {self.unit}" if self.unit else _number(bound) for bound in (low, high)]
        return pair if self.is_pair else pair[1]


def skill_forms(*, kind: str = "skill") -> list[SkillForm]:
    """Return every registered skill (or condition, kind ``predicate``) with its parameters."""
    discover()
    return [_form(name, registry.lookup(kind, name)) for name in registry.names(kind)]


def _form(name: str, model: type[Statement]) -> SkillForm:
    parameters = tuple(_parameter(field, settings) for field, settings in model.model_fields.items())
    return SkillForm(name=name, summary=model.summary(), main=model.main, parameters=parameters)


def _parameter(name: str, settings: FieldInfo) -> Parameter:
    required, default = settings.is_required(), settings.default
    return Parameter(
        name=name,
        meaning=(settings.description or "").strip(),
        required=required,
        default="" if required or default is None else write_flow(_plain(default)),
        choices=tuple(_choices(settings.annotation)),
    )


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _choices(annotation: Any) -> Iterator[str]:
    if annotation is bool:
        yield from ("true", "false")
    elif get_origin(annotation) is Literal:
        yield from (str(choice) for choice in get_args(annotation))
    elif type(None) in get_args(annotation):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        if len(kinds) == 1:
            yield from _choices(kinds[0])


def step_rows(data: Any, *, kind: str = "skill", at: Keys = ("steps",), depth: int = 0) -> list[StepRow]:
    """Return the steps of a task (or its conditions, kind ``predicate``) as rows; steps of a loop follow the loop."""
    rows: list[StepRow] = []
    entries: tuple[Any, ...] = data if isinstance(data, tuple) else ()
    known = registry.names(kind)
    for index, entry in enumerate(entries):
        keys = (*at, index)
        if isinstance(entry, str):
            rows.append(StepRow(keys=keys, depth=depth, name=entry, is_skill=entry in known, parameters={}))
        elif isinstance(entry, dict) and entry:
            name, value = next(iter(entry.items()))
            is_skill = name in known
            given = _parameters(kind, name, value) if is_skill else {}
            rows.append(StepRow(keys=keys, depth=depth, name=name, is_skill=is_skill, parameters=given))
            if not is_skill:
                for word, block in entry.items():
                    rows += step_rows(block, kind=kind, at=(*keys, word), depth=depth + 1)
    return rows


def _parameters(kind: str, name: str, value: Any) -> dict[str, Any]:
    main = registry.lookup(kind, name).main
    return dict(value) if isinstance(value, dict) else {main or "value": value}


def step_entry(name: str, parameters: dict[str, Any], *, kind: str = "skill") -> Any:
    """Return a step as written in a file, in its shortest form."""
    if not parameters:
        return name
    model: type[Statement] = registry.lookup(kind, name)
    if list(parameters) == [model.main] and not isinstance(parameters[model.main], dict):
        return {name: parameters[model.main]}
    return {name: parameters}


def read_value(text: str) -> Any:
    """Parse a typed value: ``5 cm``, ``[0.4, 0, 0.1]``, ``items[0]``.

    Raises:
        InputError: The text is not YAML.
    """
    return parse(f"value: {text.strip()}\n", "the field").data["value"]


def named_cameras(data: Any) -> dict[str, Any]:
    """Return the cameras by name with their entries; presets get their own names."""
    said = data.get("cameras") if isinstance(data, dict) else None
    if isinstance(said, dict):
        return said
    words = said.split("+") if isinstance(said, str) else said if isinstance(said, tuple) else ()
    names = [word.strip() for word in words if isinstance(word, str) and word.strip()]
    return {name: name for name in names or ("front", "wrist")}


def written_out(data: Any) -> dict[str, Any]:
    """Return the randomizers with their settings; the name of a preset is expanded."""
    said = data.get("randomize", {}) if isinstance(data, dict) else {}
    said = presets("randomizations").get(said, {}) if isinstance(said, str) else said
    return said if isinstance(said, dict) else {}


def addable(data: Any) -> dict[str, Any]:
    """Return the randomizers that a task does not use, with initial settings from a preset that has them."""
    discover()
    known: dict[str, Any] = presets("randomizations")["large"] | presets("randomizations")["medium"]
    return {name: known.get(name, {}) for name in registry.names("randomizer") if name not in written_out(data)}


def range_fields(data: Any) -> list[RangeField]:
    """Return the numeric ranges of a task's randomizers."""
    return list(_ranges(written_out(data), ("randomize",)))


def _ranges(value: Any, keys: Keys) -> Iterator[RangeField]:
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from _ranges(entry, (*keys, name))
        return
    pair = value if isinstance(value, tuple) else (value, value)
    bounds = [_bound(bound) for bound in pair]
    if len(pair) == 2 and all(bounds):
        (low, unit), (high, other) = (bound for bound in bounds if bound)
        if unit == other:
            yield RangeField(keys=keys, low=low, high=high, unit=unit, is_pair=isinstance(value, tuple))


def _bound(value: Any) -> tuple[float, str] | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value), ""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and len(value) <= _LONGEST else None
    return (float(match[1]), match[2]) if match else None


def _number(value: float) -> float | int:
    value = float(f"{value:.6g}")
    return int(value) if value.is_integer() else value
