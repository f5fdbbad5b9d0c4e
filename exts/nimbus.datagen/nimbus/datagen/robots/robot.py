"""Robot: its model files, and the values that planners and controllers need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.arrays import FloatArray, Quaternion
from nimbus.datagen.episode.layout import Camera, Vector
from nimbus.datagen.files.quantities import Metres, Radians
from nimbus.datagen.files.strict_yaml import FileName, StrictModel
from nimbus.datagen.geometry.transforms import make_transform, quat_multiply
from nimbus.datagen.plan.grasp import GripperShape

ONLY_ARM = "arm"
"""Name of the arm of a one-armed robot."""


BASE_JOINTS = ("base_x", "base_y", "base_turn")
"""Joints of a moving base, before those of its arm: along x and y of its mount [m], then about z [rad]."""
_LARGEST_HAND = 0.5
"""Largest size of a hand [m]."""


def _wrong_count(field: str, count: int, joints: int) -> PydanticCustomError:
    what = f"{field} has {count} entries for {joints} joints"
    return PydanticCustomError("entries", what, {"at": (field,)})  # pyright: ignore[reportArgumentType]


class Tool(StrictModel):
    """Tool frame, in which grasps and poses are given: z points out of the hand, y along the closing direction."""

    link: str = Field(description="link to which the tool frame is fixed")
    position: Vector = Field(description="origin of the tool frame in the link's frame [m]")
    wxyz: Quaternion = Field(default=(1.0, 0.0, 0.0, 0.0), description="link_T_tool rotation")

    @property
    def link_T_hand(self) -> FloatArray:
        """Frame (4, 4) of cameras on the hand [m]: axes of the tool, the origin on its z axis nearest to the link's.

        Models differ in the axes of this link; with those of the tool, one camera fits every hand.
        """
        link_T_tool = make_transform(self.position, self.wxyz)
        link_T_tool[:3, 3] -= (link_T_tool[:3, 3] @ link_T_tool[:3, 2]) * link_T_tool[:3, 2]
        return link_T_tool


class Arm(StrictModel):
    """Joints moved by the motion planner; every list has one entry per joint.

    Velocity and effort limits that a robot file omits are those of the URDF; gains and acceleration limits are derived
    from its masses.
    """

    joints: tuple[str, ...]
    home: tuple[float, ...] = Field(description="posture at the start and of the skill `home` [rad]")
    velocity_limits: tuple[float, ...] = Field((), description="[rad/s]")
    acceleration_limits: tuple[float, ...] = Field((), description="[rad/s^2]")
    effort_limits: tuple[float, ...] = Field((), description="[N m]")
    stiffness: tuple[float, ...] = Field((), description="position gain [N m/rad]")
    damping: tuple[float, ...] = Field((), description="velocity gain [N m s/rad]")
    armature: float = Field(default=0.1, ge=0, description="rotor inertia seen at the joint [kg m^2]")

    @model_validator(mode="after")
    def _one_entry_per_joint(self) -> Arm:
        for field in ("home", "velocity_limits", "acceleration_limits", "effort_limits", "stiffness", "damping"):
            count = len(getattr(self, field))
            if count != len(self.joints) and not (count == 0 and field != "home"):
                raise _wrong_count(field, count, len(self.joints))
        return self


class Gripper(StrictModel):
    """Gripper with pads: on two fingers, on a jaw and a fixed finger, or on the fingers of a hand.

    One command moves all joints on the line between two postures, open and closed. It is the position of the first
    joint; each other joint is at ``offset + ratio * command``.
    """

    joints: tuple[str, ...] = Field(min_length=1)
    ratios: tuple[float, ...] = Field(
        (), description="travel of each joint per travel of the first joint; by default from the URDF"
    )
    offsets: tuple[float, ...] = Field(
        (),
        exclude_if=lambda offsets: not any(offsets),
        description="position of each joint when the first joint is at 0",
    )
    links: tuple[str, ...] = Field(description="links that may touch the held object; those of `fingers` are added")
    fingers: tuple[str, str] = Field(description="links with the pads")
    open: float = Field(description="position of the first joint when open [m, rad]")
    closed: float = Field(description="position of the first joint when closed on nothing [m, rad]")
    opening: Metres | None = Field(
        None,
        gt=0,
        le=_LARGEST_HAND,
        description="distance between the open pads [m]; by default computed for two sliding fingers",
    )
    effort_limit: float = Field(gt=0, description="effort limit of each joint [N, N m]")
    stiffness: float = Field(gt=0, description="position gain [N/m, N m/rad]")
    damping: float = Field(ge=0, description="velocity gain [N s/m, N m s/rad]")
    armature: float = Field(default=0.0, ge=0, description="rotor inertia seen at the joint [kg, kg m^2]")
    friction: float | None = Field(
        None,
        ge=0,
        exclude_if=lambda friction: friction is None,
        description="friction of each joint [N, N m]; by default from the URDF",
    )
    pad_width: Metres = Field(gt=0, le=_LARGEST_HAND, description="extent of a pad along the tool's x [m]")
    pad_height: Metres = Field(gt=0, le=_LARGEST_HAND, description="extent of a pad along the tool's z [m]")
    finger_thickness: Metres = Field(
        gt=0, le=_LARGEST_HAND, description="extent of a finger outside its pad, along the tool's y [m]"
    )
    finger_depth: Metres = Field(gt=0, le=_LARGEST_HAND, description="distance from the tool's origin to the palm [m]")

    @model_validator(mode="before")
    @classmethod
    def _from_postures(cls, given: object) -> object:
        """Accept two postures, ``open`` and ``closed`` with an entry per joint, for ratios and offsets."""
        if not isinstance(given, dict) or not all(
            isinstance(given.get(key), list | tuple) for key in ("open", "closed")
        ):
            return given
        opened, closed = given["open"], given["closed"]
        for key, posture in (("open", opened), ("closed", closed)):
            if len(posture) != len(given.get("joints", ())):
                raise _wrong_count(key, len(posture), len(given.get("joints", ())))
            if not all(isinstance(value, int | float) for value in posture):
                raise ValueError(f"'{key}' has an entry that is not a number")
        if "ratios" in given or "offsets" in given:
            raise ValueError("ratios and offsets follow from postures: remove them")
        travels = [one - other for one, other in zip(opened, closed, strict=True)]
        if 0 in travels:
            joint = given["joints"][travels.index(0)]
            raise ValueError(f"'{joint}' is at one position in both postures: put it under 'locked'")
        ratios = [travel / travels[0] for travel in travels]
        offsets = [one - ratio * opened[0] for one, ratio in zip(opened, ratios, strict=True)]
        return given | {"open": opened[0], "closed": closed[0], "ratios": tuple(ratios), "offsets": tuple(offsets)}

    @model_validator(mode="before")
    @classmethod
    def _with_fingers(cls, given: object) -> object:
        """Add the links with the pads to ``links``: otherwise no plan could move a held object."""
        if not isinstance(given, dict):
            return given
        links, fingers = given.get("links"), given.get("fingers")
        if not (isinstance(links, list | tuple) and isinstance(fingers, list | tuple)):
            return given
        return given | {"links": (*links, *(finger for finger in fingers if finger not in links))}

    @model_validator(mode="after")
    def _one_ratio_per_joint(self) -> Gripper:
        if self.ratios and len(self.ratios) != len(self.joints):
            raise _wrong_count("ratios", len(self.ratios), len(self.joints))
        if self.offsets and len(self.offsets) != len(self.joints):
            raise _wrong_count("offsets", len(self.offsets), len(self.joints))
        if self.open == self.closed:
            raise ValueError("open and closed are the same position")
        return self

    def joint_positions(self, opening: FloatArray) -> FloatArray:
        """Return the positions (..., J) of all joints for commands (...) of the first one [m, rad]."""
        return np.asarray(opening, dtype=float)[..., None] * np.array(self.ratios) + self._offsets

    def command_of(self, positions: FloatArray) -> FloatArray:
        """Return the command (..., J) that each of the joint positions (..., J) corresponds to [m, rad]."""
        return (positions - self._offsets) / np.array(self.ratios)

    @property
    def _offsets(self) -> FloatArray:
        return np.array(self.offsets or (0.0,) * len(self.joints))

    @property
    def width(self) -> float:
        """Distance between the open pads [m]."""
        return 2 * abs(self.open - self.closed) if self.opening is None else self.opening

    @property
    def travel_per_metre(self) -> float:
        """Travel of the first joint per meter of the pads' mean motion; positive when opening."""
        return (self.open - self.closed) / (self.width / 2)

    @property
    def shape(self) -> GripperShape:
        """Shape of the gripper, from which grasps are computed."""
        return GripperShape(
            opening=self.width,
            pad_width=self.pad_width,
            pad_height=self.pad_height,
            finger_thickness=self.finger_thickness,
            finger_depth=self.finger_depth,
        )


