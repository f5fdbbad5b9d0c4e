"""Training of a state policy: demonstrations as rows of numbers, and the policy folder for ``nimbus evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.trajectory import DISTURBED, Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.displaced_rows import SIGMA, DisplacedRows, displace_rows, find_held_spans, joint_axes
from nimbus.datagen.policies.features import SceneFeatures
from nimbus.datagen.policies.perceptron import TrainingSettings, fit, predict
from nimbus.datagen.policies.policy import TIMES_LONGEST, layout_source
from nimbus.datagen.policies.state_policy import StatePolicy, input_choices, posture_part, state_vector
from nimbus.datagen.policies.trained_policy import TrainedSettings, group_layouts, write_policy
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import read_single_task_info
from nimbus.datagen.tasks.own_tasks import parse_stored
from nimbus.datagen.tasks.stored_files import check_stored_files
from nimbus.datagen.tasks.task import Task, manipulation_of

HORIZON = 16
"""Number of actions of an answer."""
_TRIAL_STEPS, _HELD_OUT, _LEAST_EPISODES = 400, 7, 14
"""Number of steps of the short trainings that choose the inputs, interval of the episodes that are held out from them
(every seventh), and smallest number of episodes for a choice."""


@dataclass(frozen=True, kw_only=True)
class Demonstrations:
    """Rows of all episodes of a dataset."""

    inputs: FloatArray
    """(N, D) inputs from :func:`~nimbus.datagen.policies.state_policy.state_vector`."""
    targets: FloatArray
    """(N, H, A) next actions of each row; those of arm joints are relative to its posture [rad or m], and the last
    action of an episode is repeated."""
    episodes: NDArray[np.int64]
    """(N,) index of the episode of each row, in the order of their files; a row and its displaced copies have one."""
    settings: TrainedSettings

    @property
    def episode_count(self) -> int:
        """Number of episodes."""
        return int(self.episodes[-1]) + 1

    @classmethod
    def read(cls, folder: Path, *, limit: int | None = None, copies: int = 0) -> Demonstrations:
        """Read the stored episodes of a dataset, which need no images.

        Args:
            folder: Folder of the dataset.
            limit: Number of episodes to read, starting with the first; all by default.
            copies: Number of displaced copies of each row in which an object is held.

        Raises:
            InputError: The folder is not a dataset, or has no episodes.
        """
        info = read_single_task_info(folder)
        paths = sorted((folder / "episodes").glob("*.hdf5"))[:limit]
        if not paths:
            raise InputError(
                "the dataset has no episodes", where=str(folder), instead="make one with 'nimbus run' first"
            )
        return cls.of_files(paths, task=info.task, dataset=info.task_hash, copies=copies)

    @classmethod
    def of_files(
        cls, paths: Iterable[Path], *, task: str, dataset: str, without: str = "", copies: int = 0
    ) -> Demonstrations:
        """Read episode files of one task.

        Args:
            paths: Paths of the files, at least one.
            task: Name of the task.
            dataset: Hash of the demonstrations' task.
            without: Skill whose rows are left out.
            copies: Number of displaced copies of each row in which an object is held.
        """
        reader: _RowReader | None = None
        inputs, targets, episodes, longest = [], [], [], 0
        layouts: list[tuple[str, int]] = []
        for number, path in enumerate(paths):
            with EpisodeFile(path) as episode:
                layout, trajectory = episode.layout(), episode.trajectory()
                if reader is None:
                    parsed = manipulation_of(parse_stored(episode.provenance, name=task, where=str(path)))
                    check_stored_files(parsed, episode.provenance.assets, where=str(path))
                    reader = _RowReader(parsed, trajectory, dataset=dataset)
            rng = np.random.default_rng(number)
            parts = list(reader.parts(layout, trajectory, rng, without=without, copies=copies))
            inputs += [part[0] for part in parts]
            targets += [part[1] for part in parts]
            episodes.append(np.full(sum(len(part[0]) for part in parts), number))
            longest = max(longest, trajectory.step_count)
            key = layout.key
            layouts.append((layout_source(key.task, key.split, key.seed), key.index))
        assert reader is not None
        limit, trained = TIMES_LONGEST * longest, group_layouts(layouts)
        return cls(
            inputs=np.concatenate(inputs),
            targets=np.concatenate(targets),
            episodes=np.concatenate(episodes),
            settings=replace(reader.settings, limit=limit, trained_layouts=trained),
        )


class _RowReader:
    """Inputs and targets from the episodes of one task.

    Args:
        task: The task.
        trajectory: Trajectory of the first episode.
        dataset: Hash of the demonstrations' task.
    """

    def __init__(self, task: Task, trajectory: Trajectory, *, dataset: str) -> None:
        self._robot = load_robot(task.robot)
        self._features, self._axes = SceneFeatures(task, self._robot), joint_axes(self._robot)
        self.settings = TrainedSettings(
            task=task.name,
            robot=self._robot.name,
            rate=trajectory.rate,
            joint_names=trajectory.joint_names,
            action_names=trajectory.action_names,
            feature_names=self._features.names,
            horizon=HORIZON,
            limit=0,
            dataset=dataset,
            is_relative=True,
        )

    def parts(
        self, layout: Layout, trajectory: Trajectory, rng: np.random.Generator, *, without: str, copies: int
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Return inputs (N, D) and targets (N, H, A) of an episode's rows, then of their displaced copies."""
        kept = find_learned_rows(trajectory, without=without)
        whole = DisplacedRows(
            rows=np.flatnonzero(kept),
            joint_positions=trajectory.joint_positions[kept],
            body_positions=trajectory.body_positions[kept],
            body_wxyz=trajectory.body_wxyz[kept],
        )
        yield self._pairs(layout, trajectory, whole)
        free = [one.name for one in layout.physical.objects if not one.anchored]
        for span in find_held_spans(self._robot, trajectory, free):
            span = replace(span, rows=span.rows[kept[span.rows]])
            for _ in range(copies):
                offsets = rng.normal(scale=SIGMA, size=(len(span.rows), len(span.arm.arm.joints)))
                yield self._pairs(layout, trajectory, displace_rows(span, trajectory, self._axes, offsets))

    def _pairs(self, layout: Layout, trajectory: Trajectory, part: DisplacedRows) -> tuple[FloatArray, FloatArray]:
        names, rows = trajectory.body_names, part.rows
        scene = self._features.rows(layout.physical.objects, names, part.body_positions, part.body_wxyz)
        velocities = trajectory.joint_velocities[rows]
        inputs = state_vector(part.joint_positions, velocities, scene, self._features.names)
        ahead = np.minimum(rows[:, None] + np.arange(HORIZON), trajectory.step_count - 1)
        posture = posture_part(part.joint_positions, trajectory.joint_names, trajectory.action_names)
        return inputs, trajectory.actions[ahead] - posture[:, None]


