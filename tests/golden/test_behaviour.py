"""Golden values of skills, conditions and composites, executed in a workcell without physics."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import StartState
from nimbus.datagen.execute.articulation import FurthestParts
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks.plugins import discover, discover_components
from nimbus.datagen.tasks.references import build_environment
from nimbus.datagen.tasks.scene_assets import ReachMap, SceneAssets
from nimbus.datagen.tasks.statements import SkillFailure, Statement, each
from nimbus.datagen.tasks.steps import Scope, walk
from nimbus.datagen.tasks.task import Task, load_task, parse_task
from nimbus.datagen.usd.stage import read_stage
from tests.golden.puppet import PuppetCell, PuppetPerformer, PuppetPlanner, PuppetSimulation
from tests.golden.values import GoldenFile, digest, sketch
from tests.golden.versions import built_in, version_of

discover()
discover_components()

OWN = """\
robot: panda
scene: table
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.3]}
objects:
  items: {library: blocks, kinds: [red_cube], count: 2, region: start}
steps: STEPS
success: SUCCESS
instructions: ["Move."]
"""
MOVES = OWN.replace(
    "STEPS", "[move: [0.5, 0.1, 0.3], go_to_pose: {position: [0.4, -0.2, 0.3]}, gripper: closed, wait: 0.2]"
)
TASKS: dict[str, tuple[str, ...]] = {
    "conveyor_pick": ("catch", "place", "on"),
    "follow_thing": ("follow",),
    "close_drawer": ("close", "closed"),
    "open_drawer": ("open", "home", "open_by"),
    "fold_cloth": ("fold", "folded"),
    "route_cable": ("route", "routed"),
    "hang_cloth": ("drape", "draped"),
    "flip_block": ("flip", "turned_by", "at_rest", "gripper_clear"),
    "handover_block": ("handover", "pick"),
    "hang_ring": ("hang", "near"),
    "hold_and_stack": ("hold", "stacked"),
    "insert_peg": ("insert", "inserted", "upright"),
    "lift_tray_together": ("lift_together", "held"),
    "pick_and_place": ("inside", "fixtures_unmoved"),
    "place_beside": ("beside", "not_moved"),
    "pour_beads": ("pour", "poured_fraction"),
    "press_button": ("press", "pressed"),
    "pull_block": ("pull", "moved_by"),
    "push_to_region": ("push",),
    "rotate_block": ("rotate",),
    "shake_can": ("shake", "scan", "nothing_on_floor"),
    "slide_block": ("slide",),
    "sweep_blocks": ("sweep",),
    "tiago_carry": ("drive_to",),
    "turn_knob": ("turn",),
    "wipe_table": ("wipe", "wiped"),
    "by demonstration": ("do",),
    "": ("move", "go_to_pose", "go_to_joints", "gripper", "wait", "aligned", "at_pose"),
}
"""Components that are tested in each task; the empty name and ``by demonstration`` refer to the task above."""
EVERYWHERE = ReachMap((-10.0, -10.0), np.ones((400, 400), dtype=bool))
TASK_OF = {component: name for name, components in TASKS.items() for component in components}


@dataclass(frozen=True)
class Done:
    """A task executed in a workcell without physics."""

    task: Task
    cell: PuppetCell
    performer: PuppetPerformer
    start: Any
    """Joint positions before the first step."""


def perform(task: Task, simulation: PuppetSimulation | None = None) -> Done:
    """Execute the steps of a task in its first layout; a given simulation must have loaded this layout."""
    simulation = simulation or simulate(task)
    layout = draw_physical(task, opened(task), seed=0, index=0)
    start = simulation.data.qpos.copy()
    planners: Any = {name: PuppetPlanner() for name in simulation.robot.arm_names}
    cell = PuppetCell(simulation, planners, layout, streams=partial(generator, 0), regions=task.regions)
    names = build_environment(objects=layout.objects, fixtures=cell.stage.fixtures.values(), regions=task.regions)
    scope = Scope(names, layout.drawn.get("choices", {}))
    performer = PuppetPerformer(cell, scope)
    try:
        performer.do(task.steps, scope)
    except SkillFailure as failure:
        performer.ended.append(("task", str(failure.reason)))
    return Done(task, cell, performer, start)


def simulate(task: Task) -> PuppetSimulation:
    """Load the first layout of a task."""
    assets = opened(task)
    simulation = PuppetSimulation(assets.stage, assets.robot, rate=task.rate)
    simulation.load(draw_physical(task, assets, seed=0, index=0))
    return simulation


def opened(task: Task) -> SceneAssets:
    """Open a task's scene with every region within reach; ``test_layouts`` has the golden value of reach."""
    settings = [*task.objects.values(), *task.randomize.values()]
    names = {name for one in settings for name in (getattr(one, "library", ""), *getattr(one, "libraries", ())) if name}
    return SceneAssets(
        task=task,
        stage=read_stage(task.scene),
        robot=load_robot(task.robot),
        libraries={name: open_library(name) for name in names},
        reach=dict.fromkeys(task.regions, EVERYWHERE),
    )


