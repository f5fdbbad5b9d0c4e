"""Building blocks of skills and conditions: grasps, releases, pushes, tracking, joints, contacts."""

from __future__ import annotations

from nimbus.datagen.execute.articulation import JointedPart
from nimbus.datagen.execute.contacts import (
    WORLD,
    find_contacts,
    find_supports,
    measure_gap,
)
from nimbus.datagen.execute.motions.alignment import (
    Alignment,
    find_frame,
    make_facing_pose,
    shift_pose,
)
from nimbus.datagen.execute.motions.containers import (
    releases_inside,
    room_inside,
)
from nimbus.datagen.execute.motions.grasps import make_handover_grasps, make_tilted_grasps
from nimbus.datagen.execute.motions.part_manipulation import PartManipulator
from nimbus.datagen.execute.motions.pushing import (
    align_hand,
    object_center,
    plan_straight,
    push_object,
    set_fingers,
)
from nimbus.datagen.execute.motions.release import (
    FIRST_OPENING,
    SIDES,
    Release,
    ReleaseSpot,
    draw_spots_inside,
    find_spots_beside,
    find_spots_inside,
    find_spots_on,
    nearest_rest_pose,
    release_poses,
    similar_yaws,
)
from nimbus.datagen.execute.motions.setting_down import (
    plan_release,
    retreat,
    set_down,
)
from nimbus.datagen.execute.motions.tracking import (
    Tracker,
    track_object,
    velocity,
)
from nimbus.datagen.execute.scene_graph import (
    BESIDE,
    LEAN,
    MOVED,
    NEAR,
    OPEN,
    PRESSED,
    SHUT,
    TURNED,
    contains,
    describe_scene,
    find_others,
    is_gripped,
    is_on_side,
    measure_lean,
    measure_motion,
)
from nimbus.datagen.objects.model import (
    ObjectModel,
    RestPose,
)
from nimbus.datagen.plan.grasp import Grasp
from nimbus.datagen.plan.ik import trace_line
from nimbus.datagen.plan.motion import (
    GraspPlan,
    MotionPlan,
    MotionStatus,
)
from nimbus.datagen.plan.scene import PlanningScene

__all__ = [
    "BESIDE",
    "LEAN",
    "MOVED",
    "NEAR",
    "OPEN",
    "PRESSED",
    "SHUT",
    "TURNED",
    "contains",
    "describe_scene",
    "find_others",
    "is_gripped",
    "is_on_side",
    "measure_lean",
    "measure_motion",
    "FIRST_OPENING",
    "SIDES",
    "WORLD",
    "Grasp",
    "GraspPlan",
    "PartManipulator",
    "Alignment",
    "MotionPlan",
    "MotionStatus",
    "ObjectModel",
    "JointedPart",
    "PlanningScene",
    "Release",
    "RestPose",
    "ReleaseSpot",
    "Tracker",
    "track_object",
    "make_facing_pose",
    "find_frame",
    "measure_gap",
    "make_handover_grasps",
    "align_hand",
    "object_center",
    "nearest_rest_pose",
    "plan_release",
    "push_object",
    "release_poses",
    "releases_inside",
    "find_supports",
    "retreat",
    "room_inside",
    "set_down",
    "set_fingers",
    "shift_pose",
    "make_tilted_grasps",
    "find_spots_beside",
    "draw_spots_inside",
    "find_spots_inside",
    "find_spots_on",
    "plan_straight",
    "find_contacts",
    "trace_line",
    "velocity",
    "similar_yaws",
]
