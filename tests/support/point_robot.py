"""A point robot that drives over a map: a second pipeline for the same stages, with fused plan and render."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import InstanceOf

from nimbus.datagen.episode.layout import Camera, EpisodeKey, Layout, Light, PhysicalLayout, VisualLayout
from nimbus.datagen.episode.observation import CameraFrames, Observation
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome, Reason, StartState, Trajectory
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.random_streams import generator
from nimbus.datagen.stages import (
    Randomized,
    Randomizer,
    Rendered,
    Request,
    Scene,
    SceneLoader,
    Stage,
    Stored,
    Writer,
)

Cell = tuple[int, int]
RATE = 10.0


@dataclass(frozen=True)
class Map:
    """Rows of ``.`` (free) and ``#`` (wall)."""

    name: str
    rows: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Map:
        rows = tuple(path.read_text().splitlines())
        for line, row in enumerate(rows, 1):
            if len(row) != len(rows[0]):
                raise InputError(f"row of {len(row)} cells, the first has {len(rows[0])}", where=f"{path}:{line}")
            if strange := sorted(set(row) - set(".#")):
                what = f"unknown cell '{strange[0]}'"
                raise InputError(what, where=f"{path}:{line}:{row.index(strange[0]) + 1}", instead=suggest("", ".#"))
        return cls(path.stem, rows)

    @property
    def free(self) -> list[Cell]:
        return [(r, c) for r, row in enumerate(self.rows) for c, cell in enumerate(row) if cell == "."]

    def path(self, start: Cell, goal: Cell) -> list[Cell]:
        """Return the shortest path over free cells; empty if there is none."""
        free, before, queue = set(self.free), {start: start}, deque([start])
        while queue and goal not in before:
            r, c = queue.popleft()
            for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                if cell in free and cell not in before:
                    before[cell] = (r, c)
                    queue.append(cell)
        cells = [goal] if goal in before else []
        while cells and cells[-1] != start:
            cells.append(before[cells[-1]])
        return cells[::-1]


class MapSettings(StrictModel):
    """A map, and the list in which components record their work."""

    map_path: Path
    log: InstanceOf[list]


class LogSettings(StrictModel):
    """The list in which components record their work."""

    log: InstanceOf[list]


class PointRobotSettings(LogSettings):
    """Range of the robot's sensor, and the episode at which it fails."""

    view: int = 1
    break_at: int = -1


class MemorySettings(LogSettings):
    """The dictionary of episodes."""

    episodes: InstanceOf[dict]


class MapLoader(SceneLoader[Map]):
    """Loads and checks the map of every request."""

    @classmethod
    def create(cls, context: RunContext, settings: MapSettings) -> Self:
        return cls(settings.map_path, settings.log)

    def __init__(self, map_path: Path, log: list[str]) -> None:
        self.map_path, self.log = map_path, log

    def process(self, item: Request) -> Iterator[Scene[Map]]:
        self.log.append(f"load {item.index}")
        yield Scene(request=item, assets=Map.read(self.map_path), provenance=Provenance(task_text="", task_hash="map"))

    def close(self) -> None:
        self.log.append("close load")


class StartAndGoal(Randomizer[Map]):
    """Draws two free cells."""

    @classmethod
    def create(cls, context: RunContext, settings: LogSettings) -> Self:
        return cls(context.seed, settings.log)

    def __init__(self, seed: int, log: list[str]) -> None:
        self.seed, self.log = seed, log

    def process(self, item: Scene[Map]) -> Iterator[Randomized[Map]]:
        index = item.request.index
        self.log.append(f"randomize {index}")
        rng = generator(self.seed, index, "physical", "cells")
        start, goal = (item.assets.free[i] for i in rng.choice(len(item.assets.free), 2, replace=False))
        physical = PhysicalLayout(objects=(), drawn={"start": list(start), "goal": list(goal)})
        camera = Camera(
            name="map", mount="", position=(0, 0, 1), wxyz=(1, 0, 0, 0), vertical_fov=1.0, width=8, height=8
        )
        light = Light(direction=(0, 0, -1), color=(1, 1, 1), sky=(0, 0, 0), ground=(0, 0, 0))
        layouts = tuple(
            Layout(
                key=EpisodeKey(task="drive", task_hash="map", seed=self.seed, index=index, variant=variant),
                physical=physical,
                visual=VisualLayout(light=light, cameras=(camera,)),
            )
            for variant in item.request.variants
        )
        yield Randomized(scene=item, layouts=layouts)

    def close(self) -> None:
        self.log.append("close randomize")


