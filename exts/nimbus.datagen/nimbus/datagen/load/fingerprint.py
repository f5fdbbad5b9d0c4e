"""Inputs that determine the content of episodes, besides task and seed: assets, components, settings, versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from nimbus.datagen import registry
from nimbus.datagen.episode.provenance import decisive_versions
from nimbus.datagen.tasks.plugin_source import plugin_source
from nimbus.datagen.tasks.steps import composites, walk
from nimbus.datagen.tasks.task import BaseTask, NavigationTask, Task
from nimbus.datagen.version import component_version, is_built_in, versioned_hash

if TYPE_CHECKING:
    from nimbus.datagen.pipeline import Pipeline


def fingerprint_inputs(
    task: BaseTask,
    *,
    assets: Mapping[str, str],
    settings: Mapping[str, str],
    pipeline: Pipeline | None = None,
    components: Iterable[tuple[str, str]] = (),
) -> dict[str, str]:
    """Return the inputs that determine an episode's content, besides its key: hashes, settings and versions by name.

    A built-in component is represented by its version number, and a plug-in by version number and hash of its source.

    Args:
        task: Task; its skills, conditions, composites and randomizers are included.
        assets: Fingerprints of the assets, from :func:`.stored_files.asset_fingerprints`.
        settings: Choices of the command line; the planner and the simulator are included.
        pipeline: Pipeline; its settings and components are included.
        components: Additional components, by kind and name.
    """
    named = {*components, *_task_components(task), *_chosen_components(settings)}
    inputs = dict(assets) | dict(settings) | decisive_versions()
    if pipeline is not None:
        named |= {(component.kind, component.name) for component in pipeline.components}
        inputs[f"pipeline {pipeline.name}"] = _digest(json.dumps(pipeline.content, sort_keys=True).encode())
    return inputs | {f"{kind} {name}": _identity(kind, name) for kind, name in sorted(named)}


def _task_components(task: BaseTask) -> Iterator[tuple[str, str]]:
    names = {registry.lookup("composite", name): name for name in registry.names("composite")}
    for steps in (task.steps, task.success) if isinstance(task, Task) else ():
        yield from ((step.kind, step.name) for step, _ in walk(steps))
        yield from (("composite", names[type(composite)]) for composite in composites(steps))
    yield from (("randomizer", name) for name in task.randomize)
    if isinstance(task, NavigationTask):
        yield "goal", task.navigate.to


def _chosen_components(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    chosen = {"planner": settings.get("planner", ""), "simulator": settings.get("physics") or settings.get("sim", "")}
    yield from ((kind, name) for kind, name in chosen.items() if name in registry.names(kind))


def _identity(kind: str, name: str) -> str:
    component = registry.lookup(kind, name)
    version = component_version(component)
    return str(version) if is_built_in(component) else versioned_hash(plugin_source(component), version)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
