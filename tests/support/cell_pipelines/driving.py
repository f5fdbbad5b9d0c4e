"""The point robot for cells: its components record their work in a file, and faults can be configured."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np

from nimbus.datagen.episode.observation import Observation
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.progress import tick
from nimbus.datagen.stages import (
    LaneWatch,
    Planned,
    Planner,
    Randomized,
    Rendered,
    Renderer,
)
from tests.support.point_robot import Map, MapLoader, PointRobot, StartAndGoal, drive, frames


class YardSettings(StrictModel):
    """The log of all components."""

    events: str


class MapFileSettings(YardSettings):
    """The map, and the log."""

    map_file: str


class PlanSettings(YardSettings):
    """Episodes without a plan or with two plans, and the size of a plan's additional data."""

    nothing: int = -1
    twice: int = -1
    size: int = 0


class Events(list[str]):
    """The log of the components, in one file for all processes; messages can trigger faults.

    Args:
        path: The file; each line has a message and the process. The file ``.json`` beside it maps messages to faults,
            such as ``{"plan 3": "kill"}``; ``"kill x2"`` strikes the first two times.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = Path(path)
        self._mishaps: dict[str, str] = json.loads(self._path.with_suffix(".json").read_text())
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC, 0o644)

    def append(self, text: str) -> None:
        before = self._path.read_text().splitlines() if text in self._mishaps else []
        os.write(self._file, f"{text} @{os.getpid()}\n".encode())
        if text in self._mishaps:
            kind, _, times = self._mishaps[text].partition(" x")
            if sum(line.rsplit(" @")[0] == text for line in before) < int(times or 10**9):
                MISHAPS[kind]() if kind != "hold" else self._hold()

    def _hold(self) -> None:
        """Wait until a test lets it continue; send heartbeats, so the watchdog does not end it."""
        while not self._path.with_suffix(".go").exists():
            tick()
            time.sleep(0.01)


def _die(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def _raise(error: Exception) -> None:
    raise error


def _fail_on_bad_gpu() -> None:
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "GPU-bad":
        raise RuntimeError("CUDA error 719: unspecified launch failure")


def _leave_orphan() -> None:
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    _die(signal.SIGKILL)


def _lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def _lock_in_c() -> None:
    """Hang with the interpreter's lock held, where signals have no effect."""
    mutex, library = ctypes.create_string_buffer(64), ctypes.PyDLL(None)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)


def _run_in_circles() -> None:
    while True:
        tick()
        time.sleep(0.01)


_kept: list[bytearray] = []

MISHAPS = {
    "kill": lambda: _die(signal.SIGKILL),
    "segv": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(3),
    "stop": lambda: _die(signal.SIGSTOP),
    "gpu": _fail_on_bad_gpu,
    "raise": lambda: _raise(RuntimeError("a wheel came off")),
    "input": lambda: _raise(InputError("the map is upside down", where="yard.txt:1", instead="turn it round")),
    "lock": _lock,
    "livelock": _run_in_circles,
    "lock in C": _lock_in_c,
    "orphan": _leave_orphan,
    "leak": lambda: _kept.append(bytearray(os.urandom(1 << 10) * (60 << 10))),
    "nap": lambda: time.sleep(0.3),
    "sleep": lambda: time.sleep(3.0),
}


class YardLoader:
    """Makes the loader of the map."""

    @classmethod
    def create(cls, context: RunContext, settings: MapFileSettings) -> MapLoader:
        return MapLoader(Path(settings.map_file), Events(settings.events))


class YardRandomizer:
    """Makes the component that draws start and goal."""

    @classmethod
    def create(cls, context: RunContext, settings: YardSettings) -> StartAndGoal:
        return StartAndGoal(context.seed, Events(settings.events))


class YardRobot:
    """Robot that plans and renders in one component."""

    @classmethod
    def create(cls, context: RunContext, settings: YardSettings) -> PointRobot:
        return PlanAndRender(Events(settings.events))


class PlanAndRender(PointRobot):
    """The point robot, which also renders the stored images."""

    def process(self, item: Randomized[Map]) -> Iterator[Rendered[Map]]:
        if (stored := item.scene.request.plan) is None:
            yield from super().process(item)
            return
        self.log.append(f"stored plan {item.layouts[0].key.index}")
        cells = [(int(r), int(c)) for r, c in stored.trajectory.joint_positions]
        for layout in item.layouts:
            views = self._views(item.scene.assets, cells)
            yield Rendered(
                scene=item.scene, layout=layout, trajectory=stored.trajectory, labels=None, observations=views
            )


