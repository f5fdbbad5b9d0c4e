"""Training of a version of the policy from all admitted rows, and its publication."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import sync_file, sync_folder
from nimbus.datagen.files.bounded import read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.policies.perceptron import TrainingSettings
from nimbus.datagen.policies.state_policy import StatePolicy
from nimbus.datagen.policies.state_training import train_state_policy, write_state_policy
from nimbus.datagen.policies.trained_policy import WEIGHTS, generated_policy, read_weights
from nimbus.datagen.progress import tick
from nimbus.datagen.store.publish import disk
from nimbus.runner.improvement.loop import Improvement, demonstrations_hash
from nimbus.runner.improvement.rows import WeightedRows, join_rows

RECORD = "ancestors.json"
"""File of a published version with its origin."""


@dataclass(frozen=True, kw_only=True)
class PolicyRecord:
    """Ancestors of a published version."""

    version: int
    policy: str
    """Identity: a hash of the weights."""
    parent: str = ""
    """Identity of the version that training started from; empty for the first version."""
    objective: str
    demonstration: str
    """Hash over the demonstrations."""
    rounds: tuple[dict[str, int], ...]
    """Number of episodes by source, for each round of its training data."""
    steps: int


def train_version(loop: Improvement, version: int) -> PolicyRecord:
    """Train a version and publish it. Equal rows give an equal version, even after interruptions."""
    parts = [WeightedRows.read(loop.rows(number)) for number in range(version + 1)]
    rows = join_rows(parts)
    settings = loop.settings
    steps = settings.round_steps if version else settings.steps
    before = None
    if version:
        before = read_weights(loop.policy(version - 1) / WEIGHTS)
    weights = train_state_policy(
        rows.data,
        settings=TrainingSettings(steps=steps, seed=settings.seed + version),
        row_weights=rows.weights,
        start=before,
        report=lambda step, loss: tick(),
    )
    target = loop.policy(version)
    staged = target.with_name(f".{target.name}.tmp")
    with disk(staged):
        shutil.rmtree(staged, ignore_errors=True)  # a killed learner may have left this folder
        write_state_policy(staged, weights, parts[0].data.settings)
        record = PolicyRecord(
            version=version,
            policy=StatePolicy(staged).identity,
            parent=read_record(loop, version - 1).policy if version else "",
            objective=settings.objective if version else "cloning",
            demonstration=demonstrations_hash(loop),
            rounds=tuple(part.sources for part in parts),
            steps=steps,
        )
        (staged / RECORD).write_text(to_json(record, indent=1) + "\n")
        _publish(staged, target)
    return record


def read_record(loop: Improvement, version: int) -> PolicyRecord:
    """Read the origin of a published version.

    Raises:
        InputError: It cannot be read, or the version's ``policy.py`` was not written by Nimbus.
    """
    if generated_policy(loop.policy(version)) is None:
        what, instead = "its policy.py is not that of a trained policy", "give a new --out, or remove this version"
        raise InputError(what, where=str(loop.policy(version)), instead=instead)
    return read_typed(PolicyRecord, loop.policy(version) / RECORD)


def _publish(staged: Path, target: Path) -> None:
    """Rename a folder after all of its files are durable."""
    for path in staged.iterdir():
        sync_file(path)
    sync_folder(staged)
    os.rename(staged, target)
    sync_folder(target.parent)
