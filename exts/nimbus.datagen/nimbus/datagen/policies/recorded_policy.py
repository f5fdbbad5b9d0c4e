"""Policy that replays a dataset's actions, to check that evaluation and data agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.policy import Needs, Policy, PolicyEpisode, PolicyFault, PolicyObservation
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.dataset import read_info
from nimbus.datagen.store.episode_file.read import EpisodeFile

ACTIONS = ("executed", "recorded")

_AHEAD = 1000
"""Smallest number of rows of an answer, more than are ever executed."""


class RecordedPolicy(Policy):
    """Policy that replays the stored actions of the evaluated layout.

    Args:
        folder: The dataset.
        actions: ``executed`` for the positions that the robot executed; ``recorded`` for the clean actions.

    Raises:
        InputError: There is no dataset, or ``actions`` has another value.
    """

    needs = Needs(cameras=())
    view = SignalView()

    def __init__(self, folder: Path, *, actions: str = "executed") -> None:
        if actions not in ACTIONS:
            raise InputError(f"no actions '{actions}'", where="--actions", instead=f"write {' or '.join(ACTIONS)}")
        info = read_info(folder)
        self._folder, self._actions = folder, actions
        self.identity = f"replay-{actions}-{info.task_hash}-{info.seed}"
        self._rows = np.zeros((0, 0))

    def reset(self, episode: PolicyEpisode) -> None:
        """Read the stored actions of the layout.

        Raises:
            PolicyFault: The dataset has no episode of the layout.
        """
        path = self._folder / "episodes" / f"{episode.id}.hdf5"
        if not path.is_file():
            raise PolicyFault(Reason.POLICY_ERROR, f"no episode {episode.id} in the dataset")
        with EpisodeFile(path) as stored:
            self._rows = played_actions(stored, recorded=self._actions == "recorded")

    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Return the remaining rows; after the end, the last row is repeated."""
        rest = self._rows[min(observation.step, len(self._rows) - 1) :]
        return rest if len(rest) >= _AHEAD else np.concatenate([rest, np.repeat(rest[-1:], _AHEAD, axis=0)])


def played_actions(episode: EpisodeFile, *, recorded: bool = False) -> NDArray[np.floating]:
    """Return the actions (T, A) that reproduce a stored episode, or the clean ones [rad or m]."""
    trajectory = episode.trajectory()
    executed = trajectory.executed_actions
    return trajectory.actions if recorded or executed is None else executed
