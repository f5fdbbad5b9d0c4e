"""Robot file: a user's description of a robot, completed from its model and from other robot files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from nimbus.datagen.episode.layout import Vector
from nimbus.datagen.errors import InputError, StorageError, suggest
from nimbus.datagen.files import strict_yaml
from nimbus.datagen.files.quantities import Radians
from nimbus.datagen.files.scene_files import resolve_from, scene_file
from nimbus.datagen.files.strict_yaml import Document, FileName, Keys, Name, StrictModel
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_multiply
from nimbus.datagen.robots.defaults import complete_robot
from nimbus.datagen.robots.limit_checks import check_arm, check_gripper, check_masses
from nimbus.datagen.robots.mesh_checks import check_mesh_files
from nimbus.datagen.robots.mjcf import convert_to_urdf, is_mjcf
from nimbus.datagen.robots.model_checks import MOST_LINKS, check_model
from nimbus.datagen.robots.robot import (
    BASE_JOINTS,
    ONLY_ARM,
    Adapter,
    Arm,
    BaseTravel,
    Gripper,
    Manipulator,
    Piece,
    Robot,
    Tool,
    load_robot,
)
from nimbus.datagen.robots.urdf import (
    Element,
    assemble,
    child_of,
    drop_inertials,
    lock_joints,
    model_path,
    piece_path,
    range_of,
    read_urdf,
)
from nimbus.datagen.robots.wheels import WheelName, model_in_wheel

MOST_ARMS = 16
"""Largest number of arms of a robot; each may be a whole model of its own."""


class MountPose(StrictModel):
    """Pose of a mount: rotations about z, the turned x and the tilted z, and a translation."""

    position: Vector = Field(default=(0.0, 0.0, 0.0), description="x, y, z [m]")
    turn: Radians = Field(default=0.0, description="Rotation about z.")
    tilt: Radians = Field(default=0.0, description="Rotation about the rotated x axis.")
    spin: Radians = Field(default=0.0, description="Rotation about the tilted z axis.")

    @property
    def wxyz(self) -> tuple[float, float, float, float]:
        """Orientation of the mount."""
        if not (self.turn or self.tilt or self.spin):
            return 1.0, 0.0, 0.0, 0.0
        turned = quat_multiply(quat_from_axis_angle((0, 0, 1), self.turn), quat_from_axis_angle((1, 0, 0), self.tilt))
        return quat_multiply(turned, quat_from_axis_angle((0, 0, 1), self.spin)) if self.spin else turned


class RobotModelFile(StrictModel):
    """Location of a model: in an installed package, in a wheel, or in a file of the user."""

    package: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$",  # an error quotes it in a command
        description="Python package with the model; empty if urdf is a path relative to this file.",
    )
    wheel: WheelName = Field(
        "", description="Wheel with the model, such as gym-aloha==0.1.5; it is read, but not installed."
    )
    urdf: str = Field("", description="URDF or MJCF: path in the package or the wheel, or relative to this file.")
    angles: Literal["", "radian", "degree"] = Field(
        "", description="Unit of angles in an MJCF, if only a file that includes it states the unit."
    )
    part: str = Field("", description="Only link to use, with its descendants; by default all links.")
    without: tuple[str, ...] = Field((), description="Links to omit, with their descendants.")
    weighed: tuple[str, ...] = Field(
        (), description="Links whose mass and inertia come from their collision shapes, because the model's are wrong."
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if self.package and self.wheel:
            raise ValueError("give either 'package' or 'wheel'")
        return self


class BorrowedHand(MountPose, RobotModelFile):
    """Gripper that is fixed to a link: the gripper and the tool frame of another robot, or a separate model."""

    of: str = Field(
        "", description="Robot with the gripper: a name from scenes/robots, or a path; empty if 'urdf' names a model."
    )
    mount: str = Field(description="Link to which the gripper is fixed.")
    adapter: Adapter | None = Field(None, description="Cylinder that fills the space between mount and gripper.")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.of) == bool(self.urdf):
            raise ValueError("give either 'of' (another robot) or 'urdf' (a model of the gripper)")
        return self


class ArmEntry(StrictModel):
    """Arm with its hand: a ``tool`` and a ``gripper``, or a borrowed ``hand``."""

    arm: Arm | None = None
    tool: Tool | None = None
    gripper: Gripper | None = None
    hand: BorrowedHand | None = None


class WholeArm(ArmEntry):
    """One of several arms; instead of its parts, ``of`` may name a one-armed robot to copy."""

    of: str = Field("", description="One-armed robot to use as this arm.")
    place: MountPose = Field(MountPose(), description="Pose of that robot's base.")


class RobotFile(ArmEntry, RobotModelFile):
    """Content of a robot file."""

    name: FileName
    description: str = ""
    place: MountPose = Field(MountPose(), description="Pose of the robot's base in the frame of the scene's mount.")
    base: BaseTravel | None = Field(None, description="Ranges of a driving base; its joints come before the arm's.")
    locked: dict[str, float] = Field({}, description="Joints that are fixed at a position [rad, m]; by default at 0.")
    arms: dict[Name, WholeArm] = Field(
        {}, max_length=MOST_ARMS, description="Arms by name, for a robot with several arms."
    )
    decompose: tuple[str, ...] = Field((), description="Links whose collision meshes are cut into convex pieces.")
    cameras: tuple[str, ...] = Field((), description="Links that a camera can be fixed to, besides the tool's.")

    @model_validator(mode="after")
    def _one_arm_or_several(self) -> RobotFile:
        if bool(self.arms) == (self.arm is not None):
            raise ValueError("give either 'arm' or 'arms'")
        entries = {**self.arms} if self.arms else {"": self}
        for name, entry in entries.items():
            at = f"arms.{name}: " if name else ""
            if isinstance(entry, WholeArm) and entry.of:
                if entry.arm or entry.tool or entry.gripper or entry.hand:
                    raise ValueError(f"{at}an arm with 'of' cannot have its own parts")
            elif entry.arm is None:
                raise ValueError(f"{at}no 'arm'")
            elif (entry.hand is None or not entry.hand.of) == (entry.gripper is None):
                raise ValueError(f"{at}give a 'tool' and a 'gripper', or a 'hand' of another robot")
            elif entry.gripper and not entry.tool:
                raise ValueError(f"{at}no 'tool', which a gripper needs")
        if not self.urdf and not all(entry.of for entry in self.arms.values()):
            raise ValueError("no 'urdf'")
        own = self.arm
        if self.base and (own is None or not self.urdf):
            raise ValueError("a 'base' is for a robot with one arm and an 'urdf'")
        given = own and (
            own.velocity_limits or own.acceleration_limits or own.effort_limits or own.stiffness or own.damping
        )
        if self.base and given:
            raise ValueError("with a 'base', leave out limits and gains of the arm: they come from its model")
        if len(self.arms) == 1:
            raise ValueError("'arms' has one entry: write 'arm' for a robot with one")
        return self


def read_robot(name_or_path: str, *, where: str = "") -> Robot:
    """Read a robot file and complete it from its model.

    Raises:
        InputError: There is no such robot, the file is invalid, or a name in it is missing from its model.
    """
    path = scene_file("robots", name_or_path, kind="robot", where=where)
    document = strict_yaml.read(path)
    return _Completion(document, document.validate(RobotFile), path.parent).robot()


def list_wheels(name_or_path: str, *, inside: tuple[Path, ...] = ()) -> dict[str, str]:
    """Return the wheels that a robot file and the robots in it need, with the location of each for errors.

    Args:
        name_or_path: Name of a shipped robot, or path of a file.
        inside: Robot files that contain this one.

    Raises:
        InputError: There is no such robot, its file is invalid, or it contains itself.
    """
    path = scene_file("robots", name_or_path, kind="robot")
    if path in inside:
        raise InputError("the robot contains itself", where=str(path), instead="name another robot")
    document = strict_yaml.read(path)
    file = document.validate(RobotFile)
    found = {file.wheel: document.where(("wheel",))} if file.wheel else {}
    entries = {("arms", name): entry for name, entry in file.arms.items()} if file.arms else {(): file}
    for keys, entry in entries.items():
        if (hand := entry.hand) is not None and hand.wheel:
            found[hand.wheel] = document.where((*keys, "hand", "wheel"))
        others = (entry.of if isinstance(entry, WholeArm) else "", hand.of if hand else "")
        for other in filter(None, others):
            found |= list_wheels(resolve_from(path.parent, other), inside=(*inside, path))
    return found


@dataclass(frozen=True)
class _Completion:
    document: Document
    file: RobotFile
    folder: Path

    def robot(self) -> Robot:
        """Build the robot described by the file."""
        file = self.file
        pieces: list[Piece] = []
        if file.urdf:
            pieces.append(self._piece(file, ()).model_copy(update={"travel": file.base}))
        arms: list[Manipulator] = []
        cut = list(file.decompose)
        for name, entry in (file.arms or {ONLY_ARM: file}).items():
            arm, more, links = self._arm(name, entry)
            arms.append(arm)
            pieces += more
            cut += links
        root = assemble(pieces, robot=file.name)
        if (count := len(root.findall("link"))) > MOST_LINKS:
            what = f"{count} links of all its models; the limit is {MOST_LINKS}"
            raise self.document.error((), what, instead="remove arms, or links from their models")
        self._check_unique(root)
        self._check_names(root, arms)
        self._check_limits(root, arms)
        locked = self._locked(root, arms)
        lock_joints(root, locked)
        check_masses(self.document, root)
        return Robot(
            name=file.name,
            description=file.description,
            pieces=tuple(pieces),
            arms=tuple(complete_robot(arm, root, file.base) for arm in arms),
            position=file.place.position,
            wxyz=file.place.wxyz,
            locked=tuple(sorted(locked.items())),
            decompose=tuple(cut),
            cameras=file.cameras,
        )

    def _piece(self, source: RobotModelFile, keys: Keys) -> Piece:
        """Check the model that an entry names, and return its piece."""
        model = source.urdf if source.package else str(self.folder / source.urdf)
        if source.wheel:
            model = str(model_in_wheel(source.wheel, source.urdf, where=self.document.where((*keys, "wheel"))))
        if source.angles and not source.package and is_mjcf(Path(model)):
            model = str(convert_to_urdf(Path(model), angles=source.angles))
        piece = Piece(
            package=source.package, urdf=model, root=source.part, without=source.without, weighed=source.weighed
        )
        try:
            path, urdf = model_path(piece, robot=self.file.name), piece_path(piece, robot=self.file.name)
        except StorageError:
            raise
        except InputError as error:
            key = "package" if piece.package and "package '" in error.what and "is not in" not in error.what else "urdf"
            raise self.document.error((*keys, key), error.what, instead=error.instead) from None
        root = read_urdf(urdf)
        drop_inertials(root, source.weighed)
        check_model(root, path)
        check_mesh_files(piece, robot=self.file.name)
        for key, links in (
            ("part", (source.part,) if source.part else ()),
            ("without", source.without),
            ("weighed", source.weighed),
        ):
            self._check(root, "link", links, (*keys, key))
        children = {child_of(joint) for joint in root.findall("joint")}
        if whole := next((link for link in source.without if link == source.part or link not in children), ""):
            what = f"nothing is left without '{whole}'"
            raise self.document.error((*keys, "without"), what, instead="name links that are attached to others")
        return piece

    def _at(self, name: str, *keys: str) -> Keys:
        return keys if name == ONLY_ARM and not self.file.arms else ("arms", name, *keys)

    def _borrowed(self, name: str, keys: Keys) -> Robot:
        other = load_robot(resolve_from(self.folder, name), where=self.document.where(keys))
        if len(other.arms) > 1:
            raise self.document.error(
                keys, f"robot '{other.name}' has several arms", instead="name a robot with one arm"
            )
        return other

    def _arm(self, name: str, entry: ArmEntry) -> tuple[Manipulator, list[Piece], list[str]]:
        """Return an arm, the pieces that its model needs in addition to the file's own URDF, and links to decompose.

        The links are those that the file of a borrowed arm or hand names.
        """
        prefix = f"{name}_" if self.file.arms else ""
        if isinstance(entry, WholeArm) and entry.of:
            other = self._borrowed(entry.of, self._at(name, "of"))
            if other.has_base:
                what = f"robot '{other.name}' has a driving base, which an arm cannot have"
                raise self.document.error(self._at(name, "of"), what, instead="name a robot with a fixed base")
            place = {"position": entry.place.position, "wxyz": entry.place.wxyz}
            pieces = [
                piece.model_copy(
                    update={"prefix": prefix + piece.prefix, "mount": prefix + piece.mount if piece.mount else ""}
                    | ({} if piece.mount else place)
                )
                for piece in other.pieces
            ]
            arm = _prefixed(other.arms[0], prefix)
            return arm.model_copy(update={"name": name}), pieces, [prefix + link for link in other.decompose]
        assert entry.arm is not None
        own_arm = entry.arm
        if self.file.base is not None:
            joints, home = (*BASE_JOINTS, *own_arm.joints), (0.0, 0.0, 0.0, *own_arm.home)
            own_arm = own_arm.model_copy(update={"joints": joints, "home": home})
        if (hand := entry.hand) is None:
            assert entry.tool is not None and entry.gripper is not None
            return Manipulator(name=name, tool=entry.tool, arm=own_arm, gripper=entry.gripper), [], []
        if not hand.of:
            assert entry.tool is not None and entry.gripper is not None
            own = self._piece(hand, self._at(name, "hand"))
            place = {"mount": hand.mount, "adapter": hand.adapter, "position": hand.position, "wxyz": hand.wxyz}
            manipulator = Manipulator(name=name, tool=entry.tool, arm=own_arm, gripper=entry.gripper)
            return manipulator, [own.model_copy(update=place)], []
        other = self._borrowed(hand.of, self._at(name, "hand", "of"))
        source = other.pieces[-1]
        piece = Piece(
            package=source.package,
            urdf=source.urdf,
            without=source.without,
            weighed=source.weighed,
            root=other.tool.link.removeprefix(source.prefix),
            prefix=prefix + source.prefix,
            mount=hand.mount,
            adapter=hand.adapter,
            position=hand.position,
            wxyz=hand.wxyz,
        )
        borrowed = _prefixed(other.arms[0], prefix)
        manipulator = Manipulator(name=name, tool=borrowed.tool, arm=own_arm, gripper=borrowed.gripper)
        return manipulator, [piece], [prefix + link for link in other.decompose if link in other.gripper_links]

    def _check_unique(self, root: Element) -> None:
        """Check that names of links and joints are unique over all models."""
        for kind in ("link", "joint"):
            names = [element.get("name", "") for element in root.findall(kind)]
            if repeated := next((name for name, count in Counter(names).items() if count > 1), ""):
                what = f"two models of this robot both have a {kind} '{repeated}'"
                raise self.document.error(
                    (), what, instead="describe one of them in another robot file, and name that file in 'of:'"
                )

    def _check_names(self, root: Element, arms: list[Manipulator]) -> None:
        """Check that the model has the links and joints that the file names."""
        for arm in arms:
            entry = self.file.arms.get(arm.name, self.file)
            if isinstance(entry, WholeArm) and entry.of:
                continue
            self._check(root, "joint", arm.arm.joints, self._at(arm.name, "arm", "joints"))
            if entry.hand is not None:
                self._check(root, "link", (entry.hand.mount,), self._at(arm.name, "hand", "mount"))
                if entry.hand.of:
                    continue
            self._check(root, "link", (arm.tool.link,), self._at(arm.name, "tool", "link"))
            self._check(root, "joint", arm.gripper.joints, self._at(arm.name, "gripper", "joints"))
            self._check(root, "link", arm.gripper.fingers, self._at(arm.name, "gripper", "fingers"))
            self._check(root, "link", arm.gripper.links, self._at(arm.name, "gripper", "links"))
        self._check(root, "link", self.file.cameras, ("cameras",))
        self._check(root, "link", self.file.decompose, ("decompose",))
        self._check(root, "joint", tuple(self.file.locked), ("locked",))

    def _check_limits(self, root: Element, arms: list[Manipulator]) -> None:
        """Check that postures are within the limits of the model; parts of other robots are checked in their files."""
        joints = {joint.get("name", ""): joint for joint in root.findall("joint")}
        for one in arms:
            entry = self.file.arms.get(one.name, self.file)
            if entry.arm:
                check_arm(self.document, one, joints, self._at(one.name, "arm"))
            if entry.gripper:
                check_gripper(self.document, one, joints, self._at(one.name, "gripper"))

    def _check(self, root: Element, kind: str, names: tuple[str, ...], keys: Keys) -> None:
        known = {element.get("name", "") for element in root.findall(kind)}
        for index, name in enumerate(names):
            if name in known:
                continue
            at = keys if len(names) == 1 or (*keys, index) not in self.document.values else (*keys, index)
            raise self.document.error(at, f"its URDF has no {kind} '{name}'", instead=suggest(name, known))

    def _locked(self, root: Element, arms: list[Manipulator]) -> dict[str, float]:
        """Return movable joints outside all arms with their fixed positions, from the file or at rest."""
        moved = {name for arm in arms for name in (*arm.arm.joints, *arm.gripper.joints)}
        for name in sorted(moved & self.file.locked.keys()):
            raise self.document.error(("locked", name), "a joint of an arm or a gripper cannot be locked")
        kinds = {joint.get("name", ""): joint for joint in root.findall("joint") if joint.get("type") != "fixed"}
        return {name: self.file.locked.get(name, _rest(joint)) for name, joint in kinds.items() if name not in moved}


def _rest(joint: Element) -> float:
    low, high = range_of(joint) or (0.0, 0.0)
    return min(max(0.0, low), high) if low < high else 0.0


def _prefixed(arm: Manipulator, prefix: str) -> Manipulator:
    """Return the arm with a prefix before all names of its links and joints."""

    def named(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(prefix + name for name in names)

    gripper = {"joints": named(arm.gripper.joints), "links": named(arm.gripper.links)}
    gripper["fingers"] = named(arm.gripper.fingers)
    return arm.model_copy(
        update={
            "tool": arm.tool.model_copy(update={"link": prefix + arm.tool.link}),
            "arm": arm.arm.model_copy(update={"joints": named(arm.arm.joints)}),
            "gripper": arm.gripper.model_copy(update=gripper),
        }
    )
