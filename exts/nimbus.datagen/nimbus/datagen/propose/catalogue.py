"""Catalogue of the measured properties of kinds, for planning and packing; it is kept in the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter, ValidationError

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.execute.motions.grasps import model_axes
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.geometry.transforms import make_transform, quat_to_matrix
from nimbus.datagen.objects.articulated.pose import swept_vertices
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import MovingPart
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.version import versioned_hash

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.objects.model import ObjectModel, RestPose
    from nimbus.datagen.plan.grasp import GripperShape
    from nimbus.datagen.robots.robot import Robot

VERSION = 3
"""Version of the measurements; raise it when a value changes."""
_VARIANTS = 2
"""Number of measured variants per kind."""
_SLACK = 1.06
"""Factor on lengths that allows for the variants that are not measured."""
_FLAT = 0.0015
"""Distance below the highest point within which points belong to the flat top [m]."""
_LEVEL = 0.5
"""Largest vertical component of a unit axis that counts as level."""
_UP = 0.7
"""Smallest vertical component of a normal that points up."""
_CORNERS = 16
"""Number of corners of an object's outline."""
_GRASPS = 10
"""Number of grasps above which counting stops."""


@dataclass(frozen=True, kw_only=True)
class PartEntry:
    """Measured properties of a moving part."""

    name: str
    has_handle: bool
    has_pressing: bool
    """True if a hand can press on the part.

    A button counts only if it faces up: there is no clearance for a hand in front of a button low over the table.
    """
    is_drawer: bool
    """True for a sliding part with a cavity."""
    is_lid: bool
    """True for a part that rotates about a horizontal axis."""
    is_spring: bool
    """True for a part that a spring returns, such as a button."""


@dataclass(frozen=True, kw_only=True)
class KindEntry:
    """Measured properties of a kind; lengths [m] and mass [kg] are the largest of the measured variants."""

    name: str
    """Full name, such as ``kitchen.cup``."""
    object_class: str
    category: str
    color: str
    size: tuple[float, ...]
    """Size in the usual rest pose: longer and shorter side seen from above, and height [m]."""
    mass: float
    grasps: int
    """Number of grasps of the robot's gripper in that rest pose, at most ten."""
    outline: tuple[tuple[float, float], ...]
    """Corners x, y of the convex outline relative to the origin, seen from above at yaw 0 [m]."""
    is_rolling: bool
    """True if the object rolls when pushed in its usual rest pose."""
    rests: tuple[str, ...]
    tilt_margin: float
    """Smallest tilt at which the object tips over in that rest pose [rad]."""
    room: tuple[float, ...]
    """Longer side, shorter side and height of the largest cavity, including drawers [m]; zeros without a cavity."""
    top: tuple[float, ...]
    """Longer and shorter side of the flat top in that rest pose [m]; zeros without a flat top."""
    holes: tuple[str, ...]
    frames: tuple[str, ...]
    parts: tuple[PartEntry, ...]
    is_anchored: bool
    is_ball: bool
    symmetry: str
    swept: tuple[float, ...]
    """Lowest x and y, then highest x and y of the area swept by moving parts, at yaw 0, about the origin [m]."""

    @property
    def library(self) -> str:
        """Name of the kind's library."""
        return self.name.rpartition(".")[0]

    @property
    def kind(self) -> str:
        """Name of the kind in its library."""
        return self.name.rpartition(".")[2]

    @property
    def radius(self) -> float:
        """Half of the diagonal seen from above [m]."""
        return float(np.hypot(self.size[0], self.size[1])) / 2

    @property
    def span(self) -> float:
        """Largest distance of the outline from the origin [m], which is the object's radius at any yaw."""
        return max(float(np.hypot(x, y)) for x, y in self.outline)

    @property
    def is_hollow(self) -> bool:
        """True if the body itself has a cavity."""
        return self.room[0] > 0.0 and not any(part.is_drawer for part in self.parts)