class Manipulator(StrictModel):
    """Arm with its hand."""

    name: str
    tool: Tool
    arm: Arm
    gripper: Gripper


class BaseTravel(StrictModel):
    """Ranges of a base that drives in any direction, relative to its pose at home."""

    x: tuple[Metres, Metres] = Field(description="Lowest and highest position forward [m].")
    y: tuple[Metres, Metres] = Field(description="Lowest and highest position to the left [m].")
    turn: tuple[Radians, Radians] = Field((-np.pi, np.pi), description="Lowest and highest heading [rad].")
    velocity: float = Field(0.6, gt=0, le=5, description="Largest speed [m/s, rad/s].")
    acceleration: float = Field(1.0, gt=0, le=10, description="Largest acceleration [m/s^2, rad/s^2].")
    effort: float = Field(1000.0, gt=0, description="Largest force and torque [N, N m].")

    @model_validator(mode="after")
    def _holds_home(self) -> BaseTravel:
        for name in ("x", "y", "turn"):
            low, high = getattr(self, name)
            if not (low <= 0.0 <= high and low < high):
                raise ValueError(f"'{name}' must go from 0 or less to 0 or more, because home is at 0")
        return self


class Adapter(StrictModel):
    """Cylinder between a flange and a hand, from the origin of the mount link along its z axis."""

    radius: Metres = Field(gt=0, le=_LARGEST_HAND, description="radius of the cylinder [m]")
    length: Metres = Field(gt=0, le=_LARGEST_HAND, description="length of the cylinder [m]")


