"""Comparison of the conventions that a server declares with those of the task, before the first episode."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, TypeAlias

from msgspec import Meta

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import Rate
from nimbus.datagen.files.codec import from_plain
from nimbus.datagen.policies.control_modes import MODE_NAMES
from nimbus.datagen.policies.policy import PolicyTask
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.policies.wires.name_map import Translation

_RADIANS = ("rad", "radian", "radians", "SI")
_ABSOLUTE = ("joint", "absolute", "joint_positions", "absolute_joint_positions")


GivenName: TypeAlias = Annotated[str, Meta(max_length=300)]
"""Name that a server gives."""
Number: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]
"""Number of things or steps in a declaration."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """Conventions of a server, named as in the metadata of openpi's wire; undeclared ones are empty."""

    checkpoint: GivenName = ""
    """Name of the weights, which distinguishes evaluations."""
    robot: GivenName = ""
    rate: Rate = 0.0
    """Actions per second [Hz]."""
    units: str = ""
    control_mode: str = ""
    rotation: str = ""
    """Form of the tools' rotations, named as in exports."""
    state_form: str = ""
    """``measured`` or ``commanded``."""
    joint_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    action_dim: Number = 0
    action_horizon: Number = 0
    """Number of actions of an answer."""
    limit: Number = 0
    """Largest number of steps of an episode."""
    cameras: dict[str, tuple[int, int] | None] | None = None
    """Width and height [px] of the images that the server needs, by their names on the wire."""
    environment_state: bool = False
    """True if the server needs features of the scene."""
    state_keys: tuple[str, ...] = ()
    """Names on the wire of the states that the server needs."""
    action_keys: tuple[str, ...] = ()
    """Names on the wire of the arrays in its answers."""
    prompt: str = ""
    poses: tuple[str, ...] = ()
    """Names of the arrays in its answers that are poses of a tool."""
    problems: tuple[str, ...] = field(default=())
    """Conventions that no map of names can adapt."""

    @property
    def view(self) -> SignalView | None:
        """View, named as in exports; None if the server declares none."""
        mode = "joint" if self.control_mode in ("", *_ABSOLUTE) else self.control_mode
        if mode not in MODE_NAMES or not (self.control_mode or self.rotation or self.state_form):
            return None
        return SignalView(actions=mode, rotation=self.rotation or "6d", state=self.state_form or "measured")


def read_declaration(metadata: Mapping[object, object], *, where: str) -> Declaration:
    """Read the declaration in a server's metadata; other entries are ignored.

    Raises:
        InputError: An entry has an invalid form.
    """
    known = {one.name for one in fields(Declaration)} - {"problems"}
    try:
        return from_plain(Declaration, {name: value for name, value in metadata.items() if name in known})
    except ValueError as error:
        raise InputError(
            f"the metadata have another form: {error}", where=where, instead="see docs/policies.md"
        ) from None


def compare_conventions(declared: Declaration, task: PolicyTask, translation: Translation, *, mapped: set[str]) -> None:
    """Compare a server's conventions with the task's.

    Args:
        declared: Conventions of the server.
        task: Conventions of the task.
        translation: Mapping between the names on the wire and those of the task.
        mapped: Fields given by ``--map``, whose names may differ as long as the numbers of entries agree.

    Raises:
        InputError: A convention differs; the first one is reported.
    """
    where = translation.where
    problems = [*declared.problems]
    names, width = translation.names, len(task.action_names)
    for what, theirs, ours in (("robot", declared.robot, task.robot), ("rate", declared.rate, task.rate)):
        same = theirs == ours if isinstance(theirs, str) else math.isclose(theirs, float(ours), rel_tol=1e-3)
        if theirs and not same:
            problems.append(f"the server expects the {what} {theirs}, the task has {ours}")
    if declared.units and declared.units not in _RADIANS:
        what = "actions are absolute positions in rad and m"
        problems.append(f"the server has the units '{declared.units}', but {what}")
    mode = "joint" if declared.control_mode in _ABSOLUTE else declared.control_mode
    if mode and mode != task.control_mode:
        problems.append(f"the server has the control mode '{mode}', but it is evaluated in '{task.control_mode}'")
    if declared.poses and not task.control_mode.startswith("tool"):
        what = f"the server's action '{declared.poses[0]}' is a pose of the hand"
        problems.append(f"{what}, but it is evaluated in '{task.control_mode}'")
    for what, theirs, ours in (
        ("actions", declared.action_names, task.action_names),
        ("state", declared.joint_names, task.state_names),
    ):
        if theirs and what not in mapped and theirs != ours:
            problems.append(f"the server's {what} are {_listed(theirs)}; the task's are {_listed(ours)}")
    total = declared.action_dim or len(declared.action_names)
    if total and total != width:
        problems.append(f"the server's actions have {total} entries, the task's {width}: {_listed(task.action_names)}")
    sizes = translation.picture_sizes()
    for name, size in (declared.cameras or {}).items():
        if name not in sizes:
            problems.append(f"the server wants a picture '{name}'; there are {_listed(tuple(sizes))}")
        elif size and tuple(size) != sizes[name]:
            what = "the server wants '{}' with {} x {}, but the image has {} x {}"
            problems.append(what.format(name, *size, *sizes[name]))
    for what, theirs, ours in (
        ("a state", declared.state_keys, names.state or {}),
        ("a prompt", (declared.prompt,) if declared.prompt else (), {names.prompt}),
    ):
        problems += [f"the server wants {what} '{name}'" for name in theirs if name not in ours]
    if declared.action_keys:
        lacking = [name for name in names.actions or {} if name not in declared.action_keys]
        problems += [f"the server answers {_listed(declared.action_keys)}, not '{name}'" for name in lacking]
    if problems:
        raise InputError(
            problems[0], where=where, instead="serve the policy of this task, or map names with --map FILE"
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "none"
