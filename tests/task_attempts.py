"""First attempts at the tasks that come with Nimbus: planned and executed in physics, nothing rendered."""

from __future__ import annotations

from functools import lru_cache, partial

from nimbus.datagen.discover import discover_components
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.streams import stream
from nimbus.datagen.task import Task, load_task
from nimbus.datagen.trajectory import Trajectory
from nimbus.datagen.usd.loader import SceneAssets, load_assets

discover_components()


@lru_cache
def _loaded(name: str) -> tuple[Task, SceneAssets]:
    task = load_task(name)
    return task, load_assets(task)


def attempt(name: str, *, index: int = 0) -> Trajectory:
    """The first attempt at one layout of seed 0, as a run makes it."""
    task, assets = _loaded(name)
    layout = draw_physical(task, assets, seed=0, index=index)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    streams = partial(stream, 0, index, "attempt", 0)
    return run_attempt(task, simulation, layout, streams=streams, planner="ompl")


def successes(name: str, *, wanted: int = 1, layouts: int = 2) -> int:
    """How many of the first layouts succeed at the first attempt; stops when there are enough."""
    count = 0
    for index in range(layouts):
        count += attempt(name, index=index).outcome.success
        if count == wanted:
            break
    return count
