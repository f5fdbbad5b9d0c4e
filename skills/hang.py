"""Hang: put the held object onto a hook or a post by its hole or handle."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.execute.toolkit import Alignment, find_frame, make_facing_pose, retreat, shift_pose
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    Metres,
    ObjectReference,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_BEFORE = 0.05
"""Distance before the end of the hook at which the straight motion begins [m]."""
_NEAR, _ASIDE = 0.05, 0.008
"""Distance of the tool from the hole's axis below which a finger is in the hole, and the sideways shift of the object
that leaves space for the finger [m]."""
_LOOSE = 0.004
"""Travel of each finger before the retreat [m]; it is short, because a finger may be between hole and hook."""
_OFF_AXIS = 0.06
"""Largest distance between the hole of a hanging object and the hook's axis [m]."""
_TURNS = np.radians(np.arange(0, 360, 30))


@register("skill", "hang")
class Hang(Skill):
    """Put the held object onto a hook or a post, along the axis of its hole or handle, and release it.

    Needs the object in the gripper. The object needs a frame in its hole or handle with z along the axis; the support
    needs a frame at the end of its hook or post with z outward. Fails with ``no_room`` when a frame is missing,
    or with ``no_ik``, ``no_path`` or ``not_hanging``.
    """

    main = "object"
    needs = ("held(object)", "ring_for(object, on)")
    gives = ("hung(object, on)", "empty_hand")
    object: ObjectReference = Field(description="Object to hang; it must be in the gripper.")
    on: ObjectReference = Field(description="Object with the hook or post.")
    hook: str = Field("tip", description="Frame at the end of the hook or post, z outward.")
    hole: str = Field("hole", description="Frame in the object's hole or handle, z along its axis.")
    depth: Metres = Field(0.03, gt=0, le=0.3, description="Distance along the hook at which the object is released.")

    def run(self, arm: Workcell) -> None:
        """Approach the hook, move along it, and release."""
        hook = arm.pose(self.on) @ find_frame(arm, self.on, self.hook)
        thing = Alignment(arm, self.object, find_frame(arm, self.object, self.hole), touching=[self.on])
        outwards = hook[:3, 2]
        arm.begin("carry")
        upright = arm.pose(self.object)[:3, :3]
        ends = [*make_facing_pose(hook, turns=_TURNS, against=False), *make_facing_pose(hook, turns=_TURNS)]
        # Prefer rotations about the hook that change the object's current orientation least.
        object_T_frame = find_frame(arm, self.object, self.hole)
        ends.sort(key=lambda end: -float(np.trace(upright.T @ end[:3, :3] @ object_T_frame[:3, :3].T)))
        ends = [shift_pose(end, self._aside(arm, thing, end)) for end in ends]
        goal = thing.carry([shift_pose(end, _BEFORE * outwards) for end in ends[:8]], ends[:8])
        arm.begin("hang")
        arm.end_transport()  # from here on the hook may move the object in the hand
        thing.line(shift_pose(goal, -self.depth * outwards))
        arm.begin("release")
        arm.open(room=_LOOSE, steps=4)
        arm.wait(4)
        arm.begin("retreat")
        retreat(arm, self.object, touching=[self.on])
        off = thing.frame[:3, 3] - hook[:3, 3]
        beside = float(np.linalg.norm(off - outwards * (off @ outwards)))
        if beside > _OFF_AXIS or off @ outwards > 0.0:
            raise SkillFailure(Reason.NOT_HANGING, f"{self.object} is {beside * 100:.1f} cm off the hook")

    def _aside(self, arm: Workcell, thing: Alignment, end: FloatArray) -> FloatArray:
        """Return the sideways shift (3,) that leaves space for a finger in the hole [m]; zeros if none is in it."""
        way = (np.linalg.inv(end) @ thing.tool_at(end))[:3, 3] * (1.0, 1.0, 0.0)
        distance = float(np.linalg.norm(way))
        return end[:3, :3] @ way * (_ASIDE / distance) if 1e-3 < distance < _NEAR else np.zeros(3)
