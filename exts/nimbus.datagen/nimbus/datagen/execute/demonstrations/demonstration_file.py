"""File of one demonstrated subtask: takes of a motion near one object, in its frame.

The file is JSON (``NAME.demo.json``), so that people can read and edit it. It enters the identity of a task by
:meth:`DemonstrationFile.content_hash`, never by its path.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.geometry.transforms import make_transform, quat_from_matrix

SUFFIX = ".demo.json"
ON, HAND = "on", "hand:"
"""Roles of objects that fingers close on: the object of the frame or a part of it (``on``, ``on.drawer_0``), or the
object in a hand (``hand:left``)."""
_DECIMALS = 6
"""Decimals of stored numbers, a micrometer: far below the accuracy of a controller."""
_LARGEST = 64 << 20
"""Largest file [bytes]."""

PoseRow = Annotated[tuple[float, ...], Field(min_length=7, max_length=7)]
"""Position [m] and unit quaternion wxyz of a pose."""
Size = tuple[float, float, float]
"""Extents of a thing along its own axes [m]."""


class GripperEvent(StrictModel):
    """Closing or opening of a gripper, before the motion to one of the poses."""

    row: int = Field(ge=0, description="number of poses before the event; it occurs before the motion to the next pose")
    action: Literal["close", "open", "set"] = Field(
        description="close on a thing, open, or set the opening without a thing"
    )
    on: str = Field(default="", description="role of the thing to close on: on, on.PART, or hand:ARM")
    opening: float = Field(
        default=1.0, ge=0, le=1, description="opening after the event, as a fraction of the full opening"
    )


class Track(StrictModel):
    """Motion of one arm."""

    poses: tuple[PoseRow, ...] = Field(min_length=2, description="frame_T_tool of each row")
    posture: tuple[float, ...] | None = Field(default=None, description="joints of the arm at the start [rad or m]")
    opening: float = Field(
        default=1.0, ge=0, le=1, description="opening at the start, as a fraction of the full opening"
    )
    held: str = Field(default="", description="kind of the thing in the hand at the start; empty for none")
    held_size: Size | None = Field(default=None, description="extents of the held thing along its own axes [m]")
    tool_T_held: PoseRow | None = Field(default=None, description="pose of the held thing in the hand at the start")
    events: tuple[GripperEvent, ...] = ()

    @model_validator(mode="after")
    def _events_in_order(self) -> Track:
        rows = [event.row for event in self.events]
        if rows != sorted(rows) or any(row > len(self.poses) for row in rows):
            raise ValueError("events must be in the order of their rows, and a row is at most the number of poses")
        if bool(self.held) != (self.tool_T_held is not None):
            raise ValueError("give both held and tool_T_held, or neither")
        return self

    def matrices(self) -> FloatArray:
        """Return ``frame_T_tool`` of each row (N, 4, 4) [m]."""
        return np.array([matrix_of(row) for row in self.poses])


class Take(StrictModel):
    """One demonstration of the subtask."""

    source: str = Field(description="episode and rows from which the take was cut")
    kind: str = Field(default="", description="kind of the thing in whose frame the take is given")
    size: Size | None = Field(default=None, description="extents of that thing along its own axes [m]")
    base_T_frame: PoseRow = Field(description="pose of that thing from the base of the first arm, in world axes")
    rate: float = Field(gt=0, le=1000, description="rows per second [Hz]")
    tracks: dict[str, Track] = Field(min_length=1, description="motions by arm; several arms move in step")

    @model_validator(mode="after")
    def _in_step(self) -> Take:
        if len({len(track.poses) for track in self.tracks.values()}) != 1:
            raise ValueError("the tracks of a take have different numbers of poses")
        return self


class DemonstrationFile(StrictModel):
    """Takes of one subtask."""

    nimbus_demonstration: Literal[1] = 1
    robot: str
    task: str
    subtask: str = Field(description="description of the subtask for readers")
    axes: Literal["thing", "world"] = Field(
        default="thing",
        description="axes of the poses: those of the thing, or of the world",
    )
    part: str = Field(default="", description="moving part of the thing in whose frame the poses are; empty for none")
    takes: tuple[Take, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _same_arms(self) -> DemonstrationFile:
        if len({tuple(sorted(take.tracks)) for take in self.takes}) != 1:
            raise ValueError("the takes move different arms")
        return self

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms that move."""
        return tuple(self.takes[0].tracks)

    @property
    def closes_on_thing(self) -> bool:
        """True if a hand closes on the thing that a step names in ``on``."""
        events = (event for take in self.takes for track in take.tracks.values() for event in track.events)
        return any(event.action == "close" and event.on.startswith(ON) for event in events)

    def text(self) -> str:
        """Return the content of its file."""
        return self.model_dump_json(indent=None) + "\n"

    def content_hash(self) -> str:
        """Return the hash of its content, which enters the hash of a task; formatting has no effect."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def write(self, path: Path) -> None:
        """Write it to a file."""
        write_atomic(path, self.text(), durable=False, shared=True)


def pose_row(matrix: FloatArray) -> PoseRow:
    """Return a pose (4, 4) in its stored form."""
    values = (*matrix[:3, 3], *quat_from_matrix(matrix[:3, :3]))
    return tuple(round(float(value), _DECIMALS) + 0.0 for value in values)


def extents_of(vertices: FloatArray) -> Size:
    """Return the extents of vertices (V, 3) along the axes, rounded to millimeters [m]."""
    x, y, z = np.round(np.ptp(vertices, axis=0), 3).tolist()
    return x, y, z


def matrix_of(row: PoseRow) -> FloatArray:
    """Return a stored pose as a matrix (4, 4)."""
    wxyz = np.asarray(row[3:])
    return make_transform(row[:3], wxyz / np.linalg.norm(wxyz))


def find_demonstration(name_or_path: str, folder: Path) -> str:
    """Return the path of a demonstration named by a task file in ``folder``, relative to the working directory."""
    path = Path(name_or_path)
    named = path if path.suffix or not path.name else path.with_name(f"{path.name}{SUFFIX}")
    return str(folder / named)


def read_demonstration(path: str | Path, *, where: str = "") -> DemonstrationFile:
    """Read a demonstration.

    Args:
        path: The file.
        where: Location of the reference to the file, for errors.

    Raises:
        InputError: There is no such file, or it is not a demonstration.
    """
    path = Path(path)
    place = f"{where}: {path}" if where else str(path)
    try:
        state = path.stat()
    except (OSError, ValueError):
        what = "no such demonstration"
        raise InputError(what, where=place, instead="make it with nimbus multiply, or correct the path") from None
    try:
        return _read(str(path), state.st_mtime_ns, state.st_size)
    except InputError as error:
        raise InputError(error.what, where=place, instead=error.instead) from None


@lru_cache(maxsize=64)
def _read(path: str, modified: int, size: int) -> DemonstrationFile:
    """Read a file; its time and size are part of the cache's key."""
    text = read_text(Path(path), limit=_LARGEST)
    try:
        return DemonstrationFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        keys = ".".join(map(str, first["loc"])) or "the file"
        what = f"not a demonstration: {keys}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise InputError(what, where=path, instead="make it again with nimbus multiply") from None
