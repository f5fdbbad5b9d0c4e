"""Replay of stored actions in physics, from an episode's file alone, and comparison of the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout, check_object_count
from nimbus.datagen.episode.trajectory import DISTURBED, TELEOPERATION, Outcome, Trajectory
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.execute.interpreter import performer
from nimbus.datagen.execute.path_planner import drive_again
from nimbus.datagen.execute.planner import evaluate_success, make_motion_planner
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.load.engines import check_engine
from nimbus.datagen.load.navigation_loader import open_navigation
from nimbus.datagen.policies.correction import POLICY
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.datagen.tasks.stored_files import compare_assets, hash_stored_assets, without_picture_hashes
from nimbus.datagen.tasks.task import NavigationTask, Task
from nimbus.datagen.usd.stage import read_stage

_MOST_CONTACTS = 4_000
"""Limit on the contacts of a step, because a layout may come from an untrusted file."""
_MOST_WORK, _LINEAR = 2_000_000_000, 100
"""Limit on the work of physics, and the work for each contact and degree of freedom in an evaluation of contacts; the
solver adds the square of the contacts. A unit takes up to 0.6 µs, and an episode with a cloth has 57 million."""

FedActions = Literal["executed", "recorded"]
"""Actions for a replay: the ``executed`` ones, with execution noise, or the commands ``recorded`` for training."""


class _ForeignLayout(Exception):
    """Raised for a layout that does not belong to its robot or its trajectory."""


class _TooMuchWork(Exception):
    """Raised for a layout whose physics would take hours."""


class _LimitedSimulation(NewtonSimulation):
    """Physics of a layout from an untrusted file."""

    _work = 0
    """Units of work, see :data:`_MOST_WORK`."""

    def advance(self, action: FloatArray, *, observe: Callable[[], None] | None = None) -> None:
        """Run physics for one record period.

        Args:
            action: (A,) commanded positions [rad, m].
            observe: Called several times during the period.

        Raises:
            _TooMuchWork: There are too many contacts, or the sum over all periods is too large.
        """

        def measure() -> None:
            self._measure()
            if observe:
                observe()

        super().advance(action, observe=measure)

    def _measure(self) -> None:
        """Count the steps up to the next call."""
        contacts = self.data.ncon
        self._work += contacts**2 + _LINEAR * (contacts + self.model.nv)
        if contacts > _MOST_CONTACTS:
            raise _TooMuchWork(f"{contacts} contacts in a step; the limit is {_MOST_CONTACTS}")
        if self._work > _MOST_WORK:
            raise _TooMuchWork(f"its contacts need more than {_MOST_WORK:,} units of work")


def replay_actions(
    task: Task, layout: PhysicalLayout, stored: Trajectory, *, actions: FedActions = "executed"
) -> Trajectory:
    """Execute stored actions open loop from the stored start, and evaluate the task's conditions at the end.

    Args:
        task: The task that the trajectory was made for.
        layout: Physical layout of the episode.
        stored: The trajectory; its actions and its start state are used.
        actions: ``executed`` reproduces the stored states to the last bit; ``recorded`` omits execution noise.

    Raises:
        _ForeignLayout: The layout names other joints than the robot's, or other bodies than the trajectory's.
        _TooMuchWork: Its physics would take hours.
    """
    simulation = _LimitedSimulation(read_stage(task.scene), load_robot(task.robot), rate=stored.rate)
    if odd := sorted(layout.robot.start.keys() - {*simulation.robot.joint_names}):
        raise _ForeignLayout(f"its layout is of another robot: robot {simulation.robot.name} has no joint {odd[0]!a}")
    simulation.load(layout)
    if odd := sorted({*simulation.body_names} ^ {*stored.body_names}):
        raise _ForeignLayout(f"its layout and its trajectory have different bodies, for example {odd[0]!a}")
    simulation.restore(stored.start)
    planner = make_motion_planner("ompl", simulation.robot, rate=stored.rate)
    cell = SimulatedWorkcell(simulation, planner, layout, streams=partial(generator, 0), regions=task.regions)
    try:
        noisy = stored.executed_actions if actions == "executed" else None
        rows = zip(stored.actions, repeat(None) if noisy is None else noisy, strict=noisy is not None)
        unchecked = {
            row: part.skill
            for part in stored.segments
            if part.skill in (POLICY, DISTURBED, TELEOPERATION)
            for row in range(part.start, part.stop)
        }
        for row, (action, executed) in enumerate(rows):
            with cell.step(unchecked.get(row, ""), ""):
                cell.repeat(action, executed=executed, checked=row not in unchecked)
    except SkillFailure as failure:
        return cell.finish(Outcome(success=False, reason=failure.reason, detail=failure.detail))
    return cell.finish(evaluate_success(task, performer(task, cell, layout), patience=0))


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Result of a replay, compared with the stored episode."""

    episode_id: str
    same_outcome: bool
    stored: str
    replayed: str
    joint_error: float
    """Largest difference of a joint position over the episode [rad or m]."""
    body_error: float
    """Largest difference of a body position over the episode [m]."""