@lru_cache
def done(name: str) -> Done:
    """Return a shipped task, or the one above, after its execution."""
    joints = "go_to_joints: [0, -0.5, 0, -2, 0, 1.6, 0.7]"
    own = MOVES.replace("wait: 0.2]", f"wait: 0.2, {joints}]")
    if name == "by demonstration":
        demo = Path(__file__).parent / "inputs/take_block.demo.json"
        own, name = OWN.replace("STEPS", f"[do: {{demo: {demo}, on: 'items[0]'}}]"), ""
    conditions = "[aligned: 'items[0]', at_pose: {object: 'items[0]', at: start.center, within: 8 cm}]"
    return perform(load_task(name) if name else parse_task(own.replace("SUCCESS", conditions)))


def trace_of(made: Done, skill: str) -> list[Any]:
    """Return how a skill's steps ended, their phases, and a sketch of the commands."""
    mine = [(phase, numbers) for name, phase, numbers in made.cell.trace if name == skill]
    phases = [phase for phase, _ in itertools.groupby(mine, key=lambda entry: entry[0])]
    endings = sorted({ending for name, ending in made.performer.ended if name == skill})
    counted = [f"{phase}*{phases.count(phase)}" for phase in dict.fromkeys(phases)]
    return [" ".join(endings), ",".join(counted), *sketch([numbers for _, numbers in mine])]


@pytest.mark.parametrize("name", built_in("skill"))
def test_skill_moves_as_its_version_says(golden: GoldenFile, name: str) -> None:
    made = done(TASK_OF[name])
    before = {step.name: None for step, _ in walk(made.task.steps) if step.name != name}
    others = [version for other in before for version in version_of("skill", other).items()]
    versions = version_of("skill", name) | version_of("plan", "skills") | dict(others)
    golden.check(f"skill {name}", trace_of(made, name), versions, tolerance=5e-3)


class States:
    """States of an executed task's world for tests of a condition: objects are moved, rotated, opened or in motion.

    Args:
        made: The task.
        condition: The condition, with names of things in place of references.
    """

    def __init__(self, made: Done, condition: Statement) -> None:
        self._made, self._cell = made, made.cell
        self._model, self._data = made.cell.simulation.model, made.cell.simulation.data
        named = [getattr(condition, name) for name in condition.references()]
        every = [each(value) for value in named if value is not None]
        self._moved, self._other = (every[0] if every else ()), (every[1][0] if len(every) > 1 else "")
        arm = {joint for one in self._cell.robot.arms for joint in one.arm.joints}
        joints = [self._model.joint(index) for index in range(self._model.njnt)]
        self._free = [joint for joint in joints if self._model.jnt_type[joint.id] == mujoco.mjtJoint.mjJNT_FREE]
        self._hinges = [joint for joint in joints if joint not in self._free and joint.name not in arm]

    def __iter__(self) -> Iterator[None]:
        """Set the states one after the other."""
        yield self._reset()
        for step in range(1, 9):
            yield self._displace((0.012 * step, 0.007 * step, 0.002), 0.15 * step, (0.3, 0.0, 1.0))
        for step in range(1, 9):
            yield self._displace((-0.02 * step, 0.0, 0.0), 0.25 * step, (0.0, 0.0, 1.0))
        for step in range(1, 5):
            yield self._displace((0.0, 0.3, -0.25 * step), 0.0, (0.0, 0.0, 1.0))
        for step in range(8):
            yield self._open(step / 7)
        for speed in (0.005, 0.015, 0.019, 0.021, 0.05):
            yield self._displace((0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 1.0), speed=speed)
        for height, offset in itertools.product((1.0, 0.5, 0.0), (0.0, 0.01, 0.02, 0.04, 0.08, 0.16)):
            yield self._put(height, offset)

    def _reset(self) -> None:
        self._data.qpos[:], self._data.qvel[:] = self._made.start, 0.0
        self._settle()

    def _settle(self) -> None:
        self._cell.puppet.refresh()
        mujoco.mj_comVel(self._model, self._data)
        self._cell._furthest.observe()

    def _displace(
        self, shift: tuple[float, float, float], angle: float, axis: tuple[float, float, float], *, speed: float = 0.0
    ) -> None:
        self._reset()
        turn, turned = np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(turn, np.array(axis) / np.linalg.norm(axis), angle)
        for joint in self._free:
            address, degree = int(joint.qposadr[0]), int(joint.dofadr[0])
            self._data.qpos[address : address + 3] += shift
            mujoco.mju_mulQuat(turned, turn, self._data.qpos[address + 3 : address + 7])
            self._data.qpos[address + 3 : address + 7] = turned
            self._data.qvel[degree] = speed
        self._settle()

    def _open(self, fraction: float) -> None:
        self._reset()
        for joint in self._hinges:
            low, high = self._model.jnt_range[joint.id]
            self._data.qpos[joint.qposadr[0]] = low + fraction * (high - low)
        self._settle()

    def _put(self, height: float, offset: float) -> None:
        """Put the first object into, onto or beside the other one, or several objects onto each other; of many objects,
        some stay in place.
        """
        self._reset()
        count = max(1, round(len(self._moved) * (1.0 - 2.0 * offset)))
        below = self._bounds(self._other) if self._other else None
        for name in self._moved[:count]:
            lower, upper = self._bounds(name)
            if below is not None and name in self._cell.objects and not self._cell.objects[name].anchored:
                goal = below.mean(axis=0)
                goal[0] += offset
                goal[2] = below[0, 2] + height * (below[1, 2] - below[0, 2]) + (upper[2] - lower[2]) / 2 - 0.0005
                if sheet := self._cell.model(name).sheet:  # the positions of its vertices are the last ones
                    self._data.qpos[-3 * sheet.count :].reshape(-1, 3)[:] += goal - (lower + upper) / 2
                else:
                    address = self._cell.position_address(name)
                    self._data.qpos[address : address + 3] += goal - (lower + upper) / 2
                self._settle()
            if not self._other:
                below = np.array(self._bounds(name))

    def _bounds(self, name: str) -> np.ndarray:
        """Return the lower and the upper corner (2, 3) of an object, a fixture or a region, in the world [m]."""
        if name not in self._cell.regions:
            return np.array(self._cell.bounds(name))
        region, top = self._cell.regions[name], self._cell.stage.surfaces["table"].upper[2]
        middle, half = np.array(region.center), np.array(region.size) / 2
        return np.array([[*(middle - half), top], [*(middle + half), top]])


