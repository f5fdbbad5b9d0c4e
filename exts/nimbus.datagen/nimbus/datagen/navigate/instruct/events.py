"""Search for the claims that hold along a path: turns, rooms entered, objects passed, and the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.navigate.goal_kinds.thing import NO_GOALS
from nimbus.datagen.navigate.instruct.claims import Claim, InstructionStep, noun_of, room_noun
from nimbus.datagen.navigate.instruct.glimpse import Glimpses
from nimbus.datagen.navigate.navigation_scene import NavigationScene, SceneThing

_TURNING = 0.15
"""Turn rate above which the body counts as turning [rad/s]."""
_PAUSE = 1.2
"""Longest pause that does not interrupt a turn [s]."""
_LEAST_TURN, _BACK = np.radians(45.0), np.radians(140.0)
"""Smallest angle of a turn, and of a turn ``around`` [rad]."""
_NEAR = 1.8
"""Largest horizontal distance of an object that counts as passed [m]."""
_LEAST_SIZE = 0.4
"""Smallest length of the longest side of a passed object [m]."""
_ASIDE = (np.radians(55.0), np.radians(125.0))
"""Range of the absolute bearing of an object, from straight ahead, at which it is passed [rad]."""
_SEEN = 0.01
"""Smallest fraction of an image that an object must fill before it is passed."""
_BEFORE = 6.0
"""Length of the time window before the pass in which the object must be seen [s]."""
_AWAY = 3.0
"""Smallest distance of the body to other objects with the same noun [m]."""
_ARRIVED = (1.15, np.radians(30.0))
"""Largest distance [m] and absolute bearing [rad] of the object at the end."""
_MOST_PASSED = 4
"""Largest number of passed objects in an instruction."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WayAlong:
    """Properties of a drive that instructions describe, in T rows."""

    rate: float
    """Rows per second [Hz]."""
    feet: FloatArray
    """(T, 3) positions of the body on the floor [m]."""
    yaws: FloatArray
    """(T,) unwrapped headings [rad]."""
    rooms: tuple[str, ...]
    """Name of the room in each row."""

    def bearing(self, row: int, point: FloatArray) -> float:
        """Return the bearing of a point (3,) [m] in a row, from straight ahead, positive to the left [rad]."""
        x, y = point[:2] - self.feet[row, :2]
        return float((np.arctan2(y, x) - self.yaws[row] + np.pi) % (2 * np.pi) - np.pi)


def find_steps(way: WayAlong, scene: NavigationScene, glimpses: Glimpses, goal: str) -> tuple[InstructionStep, ...]:
    """Find the steps of an instruction, in the order of the drive.

    Args:
        way: Drive to describe.
        scene: Scene of the drive.
        glimpses: Objects that the body's cameras see along the drive.
        goal: Name of the object at the end; empty for none.
    """
    target = next((thing for thing in scene.things if thing.name == goal), None)
    found = [*_turns(way), *_entries(way), *_passed(way, scene, glimpses, target)]
    found.sort(key=lambda step: step.start + step.stop)
    if target is not None and (end := _end(way, scene, glimpses, target)) is not None:
        found.append(end)
    return tuple(found)


def _turns(way: WayAlong) -> list[InstructionStep]:
    rates = np.diff(way.yaws) * way.rate
    signs = np.where(np.abs(rates) > _TURNING, np.sign(rates), 0.0)
    runs: list[tuple[int, int, float]] = []
    for row in np.flatnonzero(signs):
        row = int(row)
        if runs and runs[-1][2] == signs[row] and row - runs[-1][1] <= _PAUSE * way.rate:
            runs[-1] = (runs[-1][0], row + 1, runs[-1][2])
        else:
            runs.append((row, row + 1, float(signs[row])))
    found = []
    for start, stop, _ in _without_weaving(runs, way):
        angle = way.yaws[stop] - way.yaws[start]
        if abs(angle) >= _LEAST_TURN:
            side = "around" if abs(angle) >= _BACK else "left" if angle > 0 else "right"
            found.append(InstructionStep(claim=Claim(kind="turn", side=side), start=start, stop=stop + 1))
    return found


def _without_weaving(runs: list[tuple[int, int, float]], way: WayAlong) -> list[tuple[int, int, float]]:
    """Remove pairs of successive opposite turns that hardly change the heading, as around an obstacle."""
    kept: list[tuple[int, int, float]] = []
    for run in runs:
        if kept and run[0] - kept[-1][1] <= _PAUSE * way.rate and run[2] != kept[-1][2]:
            net = way.yaws[run[1]] - way.yaws[kept[-1][0]]
            if abs(net) < _LEAST_TURN:
                kept.pop()
                continue
        kept.append(run)
    return kept


