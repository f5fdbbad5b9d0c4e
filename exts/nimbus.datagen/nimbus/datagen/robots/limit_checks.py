"""Checks of the values of a robot file against the joints of its model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Document, Keys
from nimbus.datagen.robots.robot import Manipulator
from nimbus.datagen.robots.urdf import Element, child_of, effort_of, parent_of, range_of, speed_of

_MJCF_TAG = {"link": "body"}
_NAMES = ("name", "filename", "file")
_ROUNDING = 1e-3
"""Tolerance of positions beyond a joint's range, as a fraction of it, for files with few digits."""


@dataclass(frozen=True)
class ModelLines:
    """URDF or MJCF file of the user; errors name the lines of its elements."""

    path: Path

    def error(self, element: Element, what: str, *, instead: str) -> InputError:
        """Return an error about a link, a joint or a mesh, ready to raise."""
        name = element.get("name") or element.get("filename") or ""
        line = self._line({element.tag, _MJCF_TAG.get(element.tag, element.tag)}, name)
        return InputError(what, where=f"{self.path}:{line}" if line else str(self.path), instead=instead)

    def _line(self, tags: set[str], name: str) -> int:
        """Return the line of the first element with such a tag and name; 0 if it is not in this file."""
        lines: list[int] = []
        parser = expat.ParserCreate()

        def note(tag: str, attributes: dict[str, str]) -> None:
            if tag in tags and name in map(attributes.get, _NAMES):
                lines.append(parser.CurrentLineNumber)

        parser.StartElementHandler = note
        with suppress(expat.ExpatError):  # MuJoCo also reads files that are not valid XML
            parser.Parse(self.path.read_bytes(), True)
        return lines[0] if lines else 0


def check_arm(document: Document, one: Manipulator, joints: Mapping[str, Element], at: Keys) -> None:
    """Check the joints of an arm and its posture at home.

    Args:
        document: The robot file.
        one: The arm, with the values of the file.
        joints: The joints of the model by name.
        at: Keys of its ``arm`` entry in the file.

    Raises:
        InputError: A joint cannot move, or the posture is beyond its limits.
    """
    arm = one.arm
    for index, (name, home) in enumerate(zip(arm.joints, arm.home, strict=True)):
        joint = joints[name]
        _check_range(document, (*at, "joints", index), joint)
        _check_position(document, (*at, "home", index), joint, home)
        for what, own, value, unit in _strength(joint):
            if not getattr(arm, own) and value <= 0:
                instead = f"write a larger value in the model, or '{own}' for all joints here"
                raise document.error(
                    (*at, "joints", index), f"'{name}' has {what} 0 {unit} in its model", instead=instead
                )


def check_gripper(document: Document, one: Manipulator, joints: Mapping[str, Element], at: Keys) -> None:
    """Check the positions of a gripper; ``at`` are the keys of its ``gripper`` entry in the file.

    Raises:
        InputError: A joint cannot move, or a position is beyond its limits.
    """
    gripper = one.gripper
    for index, name in enumerate(gripper.joints):
        _check_range(document, (*at, "joints", index), joints[name])
    for key, command in (("open", gripper.open), ("closed", gripper.closed)):
        if not gripper.offsets:
            _check_position(document, (*at, key), joints[gripper.joints[0]], command)
            continue
        posture = gripper.joint_positions(np.array(command)).tolist()
        for index, (name, position) in enumerate(zip(gripper.joints, posture, strict=True)):
            _check_position(document, (*at, key, index), joints[name], position)


def check_masses(document: Document, root: Element) -> None:
    """Check that every moving link has a mass; ``root`` is the model with its locked joints fixed.

    Raises:
        InputError: A moving link and the links fixed to it have neither a mass nor a collision shape.
    """
    heavy = {link.get("name", "") for link in root.findall("link") if _weighs(link)}
    above = {child_of(joint): parent_of(joint) for joint in root.findall("joint") if joint.get("type") == "fixed"}
    for name in tuple(heavy):  # a link has the mass of the links that are fixed to it
        while (name := above.get(name, "")) and name not in heavy:
            heavy.add(name)
    for joint in root.findall("joint"):
        if joint.get("type") != "fixed" and child_of(joint) not in heavy:
            what = f"link '{child_of(joint)}' moves, but has neither a mass nor a <collision> to compute one from"
            raise document.error(("urdf",), what, instead="write its <inertial> in the model")


def _weighs(link: Element) -> bool:
    mass = link.find("inertial/mass")
    return mass is not None and float(mass.get("value", "0")) > 0 or link.find("collision") is not None


def _strength(joint: Element) -> Iterator[tuple[str, str, float, str]]:
    slides = joint.get("type") == "prismatic"
    yield "velocity", "velocity_limits", speed_of(joint), "m/s" if slides else "rad/s"
    yield "effort", "effort_limits", effort_of(joint), "N" if slides else "N m"


def _check_range(document: Document, keys: Keys, joint: Element) -> None:
    name, limits = joint.get("name"), range_of(joint)
    if limits is None or limits[0] >= limits[1]:
        what = f"'{name}' cannot move: its model gives it no range"
        instead = f"""write <limit lower="…" upper="…" effort="…" velocity="…"/> into joint '{name}' of the model"""
        raise document.error(keys, what, instead=instead)


def _check_position(document: Document, keys: Keys, joint: Element, value: float) -> None:
    low, high = range_of(joint) or (-math.inf, math.inf)
    room = _ROUNDING * (high - low)
    if low - room <= value <= high + room:
        return
    slides, name = joint.get("type") == "prismatic", joint.get("name")
    unit, smaller, factor = ("m", "mm", 0.001) if slides else ("rad", "degrees", math.pi / 180)
    instead = f"write {low:.3g} to {high:.3g}"
    if low <= value * factor <= high and (slides or abs(value) > 2 * math.pi):
        instead += f"; {value:g} {smaller} are {value * factor:.3g} {unit}"
    raise document.error(keys, f"{value:g} {unit} is beyond the limits of '{name}'", instead=instead)
