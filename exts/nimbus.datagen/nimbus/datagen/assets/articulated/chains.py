"""Conversion of links and joints to moving parts on one base, for the URDF and the MJCF reader."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.found import FoundAsset, FoundJoint, FoundPart
from nimbus.datagen.errors import InputError

MOST_JOINTS = 24
"""Largest number of moving parts of one asset."""
_DEEPEST = 2
"""Largest depth of nested moving parts; deeper chains are robots."""
_LONGEST = 200
"""Largest depth of nested links; it also ends the search in a cycle of joints."""
_HALF_TURN = np.pi
"""Range of a hinge without limits [rad]; ranges above 1.5 times this value are reduced to it."""
_LEAST = 1e-3
"""Range below which a joint counts as fixed [rad or the file's unit]."""
_ROBOT_FOLDERS = re.compile(r"(^|[/_])(robots?|grippers?|hands?|\w*_description)/", re.IGNORECASE)
_EMPTY_WORDS = re.compile(r"(^|_)(link|joint|body|hinge|slider|slide|j|of)_?\d*(?=_|$)|(?<=[a-z])_?(link|joint)\d*$")
"""Words in link names that carry no meaning."""


@dataclass(kw_only=True)
class RawJoint:
    """Joint of a source file, in the asset's frame."""

    name: str
    kind: str
    """``hinge`` or ``slide``; a joint of any other type is fixed."""
    axis: FloatArray
    """(3,) axis of any length."""
    origin: FloatArray
    """(3,) point on the axis, in the file's unit."""
    limits: tuple[float, float] | None
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    leader: str = ""
    """Name of the joint whose position this joint copies (mimic); empty if there is none."""


@dataclass(kw_only=True)
class RawLink:
    """Link of a source file."""

    name: str
    parent: str = ""
    words: tuple[str, ...] = ()
    joints: list[RawJoint] = field(default_factory=list)
    parts: list[FoundPart] = field(default_factory=list)
    holds: list[tuple[float, float, float]] = field(default_factory=list)


def attach_links(links: list[RawLink], asset: FoundAsset) -> FoundAsset:
    """Convert links to the parts and joints of an asset.

    Args:
        links: Links in any order, each with the name of its parent.
        asset: Remaining data of the asset.

    Raises:
        InputError: The joints form a robot-like chain or a cycle, or there are too many.
    """
    order = _in_order(links)
    carriers: dict[str, str] = {"": ""}
    depths: dict[str, int] = {"": 0}
    names: dict[str, str] = {}
    joints: list[FoundJoint] = []
    parts: list[FoundPart] = []
    for link in order:
        on, depth = carriers.get(link.parent, ""), depths.get(link.parent, 0)
        moving = [joint for joint in link.joints if not _flaw(joint)]
        depths[link.name] = depth + bool(moving)
        is_robot = bool(moving and _ROBOT_FOLDERS.search(asset.path))
        if depths[link.name] > _DEEPEST or is_robot:
            why = "is in a folder of robots" if is_robot else "is part of a chain of moving joints, as in a robot"
            what = f"joint '{(moving or link.joints)[0].name}' {why}"
            raise InputError(what, instead="import furniture, appliances or controls")
        carriers[link.name] = on
        if link.joints and _has_geometry(link, links):
            name = _free_name(link, names)
            joints.append(_found(link, name, on, [*moving, *link.joints][0], len(moving)))
            carriers[link.name] = name
        parts += [replace(part, link=carriers[link.name]) for part in link.parts]
    if len(joints) > MOST_JOINTS:
        what = f"has {len(joints)} joints; the limit is {MOST_JOINTS}"
        raise InputError(what, instead="make the joints of small parts fixed")
    if not joints:
        return replace(asset, parts=tuple(part for part in parts if not part.is_touched))
    joints = _with_base(joints, parts)
    flaws = [f"{joint.link}: {joint.flaw}; it is fixed" for joint in joints if joint.flaw]
    return replace(asset, parts=tuple(parts), joints=tuple(joints), notes=(*asset.notes, *flaws))


def merge_still(parts: Iterable[FoundPart], carriers: dict[str, str]) -> tuple[FoundPart, ...]:
    """Merge the parts of fixed joints into the parts that carry them.

    Args:
        parts: Parts, each with the name of its link.
        carriers: Name of the link that carries each fixed link; empty for the base.
    """

    def carrier(link: str) -> str:
        """Return the nearest moving link above a link; empty for the base."""
        while link in carriers:
            link = carriers[link]
        return link

    return tuple(replace(part, link=carrier(part.link)) for part in parts)


def _in_order(links: list[RawLink]) -> list[RawLink]:
    """Sort links so that parents come first."""
    known = {link.name: link for link in links}

    def depth(link: RawLink) -> int:
        """Return the number of ancestors of a link."""
        for count in range(_LONGEST):
            if link.parent not in known:
                return count
            link = known[link.parent]
        raise InputError("the fixed joints form a cycle", instead="give every link at most one parent")

    return sorted(links, key=depth)


def _flaw(joint: RawJoint) -> str:
    """Return the reason why a joint does not move; empty if it moves."""
    if joint.kind not in ("hinge", "slide"):
        return f"joint '{joint.name}' is of type {joint.kind}"
    if joint.leader:
        return f"joint '{joint.name}' follows '{joint.leader}' (mimic)"
    if not np.isfinite([*joint.axis, *joint.origin]).all() or np.linalg.norm(joint.axis) < 1e-9:
        return f"joint '{joint.name}' has no axis"
    if joint.limits is None:
        return "" if joint.kind == "hinge" else f"joint '{joint.name}' slides without limits"
    lower, upper = joint.limits
    if not np.isfinite([lower, upper]).all():
        return f"joint '{joint.name}' has limits that are not numbers"
    if lower > upper:
        return f"joint '{joint.name}' has its lower limit {lower:g} above its upper limit {upper:g}"
    return f"joint '{joint.name}' has no range of motion" if upper - lower < _LEAST else ""


def _found(link: RawLink, name: str, on: str, joint: RawJoint, count: int) -> FoundJoint:
    flaw = _flaw(joint)
    if not flaw and on:
        flaw = f"joint '{joint.name}' moves on {on}, which also moves"
    if not flaw and count > 1:
        flaw = f"has {count} joints at once"
    lower, upper = sorted(joint.limits or (0.0, _HALF_TURN))
    if not np.isfinite([lower, upper]).all():
        lower, upper = 0.0, _HALF_TURN
    is_hinge = joint.kind != "slide"
    if is_hinge and upper - lower > 1.5 * _HALF_TURN:
        lower, upper = 0.0, _HALF_TURN
    length = float(np.linalg.norm(joint.axis))
    x, y, z = (joint.axis / length if length > 1e-9 else np.array((0.0, 0.0, 1.0))).tolist()
    a, b, c = np.nan_to_num(joint.origin).tolist()
    return FoundJoint(
        link=name,
        on=on,
        kind="hinge" if is_hinge else "slide",
        axis=(x, y, z),
        origin=(a, b, c),
        lower=lower,
        upper=upper,
        damping=max(joint.damping, 0.0),
        friction=max(joint.friction, 0.0),
        stiffness=max(joint.stiffness, 0.0),
        words=tuple(filter(None, (*link.words, link.name, joint.name))),
        holds=tuple(link.holds),
        flaw=flaw,
    )


def _has_geometry(link: RawLink, links: list[RawLink]) -> bool:
    """Return True if a link, or a link fixed to it, has geometry."""
    return bool(link.parts) or any(
        _has_geometry(child, links) for child in links if child.parent == link.name and not child.joints
    )


def _with_base(joints: list[FoundJoint], parts: list[FoundPart]) -> list[FoundJoint]:
    """Fix the first joint if all parts would move, because an object needs a base."""
    if any(not part.link for part in parts):
        return joints
    first = next((joint for joint in joints if not joint.on), None)
    if first is None:
        return joints
    flaw = first.flaw or "otherwise all parts would move"
    freed = [
        replace(one, on="", flaw="" if "moves itself" in one.flaw else one.flaw)
        for one in joints
        if one.on == first.link
    ]
    return [replace(first, flaw=flaw) if one is first else one for one in joints if one.on != first.link] + freed


def _free_name(link: RawLink, names: dict[str, str]) -> str:
    """Derive the name of a part from its meaning or its link, without words that have no meaning."""
    for word in (*link.words, link.name, *(joint.name for joint in link.joints)):
        plain = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower())
        plain = _EMPTY_WORDS.sub("_", plain)
        plain = re.sub(r"__+", "_", plain).strip("_")[:40].strip("_")
        if re.match(r"[a-z]", plain):
            break
    else:
        plain = "part"
    name, number = plain, 2
    while name in names:
        name, number = f"{plain}_{number}", number + 1
    names[name] = link.name
    return name