def _entries(way: WayAlong) -> list[InstructionStep]:
    """Return a step for each room entered, with the two rows before and after the border."""
    found = []
    for row in range(1, len(way.rooms)):
        noun = room_noun(way.rooms[row])
        if way.rooms[row] != way.rooms[row - 1] and noun:
            found.append(InstructionStep(claim=Claim(kind="enter", noun=noun), start=row - 1, stop=row + 1))
    return found


def _passed(
    way: WayAlong, scene: NavigationScene, glimpses: Glimpses, target: SceneThing | None
) -> list[InstructionStep]:
    """Return one step per visited room, for the passed object that filled most of an image before the pass."""
    best: dict[int, tuple[float, InstructionStep]] = {}
    for number, thing in enumerate(scene.things):
        if thing.object_class in NO_GOALS or (target and thing.object_class == target.object_class):
            continue
        found = _pass_of(way, scene, glimpses, number)
        if found is None:
            continue
        visit = sum(one != other for one, other in zip(way.rooms[: found[1].stop], way.rooms[1:], strict=False))
        if visit not in best or found[0] > best[visit][0]:
            best[visit] = found
    kept = sorted(best.values(), key=lambda entry: -entry[0])[:_MOST_PASSED]
    return [step for _, step in kept]


def _pass_of(
    way: WayAlong, scene: NavigationScene, glimpses: Glimpses, number: int
) -> tuple[float, InstructionStep] | None:
    """Return the fraction of an image that an object fills before it is passed, and its step; None if not passed."""
    thing = scene.things[number]
    noun, size = noun_of(thing.object_class), float(np.ptp(thing.bounds, axis=0).max())
    if not noun or size < _LEAST_SIZE or thing not in scene.goals:
        return None
    apart = _distances(way, thing)
    row = int(apart.argmin())
    margin = max(2, len(apart) // 20)
    bearing = way.bearing(row, thing.middle)
    is_level = thing.bounds[0, 2] < way.feet[row, 2] + 1.8 and thing.bounds[1, 2] > way.feet[row, 2]
    if not margin <= row < len(apart) - margin or apart[row] > _NEAR or not is_level:
        return None
    if not _ASIDE[0] <= abs(bearing) <= _ASIDE[1] or (thing.room and thing.room != way.rooms[row]):
        return None
    start = max(0, row - round(_BEFORE * way.rate))
    seen = glimpses.between(start, row + 1)
    alike = [place for place in _alike(scene, thing) if place != number]
    if np.count_nonzero(seen[:, number] >= _SEEN) < 2:
        return None
    if any(seen[:, place].any() or _distances(way, scene.things[place])[row] < _AWAY for place in alike):
        return None
    claim = Claim(kind="pass", side="left" if bearing > 0 else "right", noun=noun)
    return float(seen[:, number].max()), InstructionStep(claim=claim, start=start, stop=row + 1)


def _end(way: WayAlong, scene: NavigationScene, glimpses: Glimpses, target: SceneThing) -> InstructionStep | None:
    """Return the final step at an object; None if the body is not near the object or does not face it."""
    last = len(way.feet) - 1
    noun = noun_of(target.object_class)
    if not noun or _distances(way, target)[last] > _ARRIVED[0] or abs(way.bearing(last, target.middle)) > _ARRIVED[1]:
        return None
    number = scene.things.index(target)
    others = [place for place in _alike(scene, target) if place != number]
    near = any(_distances(way, scene.things[place])[last] < _AWAY for place in others)
    is_unique = not near and not glimpses.between(last, last + 1)[:, others].any()
    return InstructionStep(claim=Claim(kind="stop", noun=noun, is_unique=is_unique), start=last, stop=last + 1)


def _alike(scene: NavigationScene, thing: SceneThing) -> list[int]:
    """Return the indices of all objects with the same noun as an object, including itself."""
    noun = noun_of(thing.object_class)
    return [place for place, one in enumerate(scene.things) if noun_of(one.object_class) == noun]


def _distances(way: WayAlong, thing: SceneThing) -> FloatArray:
    """Return the horizontal distance (T,) of the body to an object's bounds [m]."""
    nearest = np.clip(way.feet[:, :2], thing.bounds[0, :2], thing.bounds[1, :2])
    return np.linalg.norm(way.feet[:, :2] - nearest, axis=1)


def shorten(steps: Sequence[InstructionStep], most: int) -> tuple[InstructionStep, ...]:
    """Remove steps until at most ``most`` are left.

    Passed objects are removed first, from the end; then turns, then rooms, both from the start.
    """
    kept = list(steps)
    for kind in ("pass", "turn", "enter"):
        while len(kept) > most and (places := [at for at, step in enumerate(kept) if step.claim.kind == kind]):
            del kept[places[-1] if kind == "pass" else places[0]]
    return tuple(kept)


def with_words(steps: Sequence[InstructionStep], words: Sequence[str]) -> tuple[InstructionStep, ...]:
    """Return steps with their wording."""
    return tuple(replace(step, text=text) for step, text in zip(steps, words, strict=True))