_FILE = TypeAdapter(list[KindEntry])


class Catalogue(Mapping[str, KindEntry]):
    """Entries of kinds by name, for one robot; a library is measured when it is first opened, and then cached.

    Args:
        robot: Robot; grasps are counted for the gripper of its first arm.
        libraries: Names or paths of libraries; all libraries of Nimbus if empty.

    Raises:
        InputError: A library cannot be opened, or two libraries have the same name.
    """

    def __init__(self, robot: Robot, libraries: Iterable[str] = ()) -> None:
        self.robot = robot
        self.opened: dict[str, str] = {}
        """Names or paths under which libraries were opened, by the name of the library."""
        self._entries: dict[str, KindEntry] = {}
        for name in libraries or scene_names("objects"):
            library = open_library(name)
            if self.opened.get(library.name, name) != name:
                what = f"two libraries have the name '{library.name}'"
                raise InputError(what, where=name, instead="rename one of them")
            self.opened[library.name] = name
            for entry in _entries(library, robot.arms[0].gripper.shape):
                self._entries[entry.name] = entry

    def __getitem__(self, name: str) -> KindEntry:
        """Return the entry of a kind.

        Raises:
            InputError: The kind does not exist.
        """
        if name not in self._entries:
            raise InputError(f"unknown kind '{name[:60]}'", where="things", instead=suggest(name, self._entries))
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _entries(library: ObjectLibrary, gripper: GripperShape) -> list[KindEntry]:
    gripper_hash = versioned_hash(repr(gripper).encode(), VERSION)
    path = cache_folder("catalogue") / f"{library.name}-{library.content_hash}-{gripper_hash}.json"
    if path.is_file():
        with suppress(ValidationError):  # the file is of another version or incomplete, so the kinds are measured again
            return _FILE.validate_json(path.read_bytes())
    # Cloths and cables have no pose that planning and packing could use.
    entries = [_measure(library, kind, gripper) for kind in library.kinds if not library.kind(kind).bends_as]
    with writing(path.parent):
        write_atomic(path, _FILE.dump_json(entries), durable=False, shared=True)
    return entries


def _measure(library: ObjectLibrary, kind: str, gripper: GripperShape) -> KindEntry:
    models = [library.model(kind, variant) for variant in range(min(_VARIANTS, library.variant_count(kind)))]
    first, rest = models[0], models[0].rest_poses[0]
    sizes = [_size(model.vertices, model.rest_poses[0]) for model in models]
    swept = [_swept(model) for model in models]
    return KindEntry(
        name=f"{library.name}.{kind}",
        object_class=first.object_class,
        category=first.category,
        color=first.color,
        size=_rounded(_SLACK * np.max(sizes, axis=0)),
        mass=round(max(model.mass for model in models), 4),
        grasps=min(_count(model, model.rest_poses[0], gripper) for model in models),
        outline=_outline(models),
        is_rolling=bool(
            first.rolling and rest.name == "lying" and first.symmetry == "revolution" and _is_long(first, rest)
        ),
        rests=tuple(pose.name for pose in first.rest_poses),
        tilt_margin=round(min(model.rest_poses[0].tilt_margin for model in models), 3),
        room=_rounded(np.min([_room(model) for model in models], axis=0)),
        top=_rounded(np.min([_top(model, model.rest_poses[0]) for model in models], axis=0)),
        holes=tuple(name for name in first.cavities if name != "opening"),
        frames=tuple(first.frames),
        parts=tuple(
            PartEntry(
                name=part.name,
                has_handle=bool(part.handles),
                has_pressing=_has_pressing(part),
                is_drawer=part.joint.kind == "slide" and bool(part.cavities),
                is_lid=part.joint.kind == "hinge" and abs(float(part.joint.axis[2])) < _LEVEL,
                is_spring=part.joint.stiffness > 0.0,
            )
            for part in first.parts
        ),
        is_anchored=first.anchored,
        is_ball=first.ball > 0.0,
        symmetry=first.symmetry,
        swept=_rounded([*np.min(swept, axis=0)[0], *np.max(swept, axis=0)[1]]),
    )


