"""What decides the content of episodes beside task and seed: assets, code that a task names, settings, versions."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen import registry
from nimbus.datagen.episode.provenance import decisive_versions
from nimbus.datagen.tasks.steps import walk

if TYPE_CHECKING:
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.pipeline import Pipeline
    from nimbus.datagen.robots.robot import Robot
    from nimbus.datagen.tasks.task import Task
    from nimbus.datagen.usd.stage import StageInfo


def asset_fingerprints(stage: StageInfo, robot: Robot, libraries: Iterable[ObjectLibrary]) -> dict[str, str]:
    """Content hash of each asset, by sort and name, for example ``robot panda``."""
    from nimbus.datagen.usd.robot import robot_hash

    hashes = {f"scene {stage.name}": stage.content_hash, f"robot {robot.name}": robot_hash(robot)}
    return hashes | {f"library {library.name}": library.content_hash for library in libraries}


def fingerprint_inputs(
    task: Task,
    *,
    assets: Mapping[str, str],
    settings: Mapping[str, str],
    pipeline: Pipeline | None = None,
) -> dict[str, str]:
    """Everything that decides an episode's content beside its key, by name: a hash, a setting or a version.

    Args:
        task: The task; the sources of the skills, conditions and randomizers that it names enter.
        assets: From :func:`asset_fingerprints`.
        settings: What was chosen on the command line.
        pipeline: The pipeline; its settings and the sources of its components enter.
    """
    named = set(_plugged_in(task))
    inputs = dict(assets) | dict(settings) | decisive_versions()
    if pipeline is not None:
        named |= {(component.kind, component.name) for component in pipeline.components}
        inputs[f"pipeline {pipeline.name}"] = _digest(json.dumps(pipeline.document.data, sort_keys=True).encode())
    return inputs | {f"{kind} {name}": _source_hash(kind, name) for kind, name in sorted(named)}


def _plugged_in(task: Task) -> Iterator[tuple[str, str]]:
    yield from ((step.kind, step.name) for steps in (task.steps, task.success) for step, _ in walk(steps))
    yield from (("randomizer", name) for name in task.randomize)


def _source_hash(kind: str, name: str) -> str:
    return _file_hash(inspect.getfile(registry.lookup(kind, name)))


@cache
def _file_hash(path: str) -> str:
    """Taken once: what this process has imported stays as it is."""
    return _digest(Path(path).read_bytes())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
