"""First attempts at shipped tasks: planned and executed in physics, not rendered."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.task import Task, load_task

discover_components()


_ELSEWHERE = """robot: {robot}
scene: table
regions:
  start: {{on: table, center: [{x}, 0.1], size: [0.12, 0.12]}}
  goal: {{on: table, center: [{x}, -0.12], size: [0.12, 0.12]}}
objects:
  block: {{library: blocks, kinds: [red_cube, blue_cube], region: start}}
steps: [pick: block, place: {{object: block, on: goal}}]
success: [on: {{object: block, support: goal}}, gripper_clear]
instructions: ["Put {{block}} elsewhere."]
"""


@lru_cache
def _loaded(task_file: str | Path, skills: tuple[Path, ...]) -> tuple[Task, SceneAssets]:
    task = load_task(task_file, skill_folders=skills)
    return task, load_assets(task)


@lru_cache
def attempt(task_file: str | Path, *, index: int = 0, skills: tuple[Path, ...] = ()) -> Trajectory:
    """Return the first attempt at one layout of seed 0, as in a run; it is shared, for reading only.

    Args:
        task_file: Path, or the name of a shipped task.
        index: Index of the layout.
        skills: Folders of a user's skills.
    """
    task, assets = _loaded(task_file, skills)
    layout = draw_physical(task, assets, seed=0, index=index)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    streams = partial(generator, 0, index, "attempt", 0)
    return run_attempt(task, simulation, layout, streams=streams, planner="ompl")


def first_success(task_file: str | Path, *, layouts: int = 3, skills: tuple[Path, ...] = ()) -> Trajectory:
    """Return the first successful attempt over some layouts; raise with all outcomes if none succeeds."""
    outcomes = []
    for index in range(layouts):
        tried = attempt(task_file, index=index, skills=skills)
        if tried.outcome.success:
            return tried
        outcomes.append(tried.outcome)
    raise AssertionError(outcomes)


def elsewhere(robot: str, x: float, folder: Path) -> Trajectory:
    """Let a robot pick a block ``x`` ahead [m] and place it 22 cm to the right; return the first success of three.

    Args:
        robot: Name or path of the robot.
        x: Distance of the regions' centers from the scene's mount for robots [m].
        folder: Folder for the task file.
    """
    path = folder / "elsewhere.yaml"
    path.write_text(_ELSEWHERE.format(robot=robot, x=x))
    return first_success(path)


def successes(name: str, *, wanted: int = 1, layouts: int = 2) -> int:
    """Count the first layouts that succeed at the first attempt; stop when there are enough."""
    count = 0
    for index in range(layouts):
        count += attempt(name, index=index).outcome.success
        if count == wanted:
            break
    return count