def _rounded(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)


def _turned(vertices: FloatArray, rest: RestPose) -> FloatArray:
    return vertices @ quat_to_matrix(rest.wxyz).T


def _size(vertices: FloatArray, rest: RestPose) -> tuple[float, float, float]:
    """Return the longer and shorter side, seen from above at the narrowest yaw, and the height [m]."""
    points = _turned(vertices, rest)
    width, depth = _sides(points[:, :2])
    return width, depth, float(np.ptp(points[:, 2]))


def _sides(points: FloatArray) -> tuple[float, float]:
    """Return the longer and shorter side [m] of the smallest rectangle around points (n, 2), in steps of 5 degrees."""
    turns = np.radians(np.arange(0, 90, 5))
    axes = np.stack([np.cos(turns), np.sin(turns)])
    spans = np.stack([np.ptp(points @ axes, axis=0), np.ptp(points @ np.stack([-axes[1], axes[0]]), axis=0)])
    narrow = spans[:, int(np.argmin(spans.prod(axis=0)))]
    return float(narrow.max()), float(narrow.min())


def _outline(models: Iterable[ObjectModel]) -> tuple[tuple[float, float], ...]:
    """Return the corners of a simplified outline that contains all variants [m]."""
    points = _SLACK * np.concatenate([_turned(model.vertices, model.rest_poses[0])[:, :2] for model in models])
    angles = 2 * np.pi * np.arange(_CORNERS) / _CORNERS
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    reaches = (points @ normals.T).max(axis=0)
    pairs = [np.stack([normals[place], normals[(place + 1) % _CORNERS]]) for place in range(_CORNERS)]
    corners = [np.linalg.solve(pair, reaches[[place, (place + 1) % _CORNERS]]) for place, pair in enumerate(pairs)]
    return tuple((round(float(x), 4), round(float(y), 4)) for x, y in corners)


def _has_pressing(part: MovingPart) -> bool:
    is_button = part.joint.stiffness > 0.0
    return any(not is_button or pressing.normal[2] > _UP for pressing in part.pressings)


def _is_long(model: ObjectModel, rest: RestPose) -> bool:
    """Return True if the axis of revolution is level, so the object rolls instead of standing on a flat end."""
    return model.symmetry == "revolution" and bool(abs(_turned(np.array([[0.0, 0.0, 1.0]]), rest)[0, 2]) < 0.5)


def _swept(model: ObjectModel) -> FloatArray:
    points = _turned(swept_vertices(model), model.rest_poses[0])[:, :2]
    return np.array([points.min(axis=0), points.max(axis=0)])


def _room(model: ObjectModel) -> tuple[float, float, float]:
    boxes = [box for name, box in model.cavities.items() if name == "opening"]
    boxes += [box for part in model.parts for box in part.cavities.values()]
    sizes = [np.ptp(np.asarray(box), axis=0) for box in boxes]
    width, depth, height = max(sizes, key=lambda size: float(np.prod(size)), default=np.zeros(3))
    return float(max(width, depth)), float(min(width, depth)), float(height)


def _top(model: ObjectModel, rest: RestPose) -> tuple[float, float]:
    if model.cavities or model.parts or model.ball:
        return 0.0, 0.0
    points = _turned(model.vertices, rest)
    high = points[points[:, 2] > points[:, 2].max() - _FLAT, :2]
    return _sides(high) if len(high) >= 3 else (0.0, 0.0)


def _count(model: ObjectModel, rest: RestPose, gripper: GripperShape) -> int:
    if model.anchored:
        return 0
    axes = model_axes(model.library, model.kind, model.variant, gripper, 1.0)
    return len(rank_grasps(axes, make_transform((0.0, 0.0, rest.height), rest.wxyz), limit=_GRASPS))
