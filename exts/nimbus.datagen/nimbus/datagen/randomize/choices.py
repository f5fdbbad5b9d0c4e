"""What the steps of a task leave to chance: drawn once for an episode, the same in every attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nimbus.datagen.random_streams import Streams
from nimbus.datagen.tasks.references import build_environment
from nimbus.datagen.tasks.scope import Scope
from nimbus.datagen.tasks.steps import Composite, Step, Steps
from nimbus.datagen.tasks.task import Task


def draw_choices(task: Task, objects: Iterable[Any], streams: Streams) -> dict[str, int]:
    """Draw every choice of a task's steps and conditions.

    Args:
        task: The task.
        objects: The objects of the episode.
        streams: Generators by address.

    Returns:
        Which of its branches or members each choice takes, by address; empty for a task without choices.
    """
    choices: dict[str, int] = {}
    scope = Scope(build_environment(objects=objects, regions=task.regions), choices)
    for steps in (task.steps, task.success):
        for address, weights in _draws(steps, scope):
            if address not in choices:
                total = sum(weights)
                shares = [weight / total for weight in weights]
                choices[address] = int(streams(address).choice(len(weights), p=shares))
    return choices


def _draws(steps: Steps, scope: Scope) -> Iterator[tuple[str, list[float]]]:
    """All draws, outer ones first: what is inside a choice is asked for when the choice has been taken."""
    for step in steps:
        if isinstance(step, Step):
            continue
        yield from _draws_of(step, scope)


def _draws_of(step: Composite, scope: Scope) -> Iterator[tuple[str, list[float]]]:
    if drawn := step.draws(scope):
        yield drawn
    for inner in step.scopes(scope):
        for block in step.blocks():
            yield from _draws(block, inner)
