"""Building blocks of skills and conditions: grasps, releases, pushes, tracking, joints, contacts."""

from __future__ import annotations

from nimbus.datagen.execute.articulation import JointedPart
from nimbus.datagen.execute.contacts import (
    WORLD,
    find_contacts,
    find_supports,
    measure_gap,
)
from nimbus.datagen.execute.demonstrations.demonstration_file import find_demonstration, read_demonstration
from nimbus.datagen.execute.demonstrations.performance import DemonstratedMotion
from nimbus.datagen.execute.motions.alignment import (
    Alignment,
    find_frame,
    make_facing_pose,
    shift_pose,
)
from nimbus.datagen.execute.motions.cloth_corners import (
    CORNER_CLOSING,
    CORNER_ROOM,
    ClothCorner,
    find_corners,
)
from nimbus.datagen.execute.motions.containers import (
    releases_inside,
    room_inside,
)
from nimbus.datagen.execute.motions.grasps import make_handover_grasps, make_tilted_grasps
from nimbus.datagen.execute.motions.part_manipulation import PartManipulator
from nimbus.datagen.execute.motions.pinching import CarryPath, pinch_height, reach_carry_path
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
    heading,
    nearest_rest_pose,
    release_poses,
    similar_yaws,
)
from nimbus.datagen.execute.motions.setting_down import (
    plan_release,
    plan_release_inside,
    release_upward,
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
    count_inside,
    describe_scene,
    find_others,
    is_gripped,
    is_on_side,
    measure_lean,
    measure_motion,
)
from nimbus.datagen.geometry.hulls import narrowest_width
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
from nimbus.datagen.robots.robot import BASE_JOINTS

__all__ = [
    "BASE_JOINTS",
    "BESIDE",
    "CORNER_CLOSING",
    "CORNER_ROOM",
    "FIRST_OPENING",
    "LEAN",
    "MOVED",
    "NEAR",
    "OPEN",
    "PRESSED",
    "SHUT",
    "SIDES",
    "TURNED",
    "WORLD",
    "Alignment",
    "CarryPath",
    "ClothCorner",
    "DemonstratedMotion",
    "Grasp",
    "GraspPlan",
    "JointedPart",
    "MotionPlan",
    "MotionStatus",
    "ObjectModel",
    "PartManipulator",
    "PlanningScene",
    "Release",
    "ReleaseSpot",
    "RestPose",
    "Tracker",
    "align_hand",
    "contains",
    "count_inside",
    "describe_scene",
    "draw_spots_inside",
    "find_contacts",
    "find_corners",
    "find_demonstration",
    "find_frame",
    "find_others",
    "find_spots_beside",
    "find_spots_inside",
    "find_spots_on",
    "find_supports",
    "heading",
    "is_gripped",
    "is_on_side",
    "make_facing_pose",
    "make_handover_grasps",
    "make_tilted_grasps",
    "measure_gap",
    "measure_lean",
    "measure_motion",
    "narrowest_width",
    "nearest_rest_pose",
    "object_center",
    "pinch_height",
    "plan_release",
    "plan_release_inside",
    "plan_straight",
    "push_object",
    "reach_carry_path",
    "read_demonstration",
    "release_poses",
    "release_upward",
    "releases_inside",
    "retreat",
    "room_inside",
    "set_down",
    "set_fingers",
    "shift_pose",
    "similar_yaws",
    "trace_line",
    "track_object",
    "velocity",
]
