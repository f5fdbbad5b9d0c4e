"""Messages between a host and the editor process: lines of JSON.

The host sends an :class:`EditorRequest` for each control that is used; the editor sends an :class:`EditorState` after
each change. During a live plan the editor also sends orders about the stage that the host has open, as
``{"order": …}``, and the host answers each with a request of the name :data:`ANSWER`. This module needs only Python's
standard library.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.form import SectionData

ANSWER = "answer of the stage"
"""Name of the request that answers an order."""


class EditorRequest(TypedDict):
    """Action of the user on a control."""

    id: str
    value: Any


class StageData(TypedDict):
    """Plain data of a :class:`StageView`."""

    path: str
    duration: float


class MarkersData(TypedDict):
    """Plain data of :class:`ViewportMarkers`."""

    regions: list[dict[str, Any]]
    cameras: list[dict[str, Any]]
    spots: list[dict[str, Any]]


class EditorState(TypedDict):
    """Everything that a host shows of an editor."""

    path: str
    """Path of the open file; empty while no task is open."""
    source: str
    """Word that opens the task again: its file, or its name until it is saved."""
    text: str
    unsaved: bool
    """True if the file on the disk is not the task that is shown."""
    activity: str
    message: str
    problems: list[str]
    sections: list[SectionData]
    markers: MarkersData
    stage: StageData | None
    variation: str
    """Layer that changes the stage; empty for the original stage."""
    pictures: dict[str, str]
    """Image files, by camera."""


@dataclass(frozen=True, kw_only=True)
class RegionMarker:
    """Plate in the viewport that can be moved."""

    id: str
    name: str
    center: tuple[float, float, float]
    """Center of the region [m]."""
    size: tuple[float, float]
    """Extent along x and y [m]."""


@dataclass(frozen=True, kw_only=True)
class CameraMarker:
    """Camera frustum in the viewport; it can be moved if the camera is fixed to the world."""

    id: str
    """Id of the camera; empty for a camera on the robot."""
    name: str
    position: tuple[float, ...]
    """Position in the world frame [m]."""
    wxyz: tuple[float, ...]
    """OpenGL axes."""
    vertical_fov: float
    """Vertical field of view [rad]."""
    aspect: float
    """Width over height."""


@dataclass(frozen=True, kw_only=True)
class Marker:
    """Square on a surface: start of a sampled object, or a cell of the reach map."""

    kind: Literal["sample", "reached", "unreached"]
    position: tuple[float, float, float]
    """Position in the world frame [m]."""
    size: float
    """Length of a side [m]."""


@dataclass(frozen=True, kw_only=True)
class ViewportMarkers:
    """Markers that are drawn into the viewport beside the stage."""

    regions: tuple[RegionMarker, ...] = ()
    cameras: tuple[CameraMarker, ...] = ()
    spots: tuple[Marker, ...] = ()

    def to_dict(self) -> MarkersData:
        """Convert to plain data for the host."""
        return {
            "regions": [asdict(one) for one in self.regions],
            "cameras": [asdict(one) for one in self.cameras],
            "spots": [asdict(one) for one in self.spots],
        }


@dataclass(frozen=True, kw_only=True)
class StageView:
    """Stage for the viewport."""

    path: str
    """Path of the stage; each stage is written to a new file."""
    duration: float
    """Length of the animation [s]; 0 for a static stage."""

    def to_dict(self) -> StageData:
        """Convert to plain data for the host."""
        return {"path": self.path, "duration": self.duration}


def empty_state() -> EditorState:
    """Make the state that is shown before there is an editor."""
    return {
        "path": "",
        "source": "",
        "text": "",
        "unsaved": False,
        "activity": "",
        "message": "",
        "problems": [],
        "sections": [],
        "markers": ViewportMarkers().to_dict(),
        "stage": None,
        "variation": "",
        "pictures": {},
    }


def parse_request(line: str) -> EditorRequest | None:
    """Parse a line from the host; None if it is not a request."""
    message = _parse_object(line)
    if message is None or set(message) != {"id", "value"} or not isinstance(message["id"], str):
        return None
    return {"id": message["id"], "value": message["value"]}


def parse_order(line: str) -> dict[str, Any] | None:
    """Parse a line from the editor that is an order; None for a state."""
    message = _parse_object(line)
    if message is None or set(message) != {"order"} or not isinstance(message["order"], dict):
        return None
    return message["order"]


def parse_state(line: str) -> EditorState:
    """Parse a line from the editor.

    Raises:
        InputError: The fields of the line are not those of an :class:`EditorState`, for example because another version
            of Nimbus wrote it.
    """
    message = _parse_object(line)
    if message is None or set(message) != set(EditorState.__annotations__):
        raise InputError("the editor sent an invalid message", instead="use a Nimbus of the same version on both sides")
    state: Any = message
    return state


def _parse_object(line: str) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
