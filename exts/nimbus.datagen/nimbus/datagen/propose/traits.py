"""Traits: needs of skills that depend only on kinds. Each returns the reason why it is not met, or an empty text."""

from __future__ import annotations

from collections.abc import Callable

from nimbus.datagen.propose.catalogue import KindEntry, PartEntry

_HEAVY = 1.0
"""Mass above which an object slips slowly in the fingers [kg]."""
_FEW = 3
"""Smallest number of grasps of an object that can be reached between other objects."""
_ROOM = 0.01
"""Clearance between a thing and the walls of the cavity that receives it [m]."""
_BELOW_RIM = 0.005
"""Smallest depth below the rim of the center of a thing in a container [m]."""
_IN_DRAWER = 0.10
"""Length above which a thing that is lowered into a drawer collides with the case above it [m]."""
_SHALLOW = 0.045
"""Height of the rim below which a dish supports other things as a board does [m]."""
HANDLE = 0.06
"""Height above a cavity at which a container's handle obstructs the hand [m]."""
_BASE = 0.6
"""Smallest ratio of the sides of a flat top to the sides of a thing on it."""
_FIRM = 0.25
"""Smallest tilt margin of a thing that is put on another one [rad]."""
_TALL = 0.10
"""Largest height of a thing that is put on another one [m]."""

Trait = Callable[..., str]


def movable_part(kind: KindEntry) -> PartEntry | None:
    """Return the part that opens and closes: a drawer, a door or a lid; None without one."""
    return next((part for part in kind.parts if part.has_pressing and not part.is_spring), None)


def lacks_room(container: KindEntry) -> str:
    """Return the reason why a hand can put nothing into a kind, or an empty text."""
    if not container.room[0]:
        return f"a {container.category} has no cavity"
    if container.parts and not any(part.is_drawer or part.is_lid for part in container.parts):
        return f"a {container.category} does not open to the top"
    if not container.parts and container.size[2] > container.room[2] + HANDLE:
        return f"the handle of a {container.category} obstructs the hand"
    return ""


def largest_base(container: KindEntry) -> tuple[float, float]:
    """Return the longer and shorter side [m] of the largest thing that a hand can put into a kind with room."""
    long, short = container.room[0] - _ROOM, container.room[1] - _ROOM
    if any(part.is_drawer for part in container.parts):
        long = short = min(_IN_DRAWER, short)
    return long, short


def _graspable(kind: KindEntry) -> str:
    if kind.is_anchored or kind.parts:
        return "it is furniture"
    if kind.mass > _HEAVY:
        return f"it weighs {kind.mass:.1f} kg; the hand carries at most {_HEAVY:g} kg"
    return "the gripper has no firm grasp of it" if kind.grasps < _FEW or kind.is_ball else ""


def _fits(kind: KindEntry, container: KindEntry) -> str:
    if why := lacks_room(container):
        return why
    long, short = largest_base(container)
    if kind.size[0] > long or kind.size[1] > short:
        return f"a {kind.category} is {kind.size[0] * 100:.0f} x {kind.size[1] * 100:.0f} cm, too large"
    if not container.parts and kind.size[2] / 2 > container.room[2] - _BELOW_RIM:
        return f"a {kind.category} rises above the rim of a {container.category}"
    if kind.is_ball:
        return ""
    is_low = container.parts and kind.size[2] > container.room[2] - _ROOM
    return f"a {container.category} is too low for it" if is_low else ""


def _carries(support: KindEntry, kind: KindEntry) -> str:
    if kind.is_rolling or kind.is_ball or kind.tilt_margin < _FIRM or kind.size[2] > _TALL:
        return f"a {kind.category} does not stand firmly on another thing"
    if support.is_hollow and support.room[2] <= _SHALLOW and kind.radius * 2 <= support.room[1]:
        return ""
    if support.top[0] >= _BASE * kind.size[0] and support.top[1] >= _BASE * kind.size[1]:
        return ""
    return f"a {support.category} has no flat top for it"


def _has(test: Callable[[PartEntry], bool], what: str) -> Trait:
    return lambda kind: "" if any(map(test, kind.parts)) else f"a {kind.category} has {what}"


def _pourable(kind: KindEntry) -> str:
    slim = kind.symmetry == "revolution" and kind.size[0] < 0.08 and kind.size[2] > 0.05
    return "" if kind.is_hollow and slim and not _graspable(kind) else f"nothing can be poured from a {kind.category}"


def _receives(kind: KindEntry) -> str:
    wide = kind.is_hollow and kind.room[1] >= 0.09 and kind.room[2] <= 0.15 and not kind.parts
    return "" if wide else f"nothing can be poured into a {kind.category}"


def _peg_for(kind: KindEntry, board: KindEntry) -> str:
    words = set(kind.category.split()) & set(board.category.split())
    return "" if "tip" in kind.frames and "hole" in board.holes and words else "it does not go into that hole"


def _ring_for(kind: KindEntry, stand: KindEntry) -> str:
    return "" if "hole" in kind.holes and {"post", "tip"} <= set(stand.frames) else "it cannot hang there"


def _boxlike(kind: KindEntry) -> str:
    square = kind.symmetry == "box" and kind.size[0] < 0.1 and kind.size[2] > 0.7 * kind.size[1]
    return "" if square else f"a {kind.category} cannot be turned over by rolling it"


def _slides(kind: KindEntry) -> str:
    low = not kind.is_ball and not kind.is_rolling and not kind.is_anchored and kind.size[2] < 1.5 * kind.size[1]
    return "" if low and not kind.parts else f"a {kind.category} does not slide on the table"


TRAITS: dict[str, Trait] = {
    "graspable": _graspable,
    "fits": _fits,
    "carries": _carries,
    "has_handle": _has(lambda part: part.has_handle and part.has_pressing, "no part that opens by a handle"),
    "has_lid": _has(lambda part: part.has_pressing and not part.is_spring, "no part that closes"),
    "turnable": _has(lambda part: part.has_handle and not part.has_pressing, "nothing to turn"),
    "pressable": _has(lambda part: part.is_spring and part.has_pressing, "no button"),
    "pourable": _pourable,
    "receives": _receives,
    "peg_for": _peg_for,
    "ring_for": _ring_for,
    "boxlike": _boxlike,
    "slides": _slides,
    "on_belt": lambda kind: f"a {kind.category} does not move by itself",
}
"""Traits by relation. Their arguments are catalogue entries of kinds, in the order of the need's arguments."""


def find_part(kind: KindEntry, relation: str) -> str:
    """Return the name of the part that a relation concerns; empty if the kind has at most one part."""
    if len(kind.parts) < 2:
        return ""
    tests: dict[str, Callable[[PartEntry], bool]] = {
        "pressed": lambda part: part.is_spring,
        "turned": lambda part: part.has_handle and not part.has_pressing,
    }
    test = tests.get(relation, lambda part: part.has_pressing and not part.is_spring)
    return next((part.name for part in kind.parts if test(part)), "")
