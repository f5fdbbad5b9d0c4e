"""Replay of an export through the environment: rows of a view, read back from its files, become commands again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.export.source import ExportItem, open_source
from nimbus.datagen.datasets.training.lerobot import LeRobotFrames
from nimbus.datagen.policies.control_modes import MODE_NAMES
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.policies.rotations import ROTATION_NAMES
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.gym import NimbusEnv

VIEWS = [
    SignalView(actions=mode, rotation=form, state="commanded")
    for mode in MODE_NAMES
    for form in (ROTATION_NAMES if mode.startswith("tool") else ("6d",))
]
"""Every view of actions."""


def views_of(robot: str) -> list[SignalView]:
    """Return the views that a robot supports; tool steps need more than five joints."""
    is_free = all(len(one.arm.joints) > 5 for one in load_robot(robot).arms)
    return [view for view in VIEWS if is_free or view.actions != "tool_delta"]


_REST = 10
"""Number of steps after the last row, which is repeated."""


def replay_view(folder: Path, view: SignalView, *, task: Path | str, out: Path) -> Iterator[tuple[ExportItem, str]]:
    """Export a dataset in a view, read the files, and play every episode.

    Execution noise of the stored episode is added to the commands, because relative actions refer to the posture with
    noise.

    Args:
        folder: The dataset.
        view: The view.
        task: Its task.
        out: Folder of the export.

    Yields:
        Each episode, and the reason of its failure; empty for success.
    """
    export(folder, out, view=view)
    source, frames = open_source(folder), LeRobotFrames(out)
    for item in source.items:
        env = NimbusEnv(
            task, control_mode=view.actions, rotation=view.rotation, cameras=(), split="run", seed=item.seed
        )
        with EpisodeFile(item.path) as episode:
            stored = episode.trajectory()
        executed = stored.actions if stored.executed_actions is None else stored.executed_actions
        yield item, _play(env, item.index, frames.signals(item.position)["action"], executed - stored.actions)


def _play(env: NimbusEnv, index: int, rows: np.ndarray, noise: np.ndarray) -> str:
    env.reset(seed=index)
    inner, limits = env._environment, env._environment.conventions
    failure = None
    for step in range(len(rows) + _REST):
        row = np.asarray(rows[min(step, len(rows) - 1)], dtype=float)
        try:
            command = env._signals.command(row, inner.present_action())
        except PolicyFault as fault:
            return f"step {step}: {fault}"
        if step < len(noise):
            command = command + noise[step]
        result = inner.step(np.clip(command, limits.action_low, limits.action_high))
        if result.is_success:
            return ""
        failure = result.failure
    return f"{failure.phase}: {failure.detail or failure.reason}" if failure else "done, but not to the end"
