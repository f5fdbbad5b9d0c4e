"""What an editor shows: sections of controls. A host draws them as it likes, and names the one that was touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Kind = Literal["text", "lines", "choice", "number", "range", "button", "rows", "note"]


@dataclass(frozen=True, kw_only=True)
class Control:
    """One thing to read, to type into, to choose from or to press."""

    id: str
    """``regions.start.center``: where the field stands in the task, or what the button does."""
    kind: Kind
    label: str = ""
    value: Any = None
    """Text; a number; ``[low, high]`` of a range; the selected one of the rows."""
    options: tuple[str, ...] = ()
    """Of a choice, or the rows."""
    hint: str = ""
    limits: tuple[float, float, float] | None = None
    """Least, most and step of a number or a range."""
    problem: str = ""
    """What is wrong with it."""
    act: Callable[[Any], None] = field(default=lambda _: None, repr=False, compare=False)
    """Takes the new value; None of a button."""

    def told(self) -> dict[str, Any]:
        """Plain data for the host, without what is as always."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "act"}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items() if value}


@dataclass(frozen=True, kw_only=True)
class Section:
    """A folder of controls."""

    title: str
    controls: tuple[Control, ...]

    def told(self) -> dict[str, Any]:
        """Plain data for the host."""
        return {"title": self.title, "controls": [control.told() for control in self.controls]}


@dataclass(frozen=True, kw_only=True)
class Region:
    """A plate in the viewport that can be moved."""

    id: str
    name: str
    center: tuple[float, float, float]
    """[m]"""
    size: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Frustum:
    """A camera in the viewport; it can be moved where it stands in the world."""

    id: str
    """Empty where it hangs on the robot."""
    name: str
    position: tuple[float, ...]
    """[m], world frame."""
    wxyz: tuple[float, ...]
    """OpenGL axes."""
    vertical_fov: float
    aspect: float
    """Width over height."""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A mark on a surface: where an object of a sample starts, or a cell of the reach map."""

    kind: Literal["sample", "reached", "unreached"]
    position: tuple[float, float, float]
    """[m]"""
    size: float
    """[m] along a side."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """What is drawn into the viewport beside the stage."""

    regions: tuple[Region, ...] = ()
    cameras: tuple[Frustum, ...] = ()
    spots: tuple[Spot, ...] = ()

    def told(self) -> dict[str, Any]:
        """Plain data for the host."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A stage for the viewport."""

    path: str
    """Each stage has a file of its own."""
    duration: float
    """[s] of its animation; 0 where nothing moves."""
