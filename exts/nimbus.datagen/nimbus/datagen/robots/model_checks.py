"""Checks that a URDF is a valid robot: one tree of links, valid joints, and physical inertias."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.robots.limit_checks import ModelLines
from nimbus.datagen.robots.urdf import Element, child_of, parent_of, range_of

_KINDS = ("revolute", "continuous", "prismatic", "fixed")
_FREE = ("floating", "planar")
"""Joint types of URDF that the planners do not support."""
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_NUMBERS = {
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "limit": dict.fromkeys(("lower", "upper", "velocity", "effort"), 1),
    "mimic": {"multiplier": 1, "offset": 1},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(_INERTIA, 1),
    "mesh": {"scale": 3},
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
}
"""Number of values of an attribute, by tag and attribute."""
_LARGEST = {
    "xyz": 1e3,
    "rpy": 1e3,
    "lower": 1e4,
    "upper": 1e4,
    "velocity": 1e9,
    "effort": 1e9,
    "multiplier": 1e4,
    "offset": 1e4,
    "value": 1e5,
    "scale": 1e6,
    "size": 1e3,
    "radius": 1e3,
    "length": 1e3,
} | dict.fromkeys(_INERTIA, 1e6)
"""Largest value of each attribute [m, rad, kg, N and their products]: simulators lose precision beyond it."""
MOST_LINKS = 1000
"""Largest number of links of a model; a humanoid with two hands has about 100."""
_NAME = re.compile(r"\w[\w .()+-]{0,99}")
"""Name of a robot: programs that read a model write files of this name."""
_SOLIDS = ("box", "sphere", "cylinder")
_ROUNDING = 1e-3
"""Tolerance of the triangle inequality, as a fraction of the largest moment of inertia, for files with few digits."""


def check_model(root: Element, path: Path) -> None:
    """Check the links and joints of a URDF.

    Args:
        root: The URDF.
        path: The user's file, URDF or MJCF.

    Raises:
        InputError: The model is invalid; the error describes the first fault.
    """
    file = ModelLines(path)
    if not _NAME.fullmatch(name := root.get("name", "arm")):
        what = f"the <robot> is called '{name[:60]}'"
        raise file.error(root, what, instead='write letters, digits, spaces and any of _ - . ( ) +, as in name="arm"')
    if (count := len(root.findall("link"))) > MOST_LINKS:
        raise InputError(f"{count} links; the limit is {MOST_LINKS}", where=str(path), instead="remove links")
    links = _by_name(root, "link", file)
    joints = _by_name(root, "joint", file)
    for element in (*links.values(), *joints.values()):
        _check_numbers(element, file)
    for joint in joints.values():
        _check_joint(joint, links, file)
    _check_mimics(joints, file)
    _check_tree(links, joints, file)
    for link in links.values():
        _check_inertia(link, file)
    if root.find("link/collision/geometry") is None:
        what = "no link has a <collision> shape: the robot could not touch or hold anything"
        raise InputError(what, where=str(path), instead="write one for each link, such as a copy of its <visual>")


def _by_name(root: Element, tag: str, file: ModelLines) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in root.findall(tag):
        name = element.get("name", "")
        if not name or name in found:
            what = f"two {tag}s are called '{name}'" if name else f"a <{tag}> has no name"
            raise file.error(element, what, instead="give each a unique name")
        found[name] = element
    return found


def _check_numbers(owner: Element, file: ModelLines) -> None:
    for element in owner.iter():
        for attribute, count in _NUMBERS.get(element.tag, {}).items():
            text = element.get(attribute)
            if text is None:
                continue
            values = _finite(text)
            if len(values) != count:
                what = f"{attribute}=\"{text}\" in <{element.tag}> of {owner.tag} '{owner.get('name')}'"
                raise file.error(owner, what, instead=f"write {count} number{'s' if count > 1 else ''}")
            if (most := max(map(abs, values))) > _LARGEST[attribute]:
                what = (
                    f"{attribute}=\"{text}\" in <{element.tag}> of {owner.tag} '{owner.get('name')}' is far too large"
                )
                instead = f"{most:g} is beyond {_LARGEST[attribute]:g}: write it in meters, radians, kilograms"
                if attribute in ("lower", "upper"):
                    instead = 'remove the limits, and write type="continuous" for a joint that turns freely'
                raise file.error(owner, what, instead=instead)
            if element.tag in _SOLIDS and min(values) <= 0:
                what = f"the {element.tag} of {owner.tag} '{owner.get('name')}' has {attribute}=\"{text}\""
                raise file.error(owner, what, instead="write its size in meters, above 0")


def _finite(text: str) -> list[float]:
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        return []
    return values if all(map(math.isfinite, values)) else []


def _check_joint(joint: Element, links: Mapping[str, Element], file: ModelLines) -> None:
    name, kind = joint.get("name"), joint.get("type", "")
    if kind in _FREE:
        instead = "make it fixed, or replace it by prismatic and revolute joints"
        raise file.error(joint, f"joint '{name}' is {kind}, which planners do not support", instead=instead)
    if kind not in _KINDS:
        raise file.error(joint, f"joint '{name}' has the type '{kind}'", instead=suggest(kind, _KINDS))
    for link in (parent_of(joint), child_of(joint)):
        if link not in links:
            raise file.error(joint, f"joint '{name}' refers to the unknown link '{link}'", instead=suggest(link, links))
    if kind == "fixed":
        return
    axis = joint.find("axis")
    if axis is not None and not any(_finite(axis.get("xyz", "1 0 0"))):
        raise file.error(joint, f"the axis of joint '{name}' is 0 0 0", instead="write a direction, such as 0 0 1")
    low, high = range_of(joint) or (0.0, 0.0)
    if low > high and kind != "continuous":
        what = f"joint '{name}' has lower {low:g} above upper {high:g}"
        raise file.error(joint, what, instead=f'write lower="{high:g}" upper="{low:g}"')


def _check_tree(links: Mapping[str, Element], joints: Mapping[str, Element], file: ModelLines) -> None:
    above: dict[str, Element] = {}
    for joint in joints.values():
        if (other := above.get(child_of(joint))) is not None:
            what = (
                f"link '{child_of(joint)}' is the child of two joints, '{other.get('name')}' and '{joint.get('name')}'"
            )
            raise file.error(joint, what, instead="remove one of them: a robot is a tree of links")
        above[child_of(joint)] = joint
    if circle := _circle({link: parent_of(joint) for link, joint in above.items()}, links):
        last = above[circle[0]]
        what = f"joint '{last.get('name')}' closes a loop of links: {', '.join(circle)}"
        raise file.error(last, what, instead="remove one joint of the loop: a robot is a tree of links")
    first, *others = (link for link in links if link not in above)
    if others:
        what = f"links '{first}' and '{others[0]}' both lack a parent"
        raise file.error(links[others[0]], what, instead="join them with a fixed joint, or remove one")


def _circle(above: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return names that form a cycle under the parent relation; empty without one."""
    known: set[str] = set()
    for name in names:
        walked: dict[str, None] = {}
        while name in above and name not in known and name not in walked:
            walked[name] = None
            name = above[name]
        if name in walked:
            circle = list(walked)[list(walked).index(name) :]
            return [circle[0], *circle[:0:-1]]
        known.update(walked)
    return []