@pytest.mark.parametrize("name", built_in("predicate"))
def test_condition_judges_as_its_version_says(golden: GoldenFile, name: str) -> None:
    made = done(TASK_OF[name])
    made.cell._furthest = FurthestParts(made.cell)
    step, loops = next((step, loops) for step, loops in walk(made.task.success) if step.name == name)
    scope = made.performer.scope
    for loop in loops:
        scope = next(loop.scopes(scope))
    found, details = [], []
    for _ in States(made, made.performer.resolved(step.statement, scope)):
        failure = made.performer.failure((step,), scope)
        found.append(str(failure.reason) if failure else "holds")
        details.append(failure.detail if failure else "")
    runs = [f"{reason}*{len(list(group))}" for reason, group in itertools.groupby(found)]
    golden.check(f"predicate {name}", [" ".join(runs), digest(details)], version_of("predicate", name))


COMPOSITES = {
    "for": "[for item in items: [move: 'above(item, 20 cm)', wait: 0.1]]",
    "choose": "[choose: [home, wait: 0.2, gripper: closed]]",
    "choose_one": "[choose one in items: [move: 'above(one, 20 cm)']]",
    "if": "[{if: {upright: 'items[0]'}, then: home, else: {wait: 0.1}}, {if: {at_pose: [0, 0, 0]}, then: home}]",
    "repeat": "[{repeat: {move: 'tool - [0, 0, 5 cm]'}, until: {at_pose: {at: [0, 0, 0.2], axes: z, within: 3 cm}}, "
    "at_most: 5}, {repeat: {wait: 0.1}, times: 3}]",
    "try": "[{try: [home, move: [2, 0, 0]], recover: [{on: no_ik, do: [wait: 0.1, move: [2, 0, 0]]}, [wait: 0.3]], "
    "at_most: 3}]",
    "retry": "[{try: [gripper: closed, move: [2, 0, 0]], recover: [home, retry], at_most: 2}]",
    "give_up": "[{try: {move: [2, 0, 0]}, recover: [give_up]}, home]",
    "parallel": "[parallel: {left: [wait: 0.2, home], right: [home]}]",
    "any": "[home, {if: {any: [at_pose: [0, 0, 0], upright: 'items[0]']}, then: {wait: 0.1}}]",
    "all": "[home, {if: {all: [at_pose: [0, 0, 0], upright: 'items[0]']}, then: {wait: 0.1}, else: {wait: 0.3}}]",
    "not": "[home, {if: {not: {at_pose: [0, 0, 0]}}, then: {wait: 0.1}}]",
}
"""Steps by composite."""


def own_text(steps: str, *, robot: str = "panda") -> str:
    """Return the task above with other steps."""
    text = OWN.replace("STEPS", steps).replace("SUCCESS", "[at_rest: 'items[0]']")
    return text.replace("robot: panda", f"robot: {robot}")


@lru_cache
def own_world(robot: str) -> tuple[PuppetSimulation, StartState]:
    """Return the first layout of the task above, which is equal for all steps, and its start state."""
    simulation = simulate(parse_task(own_text("[home]", robot=robot)))
    return simulation, simulation.state()


@pytest.mark.parametrize("name", built_in("composite"))
def test_composite_does_as_its_version_says(golden: GoldenFile, name: str) -> None:
    robot = "dual_panda" if name == "parallel" else "panda"
    simulation, start = own_world(robot)
    simulation.restore(start)
    made = perform(parse_task(own_text(COMPOSITES[name], robot=robot)), simulation)
    done_steps = [" ".join(entry) for entry in made.performer.ended]
    value = [", ".join(done_steps), *sketch([numbers for _, _, numbers in made.cell.trace])]
    golden.check(f"composite {name}", value, version_of("composite", name), tolerance=5e-3)
