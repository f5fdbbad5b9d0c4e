"""Instructions of episodes: the steps found along a path, with wording drawn for each visual variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.navigate.goals import NavigationGoal
from nimbus.datagen.navigate.instruct.claims import StoredInstruction
from nimbus.datagen.navigate.instruct.events import WayAlong, find_steps, shorten, with_words
from nimbus.datagen.navigate.instruct.glimpse import look_along
from nimbus.datagen.navigate.instruct.grammar import MOST_WORDS, count_words, write_text
from nimbus.datagen.navigate.scene_map import SceneMap

TEMPLATE = "template"
"""Value of :attr:`StoredInstruction.source` for wording from the grammar."""


def is_instructed(drawn: Mapping[str, Any]) -> bool:
    """Return True if the goal of a layout is of the kind ``instruction``."""
    goal = drawn.get("goal")
    return isinstance(goal, Mapping) and goal.get("kind") == "instruction"


def instruct(place: SceneMap, layout: Layout, trajectory: Trajectory) -> Layout:
    """Return a layout with the instruction for a drive.

    Layouts with other goals, and those of failed drives, are returned unchanged.
    """
    if not is_instructed(layout.physical.drawn) or not trajectory.outcome.success:
        return layout
    goal = NavigationGoal.from_drawn(layout.physical.drawn)
    way = way_along(trajectory)
    on_body = [camera for camera in layout.visual.cameras if camera.mount]
    glimpses = look_along(place, on_body, way.feet, trajectory.body_wxyz[:, 0])
    steps = find_steps(way, place.scene, glimpses, goal.name)
    most = len(steps)
    text, words = "", ()
    while steps:
        rng = layout.key.generator("visual", layout.key.variant, "instruction")
        text, words = write_text([step.claim for step in steps], rng)
        if count_words(text) <= MOST_WORDS:
            break
        most -= 1
        steps = shorten(steps, most)
    if not steps:
        return layout
    stored = StoredInstruction(source=TEMPLATE, steps=with_words(steps, words))
    return with_instruction(layout, stored, text)


def with_instruction(layout: Layout, stored: StoredInstruction, text: str) -> Layout:
    """Return a layout with an instruction and its text."""
    drawn = layout.visual.drawn | {"instruction": stored.to_plain()}
    return replace(layout, visual=replace(layout.visual, instruction=text, drawn=drawn))


def way_along(trajectory: Trajectory) -> WayAlong:
    """Return the drive of a trajectory, whose segments name the rooms."""
    rooms = [""] * trajectory.step_count
    for segment in trajectory.segments:
        rooms[segment.start : segment.stop] = [segment.target] * (segment.stop - segment.start)
    return WayAlong(
        rate=trajectory.rate,
        feet=np.asarray(trajectory.body_positions[:, 0], dtype=float),
        yaws=np.unwrap(trajectory.joint_positions[:, 2]),
        rooms=tuple(rooms),
    )


def landmark_count(layout: Layout) -> int:
    """Count the objects that the instruction of a layout names."""
    stored = StoredInstruction.from_drawn(layout.visual.drawn, where=layout.key.id)
    return sum(step.claim.kind in ("pass", "stop") for step in stored.steps) if stored else 0