def _check_mimics(joints: Mapping[str, Element], file: ModelLines) -> None:
    leaders: dict[str, str] = {}
    for name, joint in joints.items():
        if (mimic := joint.find("mimic")) is None:
            continue
        leader = leaders[name] = mimic.get("joint", "")
        if leader not in joints:
            instead = suggest(leader, joints)
            raise file.error(joint, f"joint '{name}' mimics '{leader}', which is not a joint", instead=instead)
        if joints[leader].get("type") == "fixed":
            what = f"joint '{name}' mimics '{leader}', which is fixed"
            raise file.error(joint, what, instead="fix both, or remove <mimic>")
    if circle := _circle(leaders, leaders):
        what = f"joints mimic each other in a circle: {', '.join(circle)}"
        raise file.error(joints[circle[0]], what, instead="remove one <mimic>: one joint leads")


def _check_inertia(link: Element, file: ModelLines) -> None:
    name, mass, tensor = link.get("name"), link.find("inertial/mass"), link.find("inertial/inertia")
    if mass is not None and float(mass.get("value", "0")) < 0:
        what = f"link '{name}' has a mass of {mass.get('value')} kg"
        raise file.error(link, what, instead="write its mass in kg")
    if tensor is None:
        return
    xx, xy, xz, yy, yz, zz = (float(tensor.get(entry, "0")) for entry in _INERTIA)
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    least, middle, most = (float(value) for value in moments)
    room = _ROUNDING * abs(most)
    if least >= -room and least + middle >= most - room:
        return
    said = (
        f"the inertia of link '{name}' is impossible: its principal moments are {least:.3g}, {middle:.3g}, {most:.3g}"
    )
    rule = "none may be negative" if least < -room else "the largest may not exceed the sum of the others"
    raise file.error(link, f"{said} kg m²; {rule}", instead="export it again, in kg m² about its center of mass")
