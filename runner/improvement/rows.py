"""Weighted rows for the learner from the episodes of a round, the output of data preparation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.npy_files import read_npz
from nimbus.datagen.policies.correction import POLICY
from nimbus.datagen.policies.state_policy import input_width
from nimbus.datagen.policies.state_training import Demonstrations
from nimbus.datagen.policies.trained_policy import TrainedSettings
from nimbus.datagen.store.folder import OTHER_OUT
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.improvement.loop import Improvement, failed_indices, settled_attempts, settled_rollouts

_LARGEST, _GROWTH = 64 << 30, 2
"""Largest size of a round's rows [bytes], and largest ratio of this size to that of their file, which is not
compressed. A million rows of 500 numbers have 4 GB."""
HEAVIEST = 20.0
"""Largest weight of a row (AWR), so that one lucky episode does not dominate the training (Peng et al., 2019)."""


@dataclass(frozen=True, kw_only=True)
class WeightedRows:
    """Rows of a round, with their weights relative to a row of a demonstration."""

    data: Demonstrations
    weights: FloatArray
    """(N,)"""
    sources: dict[str, int]
    """Number of episodes by source: demonstrations, corrections, rollouts."""

    def write(self, path: Path) -> None:
        """Write the rows to a file atomically."""
        data = self.data
        texts = {"settings": to_json(data.settings), "sources": to_json(self.sources)}
        arrays = {"inputs": data.inputs, "targets": data.targets, "episodes": data.episodes, "weights": self.weights}
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=True, shared=False) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays, **{name: np.array(text) for name, text in texts.items()})

    def without_rows(self) -> WeightedRows:
        """Return an empty set of rows in the same form."""
        data = self.data
        none = replace(data, inputs=data.inputs[:0], targets=data.targets[:0], episodes=data.episodes[:0])
        return WeightedRows(data=none, weights=self.weights[:0], sources={})

    @classmethod
    def read(cls, path: Path) -> WeightedRows:
        """Read the rows from a file.

        Raises:
            InputError: The file is damaged, or another version of Nimbus wrote it in another form.
        """
        try:
            held = read_npz(path, limit=_LARGEST, most_growth=_GROWTH)
            data = Demonstrations(
                inputs=held["inputs"],
                targets=held["targets"],
                episodes=held["episodes"],
                settings=from_json(TrainedSettings, str(held["settings"])),
            )
            sources = from_json(dict[str, int], str(held["sources"]))
            found = cls(data=data, weights=held["weights"], sources=sources)
        except (OSError, KeyError, ValueError) as error:
            what = f"cannot be read: {error}"
            raise InputError(what, where=str(path), instead="delete it, then run the same command again") from None
        found.check_form(path)
        return found

    def check_form(self, path: Path) -> None:
        """Check that the rows have the form of this version.

        Raises:
            InputError: Another version of Nimbus made the rows, so training cannot continue from them.
        """
        settings, inputs = self.data.settings, self.data.inputs
        expected = input_width(len(settings.joint_names), settings.feature_names)
        width = inputs.shape[1] if inputs.ndim == 2 else 0
        if width != expected or not settings.is_relative:
            what = f"another version of Nimbus wrote rows of {width} numbers; this version has {expected}"
            raise InputError(what, where=str(path), instead=f"{OTHER_OUT} and begin again")


def check_rows(loop: Improvement) -> None:
    """Read all existing rows, so that an error appears before any role starts.

    Raises:
        InputError: A file is damaged, or from another version of Nimbus.
    """
    for number in loop.rounds:
        if loop.rows(number).is_file():
            WeightedRows.read(loop.rows(number))


def is_complete(loop: Improvement, number: int) -> bool:
    """Check whether all episodes of a round exist, with their corrections."""
    return loop.has_rollouts(number) and not missing_corrections(loop, number)


def missing_corrections(loop: Improvement, number: int) -> bool:
    """Check whether a failed rollout waits for its correction."""
    if not number or "dagger" not in loop.settings.objective:
        return False
    return bool(set(failed_indices(loop, number)) - settled_attempts(loop.corrections(number)).keys())


def prepare_rows(loop: Improvement, number: int) -> WeightedRows:
    """Read the episodes of a round; a round in which nothing failed may have no rows.

    Raises:
        InputError: There is no demonstration.
    """
    parts = [part for part in _parts(loop, number) if part is not None]
    if not number and not parts:
        where, instead = str(loop.demonstrations), "run 'nimbus doctor' on the task"
        raise InputError("no demonstration succeeded", where=where, instead=instead)
    return join_rows(parts) if parts else WeightedRows.read(loop.rows(0)).without_rows()


def join_rows(parts: Sequence[WeightedRows]) -> WeightedRows:
    """Concatenate rows; the conventions are those of the first part."""
    counts = np.cumsum([0, *(sum(part.sources.values()) for part in parts)])
    sources: dict[str, int] = {}
    for part in parts:
        sources |= {name: sources.get(name, 0) + count for name, count in part.sources.items()}
    data = Demonstrations(
        inputs=np.concatenate([part.data.inputs for part in parts]),
        targets=np.concatenate([part.data.targets for part in parts]),
        episodes=np.concatenate([part.data.episodes + first for part, first in zip(parts, counts, strict=False)]),
        settings=parts[0].data.settings,
    )
    return WeightedRows(data=data, weights=np.concatenate([part.weights for part in parts]), sources=sources)


def _parts(loop: Improvement, number: int) -> Iterator[WeightedRows | None]:
    if not number:
        yield _rows(_stored(loop.demonstrations), "demonstrations")
        return
    if "dagger" in loop.settings.objective:
        yield _rows(_stored(loop.corrections(number)), "corrections", without=POLICY)
    if "awr" in loop.settings.objective:
        tried = [found for found in settled_rollouts(loop, number).values() if found[1].path or found[1].failure]
        weights = advantage_weights(
            np.array([one.success for _, one in tried]),
            np.array([one.step_count for _, one in tried]),
            beta=loop.settings.beta,
            discount=loop.settings.discount,
        )
        yield _rows(tried, "rollouts", weights=weights)


def _stored(folder: Path) -> list[tuple[Path, Attempt]]:
    return [(folder, one) for one in settled_attempts(folder).values()]


def _rows(
    attempts: Sequence[tuple[Path, Attempt]], source: str, *, without: str = "", weights: FloatArray | None = None
) -> WeightedRows | None:
    paths = [_path(folder, one) for folder, one in attempts]
    kept = [index for index, path in enumerate(paths) if path is not None]
    files = [path for path in paths if path is not None]
    if not files:
        return None
    info = read_info(attempts[0][0])
    data = Demonstrations.of_files(files, task=info.task, dataset=info.task_hash, without=without)
    own = np.ones(len(files)) if weights is None else weights[kept]
    return WeightedRows(data=data, weights=own[data.episodes], sources={source: len(files)})


def _path(folder: Path, attempt: Attempt) -> Path | None:
    if attempt.path:
        return folder / attempt.path
    return folder / attempt.failure.path if attempt.failure else None


def advantage_weights(
    successes: NDArray[np.bool_], steps: NDArray[np.int64], *, beta: float, discount: float
) -> FloatArray:
    """Return weights of rollouts by advantage-weighted regression: ``exp((return - mean return) / beta)``.

    The return of a rollout is 1 for success, discounted by its length, and 0 for a failure. After Peng et al. (2019),
    with the mean of the round as the value.

    Args:
        successes: (E,)
        steps: (E,) lengths.
        beta: Temperature.
        discount: Factor for each step.

    Returns:
        (E,) at most :data:`HEAVIEST`.
    """
    returns = np.where(successes, np.power(discount, steps), 0.0)
    advantages = returns - (returns.mean() if len(returns) else 0.0)
    return np.minimum(np.exp(advantages / beta), HEAVIEST)
