"""Check of an instruction's claims against the stored episode, without its scene.

The rules are more tolerant than the search in ``events.py``, and share no code with it. They use only images, poses,
boxes and the rooms of segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.navigate.instruct.claims import Claim, InstructionStep, StoredInstruction, noun_of, room_noun
from nimbus.datagen.navigate.instruct.compose import TEMPLATE
from nimbus.datagen.navigate.instruct.grammar import read_claims
from nimbus.datagen.navigate.instruct.reworded import misfit

_TURN, _TURN_BACK = np.radians(30.0), np.radians(120.0)
"""Smallest angle of a turn, and of a turn ``around`` [rad]."""
_PASSED = 2.2
"""Largest horizontal distance of a passed object [m]."""
_ASIDE = np.radians(35.0)
"""Smallest angle between a passed object and the directions straight ahead and straight behind [rad]."""
_AT_END = (1.4, np.radians(45.0))
"""Largest distance [m] and absolute bearing [rad] of the object at the end."""
_SEEN = 0.002
"""Smallest fraction of an image that an object must fill to count as seen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DriveRecord:
    """Stored data of a drive, in T rows, with N labeled objects."""

    instruction: str
    """Whole text of the instruction."""
    stored: StoredInstruction
    """Steps of the instruction."""
    positions: FloatArray
    """(T, 3) positions of the body [m]."""
    yaws: FloatArray
    """(T,) unwrapped headings [rad]."""
    rooms: tuple[str, ...]
    """Name of the room in each row."""
    classes: tuple[str, ...]
    """Class of each object."""
    boxes: FloatArray
    """(N, 2, 3) bounds of each object in the world [m]; NaN if no box is stored."""
    shares: FloatArray | None
    """(T, N) fraction of an image that each object fills, the largest over all cameras; None without stored masks."""

    def can_check(self, claim: Claim) -> bool:
        """Return True unless the claim is about an object and no labels are stored, as in episodes without cameras."""
        return claim.kind in ("turn", "enter") or bool(self.classes)


def find_false_claims(record: DriveRecord) -> tuple[str, ...]:
    """Return one line for each claim that the episode contradicts; empty if all claims hold."""
    return tuple(_problems(record))


def _problems(record: DriveRecord) -> Iterator[str]:
    steps = record.stored.steps
    if record.stored.source == TEMPLATE:
        try:
            claims = read_claims(record.instruction)
        except ValueError as error:
            yield f"the instruction cannot be parsed: {error}"
            return
        if claims != tuple(step.claim for step in steps):
            yield "the claims of the instruction differ from those of its steps"
    else:
        if record.instruction != " ".join(step.text for step in steps):
            yield "the text of the instruction differs from that of its steps"
        yield from (problem for step in steps if (problem := misfit(step.text, step.claim, _nouns(record))))
    middles = [step.start + step.stop for step in steps]
    if middles != sorted(middles):
        yield "the steps are out of order"
    for number, step in enumerate(steps):
        if not 0 <= step.start < step.stop <= len(record.yaws):
            yield f"step {number + 1} has rows outside the episode"
        elif record.can_check(step.claim) and (problem := _check(record, step)):
            yield f"step {number + 1}, rows {step.start} to {step.stop - 1}: {problem}"


def _nouns(record: DriveRecord) -> frozenset[str]:
    named = {noun_of(one) for one in record.classes} | {room_noun(room) for room in record.rooms}
    return frozenset(named - {""})


def _check(record: DriveRecord, step: InstructionStep) -> str:
    """Return the fault of a step; empty if its claim holds."""
    claim = step.claim
    if claim.kind == "turn":
        return _check_turn(record, step)
    if claim.kind == "enter":
        before, after = room_noun(record.rooms[step.start]), room_noun(record.rooms[step.stop - 1])
        is_new = record.rooms[step.start] != record.rooms[step.stop - 1]
        return "" if is_new and after == claim.noun else f"the body goes from {before} into {after}, not {claim.noun}"
    if claim.kind == "pass":
        return _check_pass(record, step)
    return _check_end(record, claim)


def _check_turn(record: DriveRecord, step: InstructionStep) -> str:
    angle = float(record.yaws[step.stop - 1] - record.yaws[step.start])
    if step.claim.side == "around":
        is_so = abs(angle) >= _TURN_BACK
    else:
        is_so = (angle if step.claim.side == "left" else -angle) >= _TURN
    return "" if is_so else f"the body turns by {np.degrees(angle):.0f} deg (left is positive), not {step.claim.side}"


def _named(record: DriveRecord, noun: str) -> list[int]:
    return [number for number, name in enumerate(record.classes) if noun_of(name) == noun]


def _check_pass(record: DriveRecord, step: InstructionStep) -> str:
    claim, rows, row = step.claim, slice(step.start, step.stop), step.stop - 1
    named = _named(record, claim.noun)
    if record.shares is not None:
        named = [number for number in named if record.shares[rows, number].max() >= _SEEN]
    if not named:
        return f"no {claim.noun} is seen"
    # Without stored masks, other objects of the kind may be out of sight, so they do not make the claim false.
    if claim.is_unique and len(named) > 1 and record.shares is not None:
        return f"{len(named)} objects '{claim.noun}' are seen, not one"
    near = min(named, key=lambda number: _apart(record, row, number))
    if (apart := _apart(record, row, near)) > _PASSED:
        return f"the {claim.noun} is {apart:.2f} m away"
    bearing = _bearing(record, row, near)
    wanted = bearing if claim.side == "left" else -bearing
    if not _ASIDE <= wanted <= np.pi - _ASIDE:
        return f"the {claim.noun} is at a bearing of {np.degrees(bearing):.0f} deg (left is positive), not {claim.side}"
    return ""


def _check_end(record: DriveRecord, claim: Claim) -> str:
    last = len(record.yaws) - 1
    named = [number for number in _named(record, claim.noun) if np.isfinite(record.boxes[number]).all()]
    there = [
        number
        for number in named
        if _apart(record, last, number) <= _AT_END[0] and abs(_bearing(record, last, number)) <= _AT_END[1]
    ]
    if not there:
        return f"no {claim.noun} is at the end"
    if claim.is_unique and record.shares is not None:
        others = [number for number in named if number not in there and record.shares[last, number] >= _SEEN]
        if others or len(there) > 1:
            return f"{len(others) + len(there)} objects '{claim.noun}' are seen, not one"
    return ""


def _apart(record: DriveRecord, row: int, number: int) -> float:
    """Return the horizontal distance of the body to the bounds of an object [m]; infinite without a box."""
    low, high = record.boxes[number, :, :2]
    place = record.positions[row, :2]
    apart = float(np.linalg.norm(place - np.clip(place, low, high)))
    return apart if np.isfinite(apart) else float("inf")


def _bearing(record: DriveRecord, row: int, number: int) -> float:
    """Return the bearing of an object's center from straight ahead, positive to the left [rad]."""
    x, y = record.boxes[number].mean(axis=0)[:2] - record.positions[row, :2]
    return float((np.arctan2(y, x) - record.yaws[row] + np.pi) % (2 * np.pi) - np.pi)
