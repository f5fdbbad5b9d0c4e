"""Split of a chain of stages into a planner's half and a renderer's half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nimbus.datagen.pipeline import Pipeline
from nimbus.datagen.stages import Stage

_CUTS = ("plan", "randomize")
"""Stages whose items can be encoded; the chain is cut after the first of them that is the last stage of a component."""
_ISAACSIM = "isaacsim"
"""Name of the renderer that runs in Isaac Sim."""


def cut(pipeline: Pipeline) -> int:
    """Return the number of components in the planner's half; 0 when the pipeline has a single role.

    Plans are passed on where possible. Where one component plans and renders, its layouts are passed on instead.
    """
    last_stages = [component.kind.split("+")[-1] for component in pipeline.components]
    for stage in _CUTS:
        if stage in last_stages:
            return last_stages.index(stage) + 1
    return 0


def run_one(stages: list[Stage[Any, Any]], item: Any) -> Iterator[Any]:
    """Pull one item through some stages; close the iterator to end early."""
    items: Iterator[Any] = iter((item,))
    running = []
    try:
        for stage in stages:
            # Stages are chained by hand, so that the generators can be closed in reverse order when the caller stops
            # early.
            running.append(items := stage(items))
        yield from items
    finally:
        for generator in reversed(running):
            generator.close()


def with_isaacsim(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with its renderer replaced by Isaac Sim.

    Raises:
        InputError: One component has several stages, which would have to run in different programs.
    """
    for part in pipeline.components:
        if "+" in part.kind:
            what = f"{part.kind} in one component cannot be divided between Nimbus and Isaac Sim"
            raise pipeline.document.error(part.keys, what, instead="use --sim newton", at_key=True)
    components = tuple(
        replace(part, name=_ISAACSIM, settings={}) if part.kind == "render" and part.name != _ISAACSIM else part
        for part in pipeline.components
    )
    return replace(pipeline, components=components)
