"""Place: put the held object into, on or beside a thing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np

from nimbus.datagen.execute.toolkit import (
    FIRST_OPENING,
    SIDES,
    Release,
    ReleaseSpot,
    RestPose,
    draw_spots_inside,
    find_spots_beside,
    find_spots_inside,
    find_spots_on,
    nearest_rest_pose,
    plan_release_inside,
    release_poses,
    releases_inside,
    retreat,
    room_inside,
    set_down,
    similar_yaws,
)
from nimbus.datagen.plugin import (
    ContainerReference,
    Field,
    FloatArray,
    Metres,
    ObjectReference,
    PydanticCustomError,
    Radians,
    Ratio,
    Reason,
    Skill,
    SkillFailure,
    SupportReference,
    Workcell,
    model_validator,
    quat_to_matrix,
    register,
)

_OVER_RIM = 0.08
"""Height of the tool above the rim of a container after the release [m]."""


@register("skill", "place")
class Place(Skill):
    """Put the held object into, on or beside a thing, and release it.

    Needs the object in the gripper, and exactly one of ``into``, ``on`` and ``beside``. ``into`` names an open fixture
    or object; the held object is rotated to fit and released away from the contents. ``on`` names a region, an object
    or a fixture; the free spot nearest to its center is used. On a surface, the object is released in a rest pose, a
    millimeter above its support, with its sides parallel to those of the support or the neighbor. Fails with
    ``no_room``, ``no_ik``, ``no_path``, ``slipped_in_transit``, ``off_target`` or ``toppled``.
    """

    version: ClassVar[int] = 4
    main = "object"
    needs = ("held(object)", "open(into, to=95 %)", "fits(object, into)", "clear(on)", "carries(on, object)")
    gives = (
        "in(object, into)",
        "on(object, on)",
        "at(object, on)",
        "beside(object, beside)",
        "left_of(object, beside, side=left)",
        "right_of(object, beside, side=right)",
        "in_front_of(object, beside, side=front)",
        "behind(object, beside, side=behind)",
        "empty_hand",
    )
    object: ObjectReference = Field(description="Object to place; it must be in the gripper.")
    into: ContainerReference | None = Field(None, description="Open fixture or object that receives the object.")
    on: SupportReference | None = Field(None, description="Region, object or fixture to put the object on.")
    beside: ObjectReference | None = Field(None, description="Object to put the object next to.")
    side: Literal["left", "right", "front", "behind"] | None = Field(
        None, description="Side of `beside`, as the robot sees it; front is nearer to the robot. Default: any side."
    )
    gap: Annotated[Metres, Field(ge=0.005, le=1)] | None = Field(
        None, description="Distance to the outline of `beside`; default: 3 cm."
    )
    rest: Literal["upright", "lying", "on_side", "inverted"] | None = Field(
        None, description="Rest pose of the placed object; default: the one nearest to its orientation in the hand."
    )
    yaw: Radians | None = Field(
        None, description="Heading about the vertical; default: the first of several that fits."
    )
    spread: Annotated[Ratio, Field(gt=0, le=1)] | None = Field(
        None,
        description="Draw the position from this fraction of the region `on`, around its center and with a margin of "
        "half the object's size; default: the center. The position is stored with the episode.",
    )
    drop: Metres = Field(0.02, ge=0, le=0.3, description="Height above the floor of `into` at the release.")

    @model_validator(mode="after")
    def _one_place(self) -> Place:
        if sum(place is not None for place in (self.into, self.on, self.beside)) != 1:
            raise PydanticCustomError("place", "give one of into, on and beside")
        if self.beside is None and (self.side is not None or self.gap is not None):
            raise PydanticCustomError("place", "'side' and 'gap' are only allowed with 'beside'")
        if self.into is not None and (self.rest is not None or self.yaw is not None):
            raise PydanticCustomError("place", "'rest' and 'yaw' are only allowed with 'on' or 'beside'")
        if self.on is None and self.spread is not None:
            raise PydanticCustomError("place", "'spread' is only allowed with 'on'")
        return self

    def run(self, arm: Workcell) -> None:
        """Carry, lower, open and retreat."""
        if self.into is None:
            rest = self._rest(arm)
            set_down(arm, self.object, self._releases(arm, rest), rest=rest)
        else:
            self._drop(arm, self.into)

    def _drop(self, arm: Workcell, container: str) -> None:
        ways = releases_inside(arm, self.object, *room_inside(arm, container), drop=self.drop)
        carry, lower = plan_release_inside(arm, ways)
        arm.begin("carry")
        arm.follow_all(carry, lower)
        arm.begin("release")
        arm.open(room=FIRST_OPENING, steps=2)
        arm.begin("retreat")
        retreat(arm, self.object, ways=self._ways_out(arm, container))

    def _rest(self, arm: Workcell) -> RestPose:
        model = arm.model(self.object)
        if self.rest is None:
            return nearest_rest_pose(model, arm.pose(self.object)[:3, :3])
        if (rest := model.rest_pose(self.rest)) is None:
            raise SkillFailure(Reason.NO_ROOM, f"{self.object} cannot rest {self.rest}")
        return rest

    def _releases(self, arm: Workcell, rest: RestPose) -> Iterator[Release]:
        turn = arm.pose(self.object)[:3, :3] @ quat_to_matrix(rest.wxyz).T
        reference = self.on or self.beside or ""
        if reference in arm.regions:
            region = arm.regions[reference]
            spots = self._spots_in(arm, np.array(region.center), np.array(region.size))
            top, along = arm.stage.surfaces[region.on].upper[2] + 0.5, None
        elif self.spread is not None:
            raise SkillFailure(Reason.NO_ROOM, f"spread {self.spread:g} of place needs a region, {reference} is none")
        else:
            lower, upper = arm.bounds(reference)
            spots, top, along = self._spots(lower, upper), upper[2] + 0.001, arm.pose(reference)[:3, :3]
        yaws = similar_yaws(turn, along=along) if self.yaw is None else [self.yaw]
        return release_poses(arm, self.object, spots, rest=rest, yaws=yaws, top=top)

    def _spots_in(self, arm: Workcell, center: FloatArray, size: FloatArray) -> list[ReleaseSpot]:
        points = arm.model(self.object).vertices @ arm.pose(self.object)[:3, :3].T
        outline = np.ptp(points, axis=0)[:2]
        if self.spread is None:
            return find_spots_inside(center, size, outline=outline)
        return draw_spots_inside(center, size, outline=outline, spread=self.spread, rng=arm.rng())

    def _spots(self, lower: FloatArray, upper: FloatArray) -> list[ReleaseSpot]:
        if self.on is not None:
            return find_spots_on(lower[:2], upper[:2])
        sides = SIDES if self.side is None else (self.side,)
        return find_spots_beside(lower[:2], upper[:2], sides=sides, gap=0.03 if self.gap is None else self.gap)

    def _ways_out(self, arm: Workcell, container: str) -> list[FloatArray]:
        """Return displacements (3,) of a retreat [m]: up beyond the rim, less far up, or back along the fingers."""
        pose = arm.tool_pose()
        world_T_box, _, high = room_inside(arm, container)
        height = max(0.05, world_T_box[2, 3] + high[2] + _OVER_RIM - pose[2, 3])
        return [np.array([0.0, 0.0, height * share]) for share in (1.0, 0.7, 0.4)] + [-0.08 * pose[:3, 2]]