def find_learned_rows(trajectory: Trajectory, *, without: str = "") -> NDArray[np.bool_]:
    """Find the rows (T,) to learn from, without rows of a push and without rows whose answer would reach into one.

    Args:
        trajectory: Trajectory of the episode.
        without: Further skill whose rows are left out.
    """
    kept = np.ones(trajectory.step_count, dtype=bool)
    for part in trajectory.segments:
        if part.skill == DISTURBED:
            kept[max(0, part.start - HORIZON + 1) : part.stop] = False
        elif part.skill == without:
            kept[part.start : part.stop] = False
    return kept


def train_state_policy(
    data: Demonstrations,
    *,
    settings: TrainingSettings | None = None,
    row_weights: FloatArray | None = None,
    start: Mapping[str, NDArray[np.floating]] | None = None,
    report: Callable[[int, float], None] | None = None,
) -> dict[str, NDArray[np.float32]]:
    """Train a policy by behavior cloning.

    Args:
        data: Demonstrations.
        settings: Size of the network and schedule of the training.
        row_weights: (N,) weight of each row; equal by default.
        start: Initial weights.
        report: Called occasionally with the step and its loss.

    Returns:
        The weights, see :mod:`nimbus.datagen.policies.perceptron`.
    """
    targets = data.targets.reshape(len(data.targets), -1)
    settings = settings or TrainingSettings()
    return fit(
        data.inputs,
        targets,
        settings=settings,
        row_weights=row_weights,
        used=None if start else choose_inputs(data, settings, row_weights=row_weights),
        start=start,
        report=report,
    )


def choose_inputs(
    data: Demonstrations, settings: TrainingSettings, *, row_weights: FloatArray | None = None
) -> NDArray[np.bool_]:
    """Choose the inputs with which a short training predicts held-out episodes best.

    Rotations distinguish orientations in which a symmetric object looks the same, and a network cannot learn from few
    episodes that they are equivalent (21 kinds, 299 episodes: held-out error 22.5 mrad, and 18.4 mrad with shapes).

    Args:
        data: Demonstrations.
        settings: Settings of the training.
        row_weights: (N,) weight of each row; equal by default.

    Returns:
        (D,) True for the chosen inputs.
    """
    choices = input_choices(len(data.settings.joint_names), data.settings.feature_names)
    if data.episode_count < _LEAST_EPISODES:
        return choices[0]
    held_out = data.episodes % _HELD_OUT == 0
    targets = data.targets.reshape(len(data.targets), -1)
    weights = None if row_weights is None else row_weights[~held_out]
    trial = replace(settings, steps=min(_TRIAL_STEPS, settings.steps // 4))
    losses = []
    for used in choices:
        network = fit(data.inputs[~held_out], targets[~held_out], settings=trial, row_weights=weights, used=used)
        away = np.abs(predict(network, data.inputs[held_out]) - targets[held_out]) / network["y_scale"]
        losses.append(away.mean())
    return choices[int(np.argmin(losses))]


def write_state_policy(folder: Path, weights: Mapping[str, NDArray[np.floating]], settings: TrainedSettings) -> None:
    """Write the folder of a policy for ``nimbus evaluate TASK --policy FOLDER``."""
    write_policy(folder, settings, weights, policy=StatePolicy)
