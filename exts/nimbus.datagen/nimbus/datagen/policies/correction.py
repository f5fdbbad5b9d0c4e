"""Plan stage of corrections: a policy's actions up to a drawn step, followed by the task's skills (DAgger).

The rollout is replayed from its start, so that the simulator continues from its full state, including the last two
commands. The result is one episode with rows of the policy, which are labeled, followed by rows of the demonstrator. It
can be replayed like any other episode.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.planner import begin_attempt, perform
from nimbus.datagen.execute.resuming import MOST_PLANS, STOP, STOP_PERIODS, ResumedPerformer, find_unmet, free_hands
from nimbus.datagen.files.asset_folders import check_below
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.stages import Planned, Planner, Randomized
from nimbus.datagen.store.episode_file.content_check import content_hash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.tasks.task import Task

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

POLICY = "policy"
"""Skill of the rows in which the policy acts and the arm comes to rest; they are not a demonstration."""
_SHARE = (0.08, 0.6)
"""Range in which the demonstrator takes over, as fractions of the rollout. A failed rollout has the largest number of
steps, twice the longest demonstration: after this range, it shows mostly a policy that waits."""


class CorrectionSettings(StrictModel):
    """Settings of :class:`CorrectionPlanner`."""

    rollouts: str = Field(description="dataset of a policy's rollouts, failures kept, or a folder with several")
    attempts: Annotated[int, Field(ge=1, le=100)] = 3

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with a path that begins in the folder of the pipeline file."""
        return self.model_copy(update={"rollouts": str(folder / self.rollouts)})


class CorrectionPlanner(Planner["SceneAssets"]):
    """Planner that demonstrates the task from states that a policy reached in failed rollouts.

    Args:
        task: The task.
        rollouts: Dataset of the rollouts, with their failures, or a folder with several.
        planner: Registered name of the motion planner.
        attempts: Largest number of attempts at one layout; each takes over at another step.
    """

    @classmethod
    def create(cls, context: RunContext, settings: CorrectionSettings) -> Self:
        """Make the planner of a run."""
        return cls(context.need_task(), Path(settings.rollouts), context.planner, settings.attempts)

    def __init__(self, task: Task, rollouts: Path, planner: str = "ompl", attempts: int = 3) -> None:
        self._task, self._rollouts, self._planner, self._attempts = task, rollouts, planner, attempts
        self._simulation: NewtonSimulation | None = None

    def process(self, item: Randomized[SceneAssets]) -> Iterator[Planned[SceneAssets]]:
        """Yield attempts at one layout until one succeeds.

        Raises:
            InputError: There is no failed rollout of the layout.
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
    found = sorted(folder.rglob(f"failures/{episode_id}.a*.hdf5"))
    if not found:
        raise InputError(
            f"no failed rollout {episode_id}", where=str(folder), instead="give the dataset of the rollouts"
        )
    check_below(found[-1], folder)
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
    """Replay a policy's actions, then run the remaining steps of the task from there.

    Args:
        task: The task.
        simulation: Simulation of its scene.
        layout: The physical layout.
        played: (T, A) actions of the policy [rad or m].
        streams: Random streams of this attempt by address.
        planner: Registered name of the motion planner.
    """
    began = begin_attempt(task, simulation, layout, streams=streams, planner=planner)
    cell, scope = began.cell, began.scope
    cell.limit_plans(MOST_PLANS)
    unmet = find_unmet(task, cell, scope)
    with cell.step(POLICY, ""):
        cell.begin(POLICY)
        for action in played:
            cell.repeat(action, executed=action if task.execution_noise else None, checked=False)
        cell.begin(STOP)
        cell.stop(STOP_PERIODS)
    doing = ResumedPerformer(cell, scope, done=unmet - find_unmet(task, cell, scope))
    return perform(task, doing, prepare=partial(free_hands, cell))
