"""Reader of demonstrations in LeRobot v3.0 and robomimic datasets, with a mapping file."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.multiply.mapping import DemonstrationMapping, Entry, MappedObject
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.files.strict_yaml import Document, read
from nimbus.datagen.geometry.transforms import quat_from_matrix, quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.store.episode_file.contents import check_own, check_size, check_streams
from nimbus.datagen.store.episode_file.structure import check_structure
from nimbus.datagen.tasks.task import Task

_LARGEST = 1e6
"""Largest absolute value of a mapped entry [rad or m]."""
_MOST_NUMBERS = 1 << 27
"""Largest array that is read [numbers]; one hour at 20 Hz with 500 numbers per row has 36 million."""
_TABLE_RATE = 20.0
"""Control rate of robosuite [Hz], which robomimic files do not state."""


class SignalSet(ABC):
    """Signals of the episodes of a dataset: (T, D) arrays by name."""

    names: Mapping[str, Sequence[str]]
    """Names of columns by signal, if the dataset states them."""
    rate: float
    episodes: Sequence[str]

    @abstractmethod
    def signals(self, episode: int) -> Mapping[str, NDArray[Any]]:
        """Return the signals of an episode."""


class LeRobotSignals(SignalSet):
    """Signals of a LeRobot v3.0 dataset.

    Args:
        folder: Folder that contains ``meta/``.
    """

    def __init__(self, folder: Path) -> None:
        from nimbus.datagen.datasets.convert.meta_files import read_info
        from nimbus.datagen.datasets.training.lerobot import LeRobotFrames

        self._frames = LeRobotFrames(folder)
        features = read_info(folder).get("features", {})
        self.names = {name: _flat(feature.get("names")) for name, feature in features.items()}
        self.rate = float(self._frames.fps)
        self.episodes = [f"episode {index}" for index in range(len(self._frames.lengths))]

    def signals(self, episode: int) -> Mapping[str, NDArray[Any]]:
        """Return the signals of an episode."""
        return self._frames.signals(episode)


class RobomimicSignals(SignalSet):
    """Signals of a robomimic file.

    Args:
        path: HDF5 file of the dataset.
    """

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self._path = path
        with self._reading("data"):
            with path.open("rb") as file:
                check_structure(file)
            self._file = h5py.File(path, "r")
            data = check_own(self._file, "data")
            names = [str(name) for name in data] if isinstance(data, h5py.Group) else []
        found = [name for name in names if re.fullmatch(r"demo_\d{1,9}", name)]
        if not found:
            raise InputError(
                "is not a robomimic file: it has no group data/demo_0", where=str(path), instead="give another file"
            )
        self.episodes = sorted(found, key=lambda name: int(name[5:]))
        self.names, self.rate = {}, _TABLE_RATE

    def signals(self, episode: int) -> Mapping[str, NDArray[Any]]:
        """Return the signals of an episode: ``obs/NAME`` for each observation, and the actions and states."""
        demo = f"data/{self.episodes[episode]}"
        with self._reading(f"{demo}/obs"):
            obs = check_own(self._file, f"{demo}/obs")
            names = [f"obs/{name}" for name in obs] if isinstance(obs, h5py.Group) else []
        found: dict[str, FloatArray] = {}
        for name in (*names, "actions", "actions_abs", "states"):
            if (rows := self._rows(f"{demo}/{name}")) is not None:
                found[name] = rows
            with self._reading(demo):  # many names may share one stored array
                if (total := sum(rows.size for rows in found.values())) > _MOST_NUMBERS:
                    raise ValueError(f"has {total} numbers; the limit is {_MOST_NUMBERS}")
        return found

    def _rows(self, place: str) -> FloatArray | None:
        """Read an array of numbers (T,) or (T, D); return None for images and for missing names."""
        with self._reading(place):
            found = check_own(self._file, place)
            if not isinstance(found, h5py.Dataset) or found.shape is None or not 1 <= found.ndim <= 2:
                return None
            if found.dtype.kind not in "fiub":
                raise ValueError(f"has type {found.dtype}; expected numbers")
            check_size(found)
            check_streams(found)
            if (size := int(found.size or 0)) > _MOST_NUMBERS:
                raise ValueError(f"has {size} numbers; the limit is {_MOST_NUMBERS}")
            return np.asarray(found[()], dtype=float)

    @contextmanager
    def _reading(self, place: str) -> Iterator[None]:
        """Convert errors of the HDF5 library about a damaged file into one line."""
        try:
            yield
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError, MemoryError) as error:
            what = f"cannot be read: {place}: {error}".split("\n")[0]
            raise InputError(what, where=str(self._path), instead="restore it from a copy") from None


def is_foreign_set(path: Path) -> bool:
    """Return True for a LeRobot folder or an HDF5 file; both need a mapping."""
    return path.suffix in (".hdf5", ".h5") or (path / "meta/info.json").is_file()


def read_foreign_set(
    path: Path, mapping_file: Path, *, task: Task, robot: Robot, limit: int | None = None
) -> list[Demonstration]:
    """Read the demonstrations of a LeRobot or robomimic dataset.

    Args:
        path: LeRobot folder or robomimic file.
        mapping_file: YAML file with a :class:`DemonstrationMapping`.
        task: Task for which they are multiplied.
        robot: Robot of the task.
        limit: Largest number of demonstrations; all by default.

    Raises:
        InputError: The mapping is incomplete, or names missing columns.
    """
    document = read(mapping_file)
    mapping = document.validate(DemonstrationMapping)
    _check(document, mapping, task=task, robot=robot)
    found = RobomimicSignals(path) if path.is_file() else LeRobotSignals(path)
    reader = _SetReader(document, mapping, found, task, robot)
    return [reader.demonstration(index, f"{path.name} {name}") for index, name in enumerate(found.episodes[:limit])]


class _SetReader:
    """Reader of the demonstrations of a dataset according to its mapping."""

    def __init__(
        self, document: Document, mapping: DemonstrationMapping, signals: SignalSet, task: Task, robot: Robot
    ) -> None:
        self._document, self._mapping, self._set = document, mapping, signals
        self._task, self._robot = task, robot

    def demonstration(self, index: int, name: str) -> Demonstration:
        """Read one demonstration."""
        mapping, robot, signals = self._mapping, self._robot, self._set.signals(index)
        self._check(signals, name)
        columns = [self._column(signals, ("joints",), mapping.joints.source, self._joint(joint)) for joint in self._led]
        joints = np.stack(columns, axis=1)
        openings = {}
        for arm in robot.arms:
            found = mapping.grippers[arm.name]
            values = self._column(signals, ("grippers", arm.name), found.source, found.entry)
            share = np.clip((values - found.closed) / (found.open - found.closed), 0.0, 1.0)
            openings[arm.name] = arm.gripper.closed + share * (arm.gripper.open - arm.gripper.closed)
        positions = self._with_fingers(joints, openings)
        bodies = {_full(thing): self._poses(signals, thing, mapped) for thing, mapped in mapping.objects.items()}
        placed = tuple(
            self._place(thing, mapped.kind, bodies[_full(thing)][0]) for thing, mapped in mapping.objects.items()
        )
        return Demonstration(
            name=name,
            task=self._task.name,
            rate=mapping.rate or self._set.rate,
            joint_positions=positions,
            openings=openings,
            bodies=bodies,
            layout=PhysicalLayout(objects=placed),
        )

    def _check(self, signals: Mapping[str, NDArray[Any]], name: str) -> None:
        """Refuse mapped signals of different lengths, with fewer than two rows, or with entries that are not numbers.

        Raises:
            InputError: A signal is refused.
        """
        parts = (self._mapping.joints, *self._mapping.grippers.values(), *self._mapping.objects.values())
        sources = [part.source for part in parts if part.source in signals]
        if not sources:
            return  # the error for a missing signal is raised when it is read
        wanted = len(signals[sources[0]])
        for source in sources:
            rows = signals[source]
            if len(rows) != wanted or wanted < 2:
                what = f"{name}: '{source}' has {len(rows)} rows and '{sources[0]}' has {wanted}"
                raise self._document.error((), what, instead="map signals of equal length, with at least two rows")
            if not (np.abs(np.asarray(rows, dtype=float)) < _LARGEST).all():  # also False for NaN
                what = f"{name}: '{source}' has an entry that is not a number of rad or m"
                raise self._document.error((), what, instead="restore the dataset from a copy, or remove the episode")

    @property
    def _led(self) -> list[str]:
        """Names of all arm joints, without the grippers."""
        return [joint for arm in self._robot.arms for joint in arm.arm.joints]

    def _joint(self, joint: str) -> Entry:
        return self._mapping.joints.entries[joint]

    def _with_fingers(self, joints: FloatArray, openings: Mapping[str, FloatArray]) -> FloatArray:
        """Return all joint positions (T, J) [rad or m]; the fingers follow the openings of their gripper."""
        columns: list[FloatArray] = []
        first = 0
        for arm in self._robot.arms:
            count = len(arm.arm.joints)
            columns += list(joints[:, first : first + count].T)
            columns += list(arm.gripper.joint_positions(openings[arm.name]).T)
            first += count
        return np.stack(columns, axis=1)

    def _column(
        self, signals: Mapping[str, NDArray[Any]], keys: tuple[str, ...], source: str, entry: Entry
    ) -> FloatArray:
        if source not in signals:
            what = f"the dataset has no signal '{source}'"
            raise self._document.error((*keys, "source"), what, instead=suggest(source, signals))
        rows = np.asarray(signals[source], dtype=float)
        rows = rows[:, None] if rows.ndim == 1 else rows
        names = self._set.names.get(source, ())
        if isinstance(entry, str) and entry not in names:
            what = f"'{source}' has no column '{entry}'"
            raise self._document.error(keys, what, instead=suggest(entry, names) if names else "use its number")
        place = names.index(entry) if isinstance(entry, str) else entry
        if not 0 <= place < rows.shape[1]:
            what = f"'{source}' has {rows.shape[1]} columns; there is no column {place}"
            raise self._document.error(keys, what, instead="count from 0")
        return rows[:, place]

    def _poses(self, signals: Mapping[str, NDArray[Any]], thing: str, mapped: MappedObject) -> FloatArray:
        """Return ``world_T_object`` (T, 4, 4) [m]."""
        keys = ("objects", thing)
        place = np.stack([self._column(signals, keys, mapped.source, entry) for entry in mapped.position], axis=1)
        values = np.stack([self._column(signals, keys, mapped.source, entry) for entry in mapped.rotation], axis=1)
        parts = values.reshape(len(values), -1, 3) if mapped.rotation_6d else values[:, None]
        norm = np.linalg.norm(parts, axis=2)
        if not np.all(np.abs(norm - 1.0) < 0.05):
            what = f"the rotation of '{thing}' is not of unit length"
            raise self._document.error(keys, what, instead="map the columns that contain its rotation")
        poses = np.tile(np.eye(4), (len(place), 1, 1))
        if mapped.rotation_6d:
            one, other = parts[:, 0], parts[:, 1]
            poses[:, :3, :3] = np.stack([one, other, np.cross(one, other)], axis=2)
        else:
            poses[:, :3, :3] = quat_to_matrix(np.roll(values, 1, axis=1) if mapped.xyzw else values)
        poses[:, :3, 3] = place + np.asarray(self._mapping.origin)
        return poses

    def _place(self, name: str, kind: str, pose: FloatArray) -> PlacedObject:
        group = self._task.objects[_group(name)]
        library = open_library(group.library)
        known = sorted(library.kinds)
        if kind not in known:
            what = f"'{group.library}' has no kind '{kind}'"
            raise self._document.error(("objects", name, "kind"), what, instead=suggest(kind, known))
        model = library.model(kind, 0)
        return PlacedObject(
            name=_full(name),
            group=_group(name),
            library=group.library,
            kind=kind,
            variant=0,
            object_class=group.class_of(model.object_class),
            position=(float(pose[0, 3]), float(pose[1, 3]), float(pose[2, 3])),
            wxyz=quat_from_matrix(pose[:3, :3]),
            rest_pose=model.rest_poses[0].name,
            mass=model.mass,
            friction=model.friction,
            anchored=model.anchored,
        )


def _check(document: Document, mapping: DemonstrationMapping, *, task: Task, robot: Robot) -> None:
    """Refuse a mapping without all joints, grippers and objects of the task."""
    wanted = [joint for arm in robot.arms for joint in arm.arm.joints]
    if missing := [joint for joint in wanted if joint not in mapping.joints.entries]:
        what = f"the joint '{missing[0]}' of '{robot.name}' is not mapped"
        raise document.error(("joints", "entries"), what, instead="add its column")
    if missing := [name for name in robot.arm_names if name not in mapping.grippers]:
        what = f"the gripper of the arm '{missing[0]}' is not mapped"
        raise document.error(("grippers",), what, instead=f"add {missing[0]}: {{source: action, entry: …}}")
    groups = {_group(name) for name in mapping.objects}
    if unknown := sorted(groups - set(task.objects)):
        what = f"the task '{task.name}' has no object '{unknown[0]}'"
        raise document.error(("objects", unknown[0]), what, instead=suggest(unknown[0], task.objects))
    if missing := [name for name in task.objects if name not in groups]:
        what = f"the pose of '{missing[0]}' is not mapped; motions relative to it need the pose"
        instead = "map its columns of observation.environment_state, or record object poses"
        raise document.error(("objects",), what, instead=instead)


def _full(name: str) -> str:
    """Return the name of an object in a layout, such as ``peg_0`` for the task's ``peg``."""
    return name if re.search(r"_\d+$", name) else f"{name}_0"


def _group(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _flat(names: Any) -> list[str]:
    """Return the names of columns as a list, from any nesting that LeRobot uses."""
    if isinstance(names, dict):
        return [name for part in names.values() for name in _flat(part)]
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else []