def episode_paths(folder: Path, ids: list[str]) -> list[Path]:
    """Return the files of the named episodes, or of all episodes.

    Raises:
        InputError: The folder has no dataset, or no such episode.
    """
    from nimbus.datagen.store.dataset import read_info

    read_info(folder)
    known = {path.stem: path for path in sorted((folder / "episodes").glob("*.hdf5"))}
    for name in ids:
        if name not in known:
            hint = suggest(name, known) if len(known) < 20 else f"it holds {len(known)} episodes, such as {min(known)}"
            raise InputError(f"no episode '{name}'", where=str(folder), instead=hint)
    return [known[name] for name in dict.fromkeys(ids)] if ids else list(known.values())


def replay(path: Path, *, actions: FedActions = "executed") -> Replay:
    """Replay an episode from its file alone, and compare the outcome and the states with the stored ones."""
    import numpy as np

    from nimbus.datagen.store.episode_file.read import EpisodeFile

    with EpisodeFile(path) as episode:
        layout, stored, task = episode.layout(), episode.trajectory(), stored_task(episode)
        check_object_count(layout.physical, where=str(path))
        check_engine(episode.provenance.settings, where=str(path))
        check_assets(task, episode)
        try:
            if isinstance(task, NavigationTask):
                assets = open_navigation(task, task.address(layout.key.index)[0])
                again = drive_again(task, assets, layout.physical, stored)
            else:
                again = replay_actions(task, layout.physical, stored, actions=actions)
        except _ForeignLayout as error:
            instead = "restore the dataset from a copy, or check where it comes from"
            raise InputError(str(error), where=str(path), instead=instead) from None
        except (mujoco.FatalError, _TooMuchWork) as error:  # for example, more contacts than its memory holds
            what = f"physics cannot compute its layout: {str(error).splitlines()[0][:160]!a}"
            raise InputError(what, where=str(path), instead="check where the dataset comes from") from None
        return Replay(
            episode_id=episode.episode_id,
            same_outcome=again.outcome.success == stored.outcome.success
            and again.outcome.reason == stored.outcome.reason,
            stored=_verdict(stored.outcome),
            replayed=_verdict(again.outcome),
            joint_error=float(np.abs(again.joint_positions - stored.joint_positions).max(initial=0.0)),
            body_error=float(np.abs(again.body_positions - stored.body_positions).max(initial=0.0)),
        )


def stored_task(episode: Any, *, draws: bool = False, runs: bool = False) -> Any:
    """Parse the task that is stored with an episode, or return the task of ``--task`` that stands for it.

    Args:
        episode: The episode.
        draws: True if the images of its randomizers are opened as well.
        runs: True if its steps are executed.

    Raises:
        InputError: See :func:`nimbus.datagen.tasks.own_tasks.parse_stored`.
    """
    from nimbus.datagen.tasks.own_tasks import parse_stored

    name, where = episode.layout().key.task, str(episode.path)
    return parse_stored(episode.provenance, name=name, where=where, draws=draws, runs=runs)


def check_assets(task: Any, episode: Any) -> None:
    """Check that the scene, the robot and the objects are the ones with which an episode was made.

    Raises:
        InputError: One of them has changed since then.
    """
    from nimbus.datagen.store.dataset_origin import refuse_source_hashes

    found, where = without_picture_hashes(episode.provenance.assets), str(episode.path)
    now = hash_stored_assets(task, found, where=where)
    made_by = episode.provenance.versions.get("nimbus-datagen", "")
    refuse_source_hashes(found, now, made_by=made_by, where=where, instead="replay it with that version")
    compare_assets(now, found, where=where)


def _verdict(outcome: Any) -> str:
    return "success" if outcome.success else str(outcome.reason)
