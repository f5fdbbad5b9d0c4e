"""Broken tasks: a valid one with one change, and the field that the error must name."""

from __future__ import annotations

from dataclasses import dataclass

_CAMERAS = "cameras: {front: {preset: front, size: [528, 400]}, wrist: wrist}"
RIGHT = f"""\
robot: panda
scene: tabletop
regions:
  start: {{on: table, center: [0.5, 0.0], size: [0.2, 0.2]}}
objects:
  item: {{library: trash, kinds: [can], region: start}}
steps:
  - pick: item
  - place: {{object: item, into: recycling}}
success:
  - inside: {{object: item, container: recycling}}
  - gripper_clear
{_CAMERAS}
instructions: ["Throw {{item}} away."]
"""

_PICK, _PLACE = "  - pick: item\n", "  - place: {object: item, into: recycling}\n"
_INSIDE = "  - inside: {object: item, container: recycling}\n"
_GROUP = "item: {library: trash, kinds: [can], region: start}"
_CAMERA = "cameras: {front: {position: %s, look_at: %s, vertical_fov: 50 deg}}"


@dataclass(frozen=True)
class Broken:
    """One broken task."""

    name: str
    old: str
    new: str
    field: str
    """The field that the error must name, or its beginning."""

    @property
    def text(self) -> str:
        """The task file."""
        assert self.old in RIGHT
        return RIGHT.replace(self.old, self.new)


def _camera(name: str, position: str, look_at: str, field: str) -> Broken:
    return Broken(name, _CAMERAS, _CAMERA % (position, look_at), f"cameras.front.{field}".rstrip("."))


BROKEN = (
    # Places
    Broken("region_out_of_reach", "[0.5, 0.0], size: [0.2, 0.2]", "[0.82, 0.6], size: [0.1, 0.1]", "regions.start"),
    Broken(
        "region_in_the_robot", "[0.5, 0.0], size: [0.2, 0.2]", "[0.075, -0.055], size: [0.01, 0.05]", "regions.start"
    ),
    Broken("region_off_the_table", "center: [0.5, 0.0]", "center: [2.5, 0.0]", "regions.start"),
    Broken(
        "region_half_out_of_reach", "[0.5, 0.0], size: [0.2, 0.2]", "[0.75, 0.35], size: [0.3, 0.3]", "regions.start"
    ),
    Broken(
        "region_too_small",
        _GROUP,
        _GROUP + "\n  others: {library: trash, kinds: [can], count: 12, region: start}",
        "regions.start",
    ),
    Broken("region_on_no_surface", "on: table", "on: shelf", "regions.start.on"),
    Broken("region_unknown", "region: start}", "region: stort}", "objects.item.region"),
    # Objects
    Broken(
        "too_large_for_the_gripper",
        _GROUP,
        "item: {library: blocks, kinds: [red_cube], region: start, scale: 2.5}",
        "objects.item.scale",
    ),
    Broken(
        "no_grasp_at_any_size",
        _GROUP,
        "item: {library: trash, kinds: [box], region: start, scale: [3.5, 4]}",
        "objects.item",
    ),
    Broken(
        "too_heavy", _GROUP, "item: {library: blocks, kinds: [red_cube], region: start, scale: 5}", "objects.item.scale"
    ),
    Broken("unknown_kind", "kinds: [can]", "kinds: [cann]", "objects.item.kinds[0]"),
    Broken("unknown_library", "library: trash", "library: trush", "objects.item.library"),
    Broken("more_distinct_than_kinds", "kinds: [can]", "kinds: [can], count: 3, distinct: true", "objects.item"),
    Broken("share_above_one", "kinds: [can]", "kinds: [can], lying: 150 %", "objects.item.lying"),
    # Cameras
    _camera("camera_looks_away", "[1.4, 0, 0.7]", "[3, 0, 0.7]", "look_at"),
    _camera("camera_below_the_table", "[0.5, 0.05, -0.4]", "[0.5, 0, 0.05]", "position"),
    _camera("camera_inside_the_table", "[0.5, 0.05, -0.02]", "[0.5, 0, 0.05]", "position"),
    _camera("camera_too_far_away", "[25, 0, 9]", "[0.5, 0, 0.05]", ""),
    _camera("camera_looks_at_itself", "[1, 0, 1]", "[1, 0, 1]", ""),
    Broken(
        "camera_on_no_link",
        _CAMERAS,
        "cameras: {front: {mount: elbow, position: [0, 0, 0], look_at: [1, 0, 0], vertical_fov: 50 deg}}",
        "cameras.front.mount",
    ),
    # Steps
    Broken("place_before_pick", _PICK + _PLACE, _PLACE + _PICK, "steps[0]"),
    Broken("pick_twice", _PICK, _PICK + _PICK, "steps[1]"),
    Broken("into_itself", "into: recycling}\nsuccess", "into: item}\nsuccess", "steps[1]"),
    Broken("unknown_bin", "into: recycling}\nsuccess", "into: paper}\nsuccess", "steps[1].place.into"),
    Broken("open_what_has_no_door", _PICK, "  - open: item\n" + _PICK, "steps[0]"),
    Broken("unknown_skill", _PICK, "  - grab: item\n", "steps[0]"),
    Broken(
        "does_not_fit",
        f"{_GROUP}\nsteps:\n{_PICK}{_PLACE}success:\n{_INSIDE}",
        "item: {library: blocks, kinds: [red_cube], region: start, scale: 1.2}\n"
        "  cup: {library: containers, kinds: [red_pencil_cup], region: start, scale: 0.5}\nsteps:\n"
        "  - pick: item\n  - place: {object: item, into: cup}\nsuccess:\n  - inside: {object: item, container: cup}\n",
        "steps[1].place.into",
    ),
    # Success
    Broken("in_another_bin", "container: recycling", "container: organic", "success[0].inside.container"),
    Broken(
        "in_two_bins",
        _INSIDE,
        _INSIDE + _INSIDE.replace("recycling", "organic"),
        "success[1].inside.container",
    ),
    Broken("held_and_clear", _INSIDE, "  - held: item\n", "success[1]"),
    Broken("never_put_down", _PLACE + "success:\n" + _INSIDE, "success:\n", "success[0]"),
    Broken(
        "nobody_touches_it",
        f"{_GROUP}\nsteps:\n{_PICK}{_PLACE}",
        f"{_GROUP}\n  other: {{library: trash, kinds: [box], region: start}}\nsteps:\n"
        "  - pick: other\n  - place: {object: other, into: recycling}\n",
        "success[0]",
    ),
    Broken(
        "moved_and_not_moved",
        _INSIDE,
        "  - moved_by: {object: item, distance: 10 cm}\n  - not_moved: item\n",
        "success[1]",
    ),
    Broken(
        "there_already",
        f"{_PLACE}success:\n{_INSIDE}",
        "  - place: {object: item, on: start}\nsuccess:\n  - on: {object: item, support: start}\n",
        "success",
    ),
    # The rest
    Broken("wording_of_nothing", "{item} away", "{thing} away", "instructions[0]"),
    Broken("rate_that_does_not_divide", "scene: tabletop", "scene: tabletop\nrate: 17", "rate"),
    Broken("negative_mass", "cameras:", "randomize: {mass: {factor: [-1, 1]}}\ncameras:", "randomize.mass"),
    Broken("range_upside_down", "cameras:", "randomize: {friction: {factor: [2, 1]}}\ncameras:", "randomize.friction"),
    Broken("unknown_preset", "cameras:", "randomize: lots\ncameras:", "randomize"),
    Broken("unknown_robot", "robot: panda", "robot: pandora", "robot"),
)