class Plan(Planner[Map]):
    """Finds the path; for configured episodes, no path or the same path twice."""

    @classmethod
    def create(cls, context: RunContext, settings: PlanSettings) -> Self:
        return cls(settings)

    def __init__(self, settings: PlanSettings) -> None:
        self.log = Events(settings.events)
        self.nothing, self.twice, self.size = settings.nothing, settings.twice, settings.size

    def process(self, item: Randomized[Map]) -> Iterator[Planned[Map]]:
        layout, stored = item.layouts[0], item.scene.request.plan
        index = layout.key.index
        if index == self.nothing:
            return
        if stored:
            self.log.append(f"stored plan {index}")
            yield Planned(scene=item.scene, layouts=item.layouts, trajectory=stored.trajectory, attempt=stored.attempt)
            return
        self.log.append(f"plan {index}")
        drawn = layout.physical.drawn
        cells = item.scene.assets.path(tuple(drawn["start"]), tuple(drawn["goal"]))
        trajectory = drive(cells or [tuple(drawn["start"])], arrived=bool(cells))
        if self.size:
            statistics = {"ballast": np.arange(self.size, dtype=float)}
            trajectory = replace(trajectory, plan_statistics=statistics)
        for _ in range(2 if index == self.twice else 1):
            yield Planned(scene=item.scene, layouts=item.layouts, trajectory=trajectory)


class YardMotions:
    """Motion planner that only records its queries."""

    def __init__(self, log: Events) -> None:
        self._log = log

    def plan_batch(self, queries: Sequence[SimpleNamespace]) -> list[str]:
        """Answer queries, each of which is the index of an episode."""
        self._log.append(f"batch of {len(queries)}")
        for query in queries:
            self._log.append(f"query {query.index}")
        return ["a motion"] * len(queries)


class PlanInLanes(Plan):
    """Finds paths in lockstep; an episode requests one to three motions."""

    @classmethod
    def lane_count(cls, context: RunContext) -> int:
        return 4

    def process(self, item: Randomized[Map]) -> Iterator[Planned[Map]]:
        motions, index = YardMotions(self.log), item.layouts[0].key.index
        for _ in range(1 + index % 3):
            motions.plan_batch([SimpleNamespace(index=index)])
        yield from super().process(item)

    def process_together(
        self, items: Iterator[Randomized[Map] | None], *, lanes: int, watch: LaneWatch[Map]
    ) -> Iterator[Planned[Map]]:
        # Here, because Isaac Sim's Python, which imports this file, must not load the planner's libraries.
        from nimbus.datagen.execute.lockstep import Lane, Lockstep

        motions = cast(Any, YardMotions(self.log))

        def attempts(item: Randomized[Map], lane: Lane) -> Iterator[Planned[Map]]:
            index = item.layouts[0].key.index
            for _ in range(1 + index % 3):
                lane.exchange(motions, cast(Any, SimpleNamespace(index=index)))
            yield from super(PlanInLanes, self).process(item)

        yield from Lockstep(attempts, lanes=lanes, watch=watch).run(items)


class Render(Renderer[Map]):
    """Renders the map around the robot, five steps at a time."""

    @classmethod
    def create(cls, context: RunContext, settings: YardSettings) -> Self:
        return cls(settings.events)

    def __init__(self, events: str) -> None:
        self.log = Events(events)

    def process(self, item: Planned[Map]) -> Iterator[Rendered[Map]]:
        for layout in item.layouts:
            self.log.append(f"render {layout.key.index}")
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=None,
                observations=self._views(item, layout.key.index),
                attempt=item.attempt,
                final=item.final,
            )

    def _views(self, item: Planned[Map], index: int) -> Iterator[Observation]:
        free, cells = set(item.scene.assets.free), item.trajectory.joint_positions.astype(int)
        reach = range(-4, 4)
        for start in range(0, len(cells), 5):
            self.log.append(f"view {index} {start}")
            rgb = [
                [[[255 * ((r + i, c + j) in free)] * 3 for j in reach] for i in reach]
                for r, c in cells[start : start + 5].tolist()
            ]
            yield Observation(start=start, cameras={"map": frames(np.array(rgb, np.uint8))})


register_component("load", "yard", YardLoader, MapFileSettings)
register_component("randomize", "yard", YardRandomizer, YardSettings)
register_component("plan+render", "yard", YardRobot, YardSettings)
register_component("plan", "yard", Plan, PlanSettings)
register_component("render", "yard", Render, YardSettings)
register_component("plan", "lanes", PlanInLanes, PlanSettings)
