"""A robot file: where the model comes from, and what a planner and a controller must know about it."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, model_validator

from nimbus.datagen import strict_yaml
from nimbus.datagen.layout import Camera, Quaternion, Vector
from nimbus.datagen.plan.grasp import GripperShape
from nimbus.datagen.scene_files import scene_file
from nimbus.datagen.strict_yaml import StrictModel


class Tool(StrictModel):
    """The frame that grasps and poses are given in: z out of the hand, y along the closing direction."""

    link: str = Field(description="the link that carries the tool")
    position: Vector = Field(description="origin of the tool frame in the link's frame [m]")
    wxyz: Quaternion = Field(default=(1.0, 0.0, 0.0, 0.0), description="link_T_tool rotation")


class Arm(StrictModel):
    """Joints moved by the motion planner; one entry per joint in every list."""

    joints: tuple[str, ...]
    home: tuple[float, ...] = Field(description="posture at the start and for `home` [rad]")
    velocity_limits: tuple[float, ...] = Field(description="[rad/s]")
    acceleration_limits: tuple[float, ...] = Field(description="[rad/s^2]")
    effort_limits: tuple[float, ...] = Field(description="[N m]")
    stiffness: tuple[float, ...] = Field(description="position gain [N m/rad]")
    damping: tuple[float, ...] = Field(description="velocity gain [N m s/rad]")
    armature: float = Field(default=0.0, ge=0, description="rotor inertia seen at the joint [kg m^2]")

    @model_validator(mode="after")
    def _one_entry_per_joint(self) -> Arm:
        for field in ("home", "velocity_limits", "acceleration_limits", "effort_limits", "stiffness", "damping"):
            count = len(getattr(self, field))
            if count != len(self.joints):
                raise ValueError(f"{field} has {count} entries for {len(self.joints)} joints")
        return self


class Gripper(StrictModel):
    """A parallel gripper: its joints move together by the same amount."""

    joints: tuple[str, str]
    links: tuple[str, ...] = Field(description="links that may touch what is held")
    fingers: tuple[str, str] = Field(description="links with the pads")
    open: float = Field(description="joint position when open [m]")
    closed: float = Field(description="joint position when closed on nothing [m]")
    effort_limit: float = Field(gt=0, description="force of one finger [N]")
    stiffness: float = Field(gt=0, description="[N/m]")
    damping: float = Field(ge=0, description="[N s/m]")
    armature: float = Field(default=0.0, ge=0, description="[kg]")
    pad_width: float = Field(gt=0, description="extent of a pad along the tool's x [m]")
    pad_height: float = Field(gt=0, description="extent of a pad along the tool's z [m]")
    finger_thickness: float = Field(gt=0, description="extent of a finger outside its pad, along the tool's y [m]")
    finger_depth: float = Field(gt=0, description="from the tool's origin back to the palm [m]")

    @property
    def shape(self) -> GripperShape:
        """What decides where it can close."""
        return GripperShape(
            opening=2 * abs(self.open - self.closed),
            pad_width=self.pad_width,
            pad_height=self.pad_height,
            finger_thickness=self.finger_thickness,
            finger_depth=self.finger_depth,
        )


class Robot(StrictModel):
    """Everything Nimbus knows about a robot beyond its URDF."""

    name: str
    description: str = ""
    package: str = Field(description="Python package that carries the URDF and its meshes")
    urdf: str = Field(description="path inside the package's data folder")
    tool: Tool
    arm: Arm
    gripper: Gripper
    cameras: tuple[str, ...] = Field((), description="links that a camera can be fixed to, besides the tool's")

    @property
    def camera_links(self) -> tuple[str, ...]:
        """Links that a camera can be fixed to."""
        return (self.tool.link, *self.cameras)

    def mounted(self, camera: Camera) -> Camera:
        """The camera with its mount spelt out: ``hand`` is the tool's link."""
        return replace(camera, mount=self.tool.link) if camera.mount == "hand" else camera


def load_robot(name_or_path: str, *, where: str = "") -> Robot:
    """Load a robot file by name or path.

    Raises:
        InputError: No such robot, or the file is wrong.
    """
    return strict_yaml.load(scene_file("robots", name_or_path, kind="robot", where=where), Robot)