class Piece(StrictModel):
    """URDF, or a part of one, from which a robot is assembled."""

    package: str = Field(
        default="", description="Python package that contains the model; empty if urdf is the user's file"
    )
    urdf: str = Field(description="path in the package's data folder, or path of the user's file")
    root: str = Field(default="", description="only link to use, with its descendants; empty for all links")
    prefix: str = Field(default="", description="prefix of the names of the piece's links and joints")
    mount: str = Field(
        default="", description="link of an earlier piece to which the piece is fixed; empty for the robot's base"
    )
    without: tuple[str, ...] = Field(
        default=(), exclude_if=lambda links: not links, description="links to omit, with their descendants"
    )
    weighed: tuple[str, ...] = Field(
        default=(), exclude_if=lambda links: not links, description="links whose mass comes from their collision shapes"
    )
    travel: BaseTravel | None = Field(
        default=None, exclude_if=lambda travel: travel is None, description="ranges of a driving base"
    )
    adapter: Adapter | None = Field(
        default=None, exclude_if=lambda adapter: adapter is None, description="cylinder between the mount and the piece"
    )
    position: Vector = (0.0, 0.0, 0.0)
    wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)


class Robot(StrictModel):
    """Description of a robot: the pieces of its URDF, and the values that a URDF does not contain."""

    name: FileName
    description: str = ""
    pieces: tuple[Piece, ...]
    arms: tuple[Manipulator, ...] = Field(min_length=1)
    position: Vector = Field(
        (0.0, 0.0, 0.0), description="position of the robot's base in the frame of the scene's mount [m]"
    )
    wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)
    locked: tuple[tuple[str, float], ...] = Field((), description="joints that are fixed at a position [rad, m]")
    decompose: tuple[str, ...] = Field((), description="links whose collision meshes are cut into convex pieces")
    cameras: tuple[str, ...] = Field((), description="links that a camera can be fixed to, besides the tools'")

    @property
    def tool(self) -> Tool:
        """Tool of the first arm."""
        return self.arms[0].tool

    @property
    def arm(self) -> Arm:
        """First arm."""
        return self.arms[0].arm

    @property
    def gripper(self) -> Gripper:
        """Gripper of the first arm."""
        return self.arms[0].gripper

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of the arms, ``("arm",)`` for a single one."""
        return tuple(arm.name for arm in self.arms)

    @property
    def has_base(self) -> bool:
        """Return True if the base drives."""
        return any(piece.travel is not None for piece in self.pieces)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all movable joints, arm by arm, with the arm's joints before the gripper's."""
        return tuple(name for one in self.arms for name in (*one.arm.joints, *one.gripper.joints))

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the commands, arm by arm: the arm's joints [rad], then the gripper's first joint [m or rad]."""
        if len(self.arms) == 1:
            return (*self.arm.joints, "gripper")
        return tuple(name for one in self.arms for name in (*one.arm.joints, f"{one.name}_gripper"))

    @property
    def action_index(self) -> tuple[int, ...]:
        """Index of the entry of an action that each joint follows."""
        index: list[int] = []
        first = 0
        for one in self.arms:
            count = len(one.arm.joints)
            index += [*range(first, first + count), *[first + count] * len(one.gripper.joints)]
            first += count + 1
        return tuple(index)

    @property
    def joint_ratios(self) -> tuple[float, ...]:
        """Travel of each joint relative to the joint that it follows."""
        return tuple(ratio for one in self.arms for ratio in (*[1.0] * len(one.arm.joints), *one.gripper.ratios))

    @property
    def joint_offsets(self) -> tuple[float, ...]:
        """Position of each joint where the command that it follows is 0."""
        own = [
            (*[0.0] * len(one.arm.joints), *(one.gripper.offsets or [0.0] * len(one.gripper.joints)))
            for one in self.arms
        ]
        return tuple(offset for offsets in own for offset in offsets)

    @property
    def home_action(self) -> tuple[float, ...]:
        """Action with every arm at home and every gripper open."""
        return tuple(value for one in self.arms for value in (*one.arm.home, one.gripper.open))

    @property
    def home_joints(self) -> tuple[float, ...]:
        """Joint positions with every joint at home."""
        action = np.array(self.home_action)[list(self.action_index)]
        return tuple((action * self.joint_ratios + self.joint_offsets).tolist())

    @property
    def gripper_links(self) -> tuple[str, ...]:
        """Links of all grippers."""
        return tuple(link for one in self.arms for link in (*one.gripper.links, *one.gripper.fingers))

    @property
    def camera_links(self) -> tuple[str, ...]:
        """Links that a camera can be fixed to."""
        return (*(arm.tool.link for arm in self.arms), *self.cameras)

    def with_arm(self, name: str) -> Robot:
        """Return the robot reduced to one arm."""
        return self.model_copy(update={"arms": tuple(arm for arm in self.arms if arm.name == name)})

    def mounted(self, camera: Camera) -> Camera:
        """Express a camera on a hand in the frame of the tool's link: ``left_hand`` is that of the arm ``left``."""
        hands = {f"{arm.name}_hand": arm.tool for arm in self.arms} | {"hand": self.tool}
        if (tool := hands.get(camera.mount)) is None:
            return camera
        link_T_hand = tool.link_T_hand
        x, y, z = (float(value) for value in link_T_hand[:3, :3] @ camera.position + link_T_hand[:3, 3])
        wxyz = quat_multiply(tool.wxyz, camera.wxyz)
        return replace(camera, mount=tool.link, position=(x, y, z), wxyz=wxyz)


def load_robot(name_or_path: str, *, where: str = "") -> Robot:
    """Load a robot file by name or path.

    Raises:
        InputError: There is no such robot, the file is invalid, or a name in it is missing from its model.
    """
    from nimbus.datagen.robots.robot_file import read_robot

    return read_robot(name_or_path, where=where)
