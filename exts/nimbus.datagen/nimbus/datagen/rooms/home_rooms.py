"""Furnishing of the rooms of a home by kind, after doorways and windows are cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.rooms.arranging import line_up, pick_kinds, strew
from nimbus.datagen.rooms.furnishing import Furnishing
from nimbus.datagen.rooms.plan import RoomPlan
from nimbus.datagen.rooms.settings import Family
from nimbus.datagen.rooms.walls import Side

_SIDES: tuple[Side, ...] = ("right", "front", "left", "back")
_WARE = ("kettle", "toaster", "coffee_machine", "pot", "knife_block", "jar", "fruit_bowl", "bottle", "dish_rack")
_WARE += ("microwave_oven", "paper_roll", "cutting_board", "mug")


def _sides_of(plan: RoomPlan) -> list[Side]:
    """Return the sides in drawn order, those without a door first."""
    drawn: list[Side] = [_SIDES[int(place)] for place in plan.rng.permutation(4)]
    return sorted(drawn, key=lambda side: any(opening.low <= 0 for opening in plan.walls[side].openings))


def _against(plan: RoomPlan, kind: str, *, sides: Sequence[Side] | None = None, gap: float = 0.0) -> Furnishing | None:
    """Place a furnishing against the first wall that has room for it; return None if there is none."""
    size = plan.kinds[kind].draw_size(plan.rng)
    for side in sides or _sides_of(plan):
        length = plan.walls[side].length
        for share in plan.rng.permutation(np.linspace(0.0, 1.0, 6)):
            along = size[0] / 2 + 0.03 + float(share) * max(length - size[0] - 0.06, 0.0)
            if made := plan.against(side, kind, along, size=size, gap=gap):
                return made
    return None


def _beside(plan: RoomPlan, furnishing: Furnishing | None, kind: str) -> None:
    """Place an object on each side of a furnishing at a wall, where there is room."""
    if furnishing is None:
        return
    side = min(_SIDES, key=lambda one: _distance(plan, one, furnishing))
    half = float(np.ptp(furnishing.bounds, axis=0)[0 if side in ("right", "left") else 1]) / 2
    middle = plan.along(side, furnishing)
    for way in (-1, 1):
        size = plan.kinds[kind].draw_size(plan.rng)
        made = plan.against(side, kind, middle + way * (half + size[0] / 2 + 0.04), size=size)
        if made and plan.rng.uniform() < 0.8:
            plan.clutter_on(made, ("desk_lamp", "book_row", "mug", "potted_plant"), share=1.0)


def _distance(plan: RoomPlan, side: Side, furnishing: Furnishing) -> float:
    (x0, y0, _), (x1, y1, _) = furnishing.bounds
    return float(
        {"right": y0 - plan.y[0], "left": plan.y[1] - y1, "back": x0 - plan.x[0], "front": plan.x[1] - x1}[side]
    )


def _table(plan: RoomPlan, kind: str, seat: str) -> None:
    """Place a table with seats on the floor."""
    (x0, x1), (y0, y1) = plan.x, plan.y
    margin = 1.0
    x, y = sorted((x0 + margin, x1 - margin)), sorted((y0 + margin, y1 - margin))
    table = plan.stand(kind, (x[0], x[1]), (y[0], y[1]), yaw=float(plan.rng.choice([0.0, np.pi / 2])))
    if table is None:
        return
    plan.clutter_on(table, ("fruit_bowl", "mug", "bottle", "jar", "potted_plant"), share=0.6)
    low, high = table.bounds
    long = 0 if high[0] - low[0] >= high[1] - low[1] else 1
    for place in np.linspace(low[long], high[long], 4)[1:-1]:
        for edge, way in ((high[1 - long], 1), (low[1 - long], -1)):
            spot = (float(place), float(edge) + 0.27 * way) if long == 0 else (float(edge) + 0.27 * way, float(place))
            facing = (np.pi if way > 0 else 0.0) if long == 0 else (np.pi / 2 if way > 0 else -np.pi / 2)
            plan.put(seat, spot, yaw=facing + float(plan.rng.uniform(-0.2, 0.2)))


def _living_room(plan: RoomPlan) -> None:
    sides = _sides_of(plan)
    sofa = _against(plan, "sofa", sides=sides)
    stand = _against(plan, "tv_stand", sides=sides[1:] + sides[:1])
    if stand:
        middle = stand.bounds.mean(axis=0)
        plan.set_down("television", (float(middle[0]), float(middle[1])), stand)
    if sofa:
        _beside(plan, sofa, "side_table")
    x, y = sum(plan.x) / 2, sum(plan.y) / 2
    plan.lay("rug", (x, y), yaw=float(plan.rng.choice([0.0, np.pi / 2])))
    if table := plan.stand("coffee_table", (x - 0.6, x + 0.6), (y - 0.6, y + 0.6), yaw=0.0):
        plan.clutter_on(table, ("mug", "book_row", "fruit_bowl"), share=0.8)
    for kind in pick_kinds(plan, ("armchair", "bookcase", "piano", "armchair", "dresser", "floor_lamp"), 4):
        _against(plan, kind)
    strew(plan, ("potted_plant", "floor_lamp"), share=0.7)


def _dining_room(plan: RoomPlan) -> None:
    _table(plan, "dining_table", "chair")
    for kind in pick_kinds(plan, ("dresser", "bookcase", "console_table", "wardrobe"), 2):
        if (made := _against(plan, kind)) and made.bounds[1, 2] < 1.3 + plan.floor:
            plan.clutter_on(made, ("jar", "bottle", "fruit_bowl", "potted_plant"), share=0.8)
    strew(plan, ("potted_plant",), share=0.8)


def _kitchen(plan: RoomPlan) -> None:
    side = _sides_of(plan)[0]
    units = pick_kinds(plan, ("base_cabinet", "stove", "drawer_unit", "sink_unit", "dishwasher", "base_cabinet"), 6)
    row = line_up(plan, side, ["fridge", *units])
    for unit in row:
        if unit.kind == "stove":
            plan.clutter_on(unit, ("pot", "pan"), share=0.8)
            plan.against(side, "cooker_hood", plan.along(side, unit), up=1.6)
        elif unit.kind in ("base_cabinet", "drawer_unit", "dishwasher"):
            plan.clutter_on(unit, _WARE)
            plan.against(side, "wall_cupboard", plan.along(side, unit), up=1.45)
    _table(plan, "dining_table", "chair")
    strew(plan, ("waste_bin", "bar_stool"), share=0.7)


def _bedroom(plan: RoomPlan) -> None:
    bed = _against(plan, "bed")
    _beside(plan, bed, "nightstand")
    for kind in ("wardrobe", *pick_kinds(plan, ("dresser", "armchair", "bookcase", "side_desk", "mirror"), 2)):
        made = _against(plan, kind) if kind != "mirror" else None
        if made and kind == "dresser":
            plan.clutter_on(made, ("potted_plant", "book_row", "jar"), share=0.8)
    if plan.rng.uniform() < 0.6:
        plan.lay("rug", (sum(plan.x) / 2, sum(plan.y) / 2))
    strew(plan, ("potted_plant", "laundry_basket", "floor_lamp"), share=0.4)


def _childs_room(plan: RoomPlan) -> None:
    kind = ("bunk_bed", "bed", "crib")[int(plan.rng.integers(3))]
    _against(plan, kind)
    for kind in ("toy_chest", "wardrobe", *pick_kinds(plan, ("bookcase", "side_desk", "dresser"), 2)):
        if (made := _against(plan, kind)) and kind == "side_desk":
            plan.clutter_on(made, ("desk_lamp", "book_row", "laptop_computer"), share=0.9)
    plan.lay("rug", (sum(plan.x) / 2, sum(plan.y) / 2))
    strew(plan, ("toy_chest", "exercise_ball", "stool"), share=0.5)


def _bathroom(plan: RoomPlan) -> None:
    if basin := _against(plan, "washbasin"):
        side = min(_SIDES, key=lambda one: _distance(plan, one, basin))
        plan.against(side, "mirror", plan.along(side, basin), up=1.1)
    _against(plan, "toilet")
    _against(plan, "bathtub" if plan.rng.uniform() < 0.5 else "shower")
    for kind in pick_kinds(plan, ("laundry_basket", "towel_rail", "washing_machine"), 2):
        _against(plan, kind)
    strew(plan, ("waste_bin",), share=0.5)


def _hall(plan: RoomPlan) -> None:
    for kind in pick_kinds(plan, ("shoe_rack", "console_table", "coat_stand", "dresser"), 3):
        if (made := _against(plan, kind)) and kind == "console_table":
            plan.clutter_on(made, ("potted_plant", "book_row", "desk_lamp"), share=0.8)
    plan.lay("rug", (sum(plan.x) / 2, sum(plan.y) / 2))


def _study(plan: RoomPlan) -> None:
    for _ in range(1 + int(plan.rng.uniform() < 0.4)):
        if desk := _against(plan, "side_desk"):
            plan.clutter_on(desk, ("monitor", "laptop_computer", "desk_lamp", "mug", "printer"), share=1.3)
    for kind in pick_kinds(plan, ("bookcase", "filing_cabinet", "bookcase", "sofa", "armchair"), 3):
        _against(plan, kind)
    strew(plan, ("office_chair", "waste_bin", "potted_plant"), share=0.8)


def _library(plan: RoomPlan) -> None:
    for side in _sides_of(plan)[:3]:
        line_up(plan, side, ["bookcase", "bookcase"], gap=0.2)
    for kind in ("armchair", "side_table", "floor_lamp"):
        strew(plan, (kind,), share=0.8)
    plan.lay("rug", (sum(plan.x) / 2, sum(plan.y) / 2))


def _laundry_room(plan: RoomPlan) -> None:
    line_up(plan, _sides_of(plan)[0], ["washing_machine", "tumble_dryer", "base_cabinet", "sink_unit"])
    for kind in ("wire_shelf", "laundry_basket"):
        _against(plan, kind)
    strew(plan, ("ironing_board", "laundry_basket"), share=0.7)


def _storage_room(plan: RoomPlan) -> None:
    sides = _sides_of(plan)
    line_up(plan, sides[0], ["wire_shelf"] * 3, gap=0.1)
    for made in line_up(plan, sides[1], pick_kinds(plan, ("tote_stack", "drum", "wire_shelf"), 3), gap=0.2):
        if made.kind == "tote_stack":
            plan.clutter_on(made, ("cardboard_box", "crate"), share=0.8)
    strew(plan, ("cardboard_box", "step_ladder", "crate", "hand_truck"), share=0.6)


def _workshop(plan: RoomPlan) -> None:
    side = _sides_of(plan)[0]
    for bench in line_up(plan, side, ["workbench", "tool_chest"], gap=0.2):
        plan.against(side, "pegboard", plan.along(side, bench), up=1.3)
        plan.clutter_on(bench, ("tool_box", "paint_can", "jar", "crate"), share=0.8)
    for kind in pick_kinds(plan, ("compressor", "shop_vacuum", "lumber_stack", "drum"), 2):
        _against(plan, kind)
    strew(plan, ("sawhorse", "stool", "tool_box"), share=0.6)


def _gym(plan: RoomPlan) -> None:
    for kind in pick_kinds(plan, ("treadmill", "weight_bench", "treadmill", "wire_shelf"), 3):
        _against(plan, kind, gap=0.1)
    x, y = sum(plan.x) / 2, sum(plan.y) / 2
    plan.lay("yoga_mat", (x, y), yaw=float(plan.rng.uniform(-1, 1)))
    strew(plan, ("exercise_ball", "exercise_ball", "stool", "potted_plant"), share=0.6)


@dataclass(frozen=True)
class HomeRoomKind:
    """Kind of room in a home."""

    furnish: Callable[[RoomPlan], None]
    family: Family
    """Family from which the look is drawn."""
    area: tuple[float, float]
    """Range of the area [m²]; if no room fits, a room of another size is used."""
    lamp: str
    hung: tuple[str, ...]
    """Kinds that may hang on the walls."""
    has_window: bool = True


HOME_ROOMS: Mapping[str, HomeRoomKind] = {
    "living_room": HomeRoomKind(_living_room, "office", (14, 60), "pendant_lamp", ("picture", "picture", "clock")),
    "kitchen": HomeRoomKind(_kitchen, "kitchen", (8, 24), "pendant_lamp", ("clock", "picture", "socket")),
    "bedroom": HomeRoomKind(_bedroom, "office", (9, 26), "pendant_lamp", ("picture", "radiator", "mirror")),
    "bathroom": HomeRoomKind(_bathroom, "kitchen", (3.5, 12), "ceiling_lamp", ("radiator",)),
    "hall": HomeRoomKind(_hall, "office", (3.5, 14), "ceiling_lamp", ("mirror", "picture", "clock"), has_window=False),
    "dining_room": HomeRoomKind(_dining_room, "shop", (10, 26), "pendant_lamp", ("picture", "picture", "clock")),
    "childs_room": HomeRoomKind(_childs_room, "shop", (8, 20), "pendant_lamp", ("poster", "poster", "picture")),
    "study": HomeRoomKind(_study, "office", (7, 18), "ceiling_lamp", ("whiteboard", "picture", "clock")),
    "laundry_room": HomeRoomKind(_laundry_room, "kitchen", (4, 12), "ceiling_lamp", ("socket",)),
    "library": HomeRoomKind(_library, "office", (8, 24), "pendant_lamp", ("picture",)),
    "storage_room": HomeRoomKind(_storage_room, "storage", (4, 14), "ceiling_lamp", ("socket",), has_window=False),
    "workshop": HomeRoomKind(_workshop, "workshop", (9, 24), "ceiling_lamp", ("fire_extinguisher", "poster")),
    "gym": HomeRoomKind(_gym, "shop", (10, 26), "ceiling_lamp", ("mirror", "poster", "clock")),
}
"""Kinds of rooms, the most common ones first."""