class PointRobot(Stage[Randomized[Map], Rendered[Map]]):
    """Drives from start to goal and renders the map around it, in one component."""

    name = "plan+render"

    @classmethod
    def create(cls, context: RunContext, settings: PointRobotSettings) -> Self:
        return cls(settings.log, view=settings.view, break_at=settings.break_at)

    def __init__(self, log: list[str], *, view: int = 1, break_at: int = -1) -> None:
        self.log, self.view, self.break_at = log, view, break_at

    def process(self, item: Randomized[Map]) -> Iterator[Rendered[Map]]:
        layout = item.layouts[0]
        self.log.append(f"plan+render {layout.key.index}")
        if layout.key.index == self.break_at:
            raise RuntimeError("a wheel came off")
        drawn = layout.physical.drawn
        cells = item.scene.assets.path(tuple(drawn["start"]), tuple(drawn["goal"]))
        trajectory = drive(cells or [tuple(drawn["start"])], arrived=bool(cells))
        for layout in item.layouts:
            views = self._views(item.scene.assets, cells) if cells else iter(())
            yield Rendered(scene=item.scene, layout=layout, trajectory=trajectory, labels=None, observations=views)

    def _views(self, world: Map, cells: list[Cell]) -> Iterator[Observation]:
        for step, (r, c) in enumerate(cells):
            self.log.append(f"view {step}")
            reach = range(-self.view, self.view + 1)
            rgb = np.array([[[255 * ((r + i, c + j) in world.free)] * 3 for j in reach] for i in reach], np.uint8)
            yield Observation(start=step, cameras={"map": frames(rgb[None])})

    def close(self) -> None:
        self.log.append("close plan+render")


def frames(rgb: np.ndarray) -> CameraFrames:
    """Return frames with only color."""
    flat = rgb.shape[:3]
    return CameraFrames(
        rgb=rgb,
        depth=np.zeros(flat, np.float32),
        instance=np.zeros(flat, np.uint8),
        semantic=np.zeros(flat, np.uint8),
        normals=np.zeros((*flat, 3), np.int8),
        boxes_2d=np.zeros((len(rgb), 0, 4), np.float32),
        visibility=np.zeros((len(rgb), 0), np.float32),
        intrinsics=np.eye(3),
        world_T_camera=np.tile(np.eye(4), (len(rgb), 1, 1)),
    )


def drive(cells: list[Cell], *, arrived: bool) -> Trajectory:
    """Return the trajectory of a point that visits cells."""
    positions = np.array(cells, float)
    body = np.concatenate([positions, np.zeros((len(cells), 1))], axis=1)[:, None]
    return Trajectory(
        rate=RATE,
        time=np.arange(len(cells)) / RATE,
        joint_names=("x", "y"),
        joint_positions=positions,
        joint_velocities=np.gradient(positions, axis=0) * RATE if len(cells) > 1 else np.zeros_like(positions),
        action_names=("x", "y"),
        actions=np.roll(positions, -1, axis=0),
        body_names=("robot",),
        body_positions=body,
        body_wxyz=np.tile([1.0, 0, 0, 0], (len(cells), 1, 1)),
        segments=(),
        outcome=Outcome(success=arrived, reason=Reason.NONE if arrived else Reason.NO_PATH),
        start=StartState(joint_positions=positions[0], joint_velocities=np.zeros(2)),
    )


class MemoryWriter(Writer):
    """Keeps episodes in a dictionary."""

    @classmethod
    def create(cls, context: RunContext, settings: MemorySettings) -> Self:
        return cls(settings.episodes, settings.log)

    def __init__(self, episodes: dict[str, list[Observation]], log: list[str]) -> None:
        self.episodes, self.log = episodes, log

    def process(self, item: Rendered) -> Iterator[Stored]:
        key = item.layout.key
        self.log.append(f"store {key.index}")
        self.episodes[key.id] = list(item.observations)
        outcome = item.trajectory.outcome
        steps = item.trajectory.step_count
        yield Stored(
            episode_id=key.id, index=key.index, variant=key.variant, attempt=0, outcome=outcome, step_count=steps
        )

    def close(self) -> None:
        self.log.append("close store")


register_component("load", "map_file", MapLoader, MapSettings)
register_component("randomize", "start_and_goal", StartAndGoal, LogSettings)
register_component("plan+render", "point_robot", PointRobot, PointRobotSettings)
register_component("store", "memory", MemoryWriter, MemorySettings)
