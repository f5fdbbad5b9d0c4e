"""The Plan stage of corrections: what a policy did up to a drawn step, and from that state the task's skills (DAgger).

The rollout is played again from its start, so that the simulator goes on with all that it has, its last two commands
included. What is stored is one episode: rows of the policy, labelled so, then rows of the demonstrator. It replays like
any other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome, Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.interpreter import TaskJudge, TaskPerformer
from nimbus.datagen.execute.motions.setting_down import retreat
from nimbus.datagen.execute.planner import begin_attempt, perform
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.stages import Planned, Planner, Randomized
from nimbus.datagen.store.episode_file.content_check import content_hash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.tasks.steps import Scope, Step, Steps
from nimbus.datagen.tasks.task import Task

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

POLICY, STOP, FREE = "policy", "stop", "free"
"""Labels of rows: the policy acts and the arm comes to rest, which is no demonstration; the hand lets go."""
_STOP_PERIODS = 3
"""Record periods in which an arm comes to rest: its reference follows two periods behind its command."""
_SHARE = (0.08, 0.6)
"""Part of a rollout in which the demonstrator takes over. A rollout that failed has the limit of steps, which is twice
the longest demonstration: by then everything that counts has happened, and later rows show a policy that waits."""
_MOST_PLANS = 40
"""Plans of an arm in an attempt at most. A correction takes 3 to 8; for a cube that is held aslant `place` asked for a
thousand, which took 186 s of the CPU."""
_IN_THE_AIR = 0.02
"""[m] What is held so far above the height at which it stood is carried on; below, it is let go and picked again."""


class CorrectionSettings(StrictModel):
    """Settings of :class:`CorrectionPlanner`."""

    rollouts: str = Field(description="dataset of a policy's rollouts, failures kept")
    attempts: Annotated[int, Field(ge=1, le=100)] = 3


class CorrectionPlanner(Planner["SceneAssets"]):
    """Shows what a policy should have done, from a state that it came to in a rollout that failed.

    Args:
        task: The task.
        rollouts: Dataset of the rollouts, with their failures.
        planner: Registered name of the motion planner.
        attempts: Attempts at one layout at most; each takes over at a step of its own.
    """

    @classmethod
    def create(cls, context: RunContext, settings: CorrectionSettings) -> Self:
        """Make the planner of a run."""
        return cls(context.need_task(), Path(settings.rollouts), context.planner, settings.attempts)

    def __init__(self, task: Task, rollouts: Path, planner: str = "ompl", attempts: int = 3) -> None:
        self._task, self._rollouts, self._planner, self._attempts = task, rollouts, planner, attempts
        self._simulation: NewtonSimulation | None = None

    def process(self, item: Randomized[SceneAssets]) -> Iterator[Planned[SceneAssets]]:
        """Attempts at one layout until one succeeds.

        Raises:
            InputError: There is no failed rollout of it.
        """
        assets, layout = item.scene.assets, item.layouts[0]
        if self._simulation is None:
            self._simulation = NewtonSimulation(assets.stage, assets.robot, rate=self._task.rate)
        rollout = _failed_rollout(self._rollouts, layout.key.id)
        with EpisodeFile(rollout) as stored:
            played, digest = stored.trajectory().actions, content_hash(stored).hexdigest()
        for attempt in range(self._attempts):
            begin = time.process_time()
            streams = partial(layout.key.generator, "correction", attempt)
            low, high = (max(1, round(share * len(played))) for share in _SHARE)
            step = int(streams("step").integers(low, high + 1))
            trajectory = run_correction(
                self._task, self._simulation, layout.physical, played[:step], streams=streams, planner=self._planner
            )
            final = trajectory.outcome.success or attempt == self._attempts - 1
            own = {"rollout": layout.key.id, "rollout_hash": digest, "step": str(step)}
            provenance: Provenance = item.scene.provenance
            provenance = replace(provenance, ancestors=provenance.ancestors | own)
            yield Planned(
                scene=replace(item.scene, provenance=provenance),
                layouts=item.layouts,
                trajectory=trajectory,
                attempt=attempt,
                final=final,
                times={"plan": time.process_time() - begin},
            )
            if final:
                return


register_component("plan", "correction", CorrectionPlanner, CorrectionSettings)


def _failed_rollout(folder: Path, episode_id: str) -> Path:
    found = sorted((folder / "failures").glob(f"{episode_id}.a*.hdf5"))
    if not found:
        raise InputError(f"no failed rollout {episode_id}", where=str(folder), instead="give the folder of them")
    return found[-1]


def run_correction(
    task: Task,
    simulation: NewtonSimulation,
    layout: PhysicalLayout,
    played: FloatArray,
    *,
    streams: Streams,
    planner: str,
) -> Trajectory:
    """Play what a policy did, then do the task's steps from there; what is done already is left out.

    Args:
        task: The task.
        simulation: Of its scene.
        layout: The physical layout.
        played: (T, A) actions of the policy [rad or m].
        streams: Random streams of this attempt by address.
        planner: Registered name of the motion planner.
    """
    began = begin_attempt(task, simulation, layout, streams=streams, planner=planner)
    cell, scope = began.cell, began.scope
    for arm in cell.arms.values():
        arm.most_plans = _MOST_PLANS
    unmet = find_unmet(task, cell, scope)
    with cell.step(POLICY, ""):
        cell.begin(POLICY)
        for action in played:
            cell.repeat(action, executed=action if task.execution_noise else None, checked=False)
        cell.begin(STOP)
        cell.stop(_STOP_PERIODS)
    doing = ResumedPerformer(cell, scope, done=unmet - find_unmet(task, cell, scope))
    return perform(task, doing, prepare=partial(_free_hands, cell))


def find_unmet(task: Task, cell: SimulatedWorkcell, scope: Scope) -> set[str]:
    """Names of the things of which a condition of success does not hold now."""
    judge = _UnmetJudge(cell, scope)
    judge.failure(task.success, scope)
    return judge.names


class _UnmetJudge(TaskJudge):
    """Judges all conditions, and goes on after those that do not hold."""

    def __init__(self, world: SimulatedWorkcell, scope: Scope) -> None:
        super().__init__(world, scope)
        self.names: set[str] = set()

    def failure(self, conditions: Steps, scope: Scope) -> Outcome | None:
        for condition in conditions:
            found = super().failure((condition,), scope)
            if found is not None and isinstance(condition, Step):
                self.names.add(self._target(condition, scope))
        return None

    def _target(self, condition: Step, scope: Scope) -> str:
        statement = self.resolved(condition.statement, scope)
        value = getattr(statement, statement.main) if statement.main else ""
        return value if isinstance(value, str) else ""


class ResumedPerformer(TaskPerformer):
    """Does a task's steps in a scene in which some have been done.

    Steps with a thing in ``done`` are left out, and so is taking what the hand holds already.

    Args:
        cell: The scene.
        scope: Meaning of the names of the task.
        done: Things of which all conditions hold, and did not at the start of the episode.
    """

    def __init__(self, cell: SimulatedWorkcell, scope: Scope, *, done: set[str]) -> None:
        super().__init__(cell, scope)
        self._done = done

    def do(self, steps: Steps, scope: Scope) -> None:
        """Do steps one after another.

        Raises:
            SkillFailure: One cannot be done.
        """
        for step in steps:
            if not self._is_done(step, scope):
                super().do((step,), scope)

    def _is_done(self, step: object, scope: Scope) -> bool:
        if not isinstance(step, Step) or not step.statement.main:
            return False
        skill = self.resolved(step.statement, scope)
        thing = getattr(skill, skill.main)
        return thing in self._done or (skill.hand == "takes" and thing == self.cell.held)


def _free_hands(cell: SimulatedWorkcell) -> None:
    """Hold on to what is in the air; else open and go back from what is touched.

    Raises:
        SkillFailure: There is no way back.
    """
    for arm in cell.arms.values():
        with arm.step(FREE, ""):
            touched = arm.touched_by_gripper()
            held = next(filter(arm.is_gripping, sorted(touched & set(arm.objects))), None)
            if held and (arm.pose(held) - arm.start_poses[held])[2, 3] > _IN_THE_AIR:
                arm.meter.held = arm.meter.closing_on = held
                arm.carry()
                continue
            arm.begin("open")
            if not np.isclose(arm.opening, arm.robot.gripper.open):
                arm.open()
            if touched:
                arm.begin("retreat")
                retreat(arm, next(iter(sorted(touched))), touching=touched, among_released=False)
