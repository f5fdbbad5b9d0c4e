"""Floor plans of rooms by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nimbus.datagen.rooms.arranging import (
    CORNER,
    busy_sides,
    hang_lamps,
    line_up,
    open_somewhere,
    pick_kinds,
    shuffled,
    strew,
)
from nimbus.datagen.rooms.plan import Plan
from nimbus.datagen.rooms.settings import Family
from nimbus.datagen.rooms.walls import Side


def furnish_kitchen(plan: Plan) -> None:
    """Furnish a kitchen: an island, a row of units in the shape of an I or an L, stools and a table."""
    rng, (busy, other) = plan.rng, busy_sides(plan)
    plan.below_bench("island_base")
    open_somewhere(plan, "front", "door", low=0.0)
    open_somewhere(plan, other, "window", low=0.95)
    if rng.uniform() < 0.6:
        open_somewhere(plan, "back", "window", low=1.05)
    length, end = plan.wall_of("back").length, CORNER if rng.uniform() < 0.6 else 0.0
    low, high = (0.0, length - end) if busy == "right" else (end, length)
    tall = ["fridge", "tall_unit"] if rng.uniform() < 0.6 else ["fridge"]
    units = pick_kinds(
        plan, ("base_cabinet", "stove", "drawer_unit", "sink_unit", "dishwasher", "base_cabinet", "drawer_unit"), 7
    )
    row = plan.row("back", [*tall, *units, "base_cabinet", "base_cabinet"], low, high)
    if end:
        width = plan.wall_of(busy).length
        start, stop = (0.02, 0.62 * width) if busy == "right" else (0.38 * width, width - 0.02)
        more = ["base_cabinet", *shuffled(plan, ("base_cabinet", "drawer_unit"), 4)]
        row += plan.row(busy, more, start, stop)
    kitchenware = ("kettle", "toaster", "coffee_machine", "pot", "knife_block", "jar", "fruit_bowl", "bottle")
    kitchenware += ("dish_rack", "microwave_oven", "paper_roll", "cutting_board", "mug", "jar", "bottle")
    back = [unit for unit in row if unit.bounds[0, 0] < plan.x[0] + 0.05]
    for unit in row:
        if unit.kind == "stove":
            plan.clutter_on(unit, ("pot", "pan"), share=0.7)
        elif unit.kind in ("base_cabinet", "drawer_unit", "dishwasher"):
            plan.clutter_on(unit, kitchenware)
    for unit in back:
        if unit.kind == "stove":
            plan.against("back", "cooker_hood", plan.along("back", unit), up=1.6)
    if rng.uniform() < 0.75:
        plan.row("back", ["wall_cupboard"] * 8, low + 0.7, high, up=1.45)
    else:
        plan.row("back", ["open_shelf"] * 4, low + 0.75, high, up=1.4)
    if rng.uniform() < 0.7:
        for unit in back:
            if unit.kind in ("base_cabinet", "drawer_unit", "sink_unit", "stove", "dishwasher"):
                width = float(np.ptp(unit.bounds[:, 1]))
                plan.against("back", "tiled_splash", plan.along("back", unit), up=0.91, size=(width, 0.012, 0.48))
    _dine(plan, other)
    x, y = plan.bench.upper[0] + 0.25, (plan.bench.lower[1], plan.bench.upper[1])
    for place in np.linspace(*y, 5)[1:-1]:
        if rng.uniform() < 0.4:
            plan.put("bar_stool", (x + float(rng.uniform(0, 0.15)), float(place)), yaw=float(rng.uniform(-3, 3)))
    if rng.uniform() < 0.5:
        plan.lay("rug", (plan.bench.lower[0] - 0.5, 0.0), yaw=np.pi / 2)
    for kind in ("waste_bin", "potted_plant"):
        if rng.uniform() < 0.8:
            plan.stand(kind, (plan.x[0] + 0.3, plan.x[1] - 0.3), (plan.y[0] + 0.3, plan.y[1] - 0.3))
    for place in (plan.bench.lower[1] * 0.5, plan.bench.upper[1] * 0.5):
        plan.hang("pendant_lamp", (0.35, place))
    plan.close(("clock", "picture", "radiator", "socket", "picture"))


def _dine(plan: Plan, side: Side) -> None:
    """Place a table and chairs on one side of the room."""
    y = (plan.bench.upper[1] + 0.8, plan.y[1]) if side == "left" else (plan.y[0], plan.bench.lower[1] - 0.8)
    table = plan.stand("dining_table", plan.x, y, yaw=float(plan.rng.choice([0.0, np.pi / 2])))
    if table is None:
        return
    plan.clutter_on(table, ("fruit_bowl", "mug", "bottle", "jar"), share=0.6)
    low, high = table.bounds
    for x, y_place, yaw in (
        *((float(value), float(high[1]) + 0.27, np.pi) for value in np.linspace(low[0], high[0], 4)[1:-1]),
        *((float(value), float(low[1]) - 0.27, 0.0) for value in np.linspace(low[0], high[0], 4)[1:-1]),
    ):
        plan.put("chair", (x, y_place), yaw=yaw + float(plan.rng.uniform(-0.3, 0.3)))


def furnish_office(plan: Plan) -> None:
    """Furnish an office: the bench as a desk, further desks with screens, cabinets along the walls, and seats."""
    rng, (busy, other) = plan.rng, busy_sides(plan)
    plan.below_bench("desk_base")
    open_somewhere(plan, "front", "door", low=0.0)
    for side in (other, "back") if rng.uniform() < 0.5 else (other,):
        open_somewhere(plan, side, "window", low=0.9)
    line_up(
        plan, "back", pick_kinds(plan, ("bookcase", "filing_cabinet", "bookcase", "filing_cabinet", "sofa"), 4), gap=0.3
    )
    desks = [*line_up(plan, busy, ["side_desk", "side_desk"], gap=0.5), *line_up(plan, other, ["side_desk"])]
    for desk in desks:
        low, high = desk.bounds
        inward = -1 if low[1] > 0 else 1
        x, edge = float(rng.uniform(low[0] + 0.45, high[0] - 0.45)), low[1] if inward < 0 else high[1]
        plan.set_down("monitor", (x, edge - inward * 0.5), desk)
        plan.set_down("keyboard", (x, edge - inward * 0.15), desk)
        plan.clutter_on(desk, ("desk_lamp", "mug", "printer", "book_row", "laptop_computer", "potted_plant"), share=0.7)
        plan.put(
            "office_chair", (x, edge + inward * 0.45), yaw=(np.pi if inward > 0 else 0.0) + float(rng.normal(0, 0.4))
        )
    line_up(plan, other, pick_kinds(plan, ("bookcase", "filing_cabinet", "sofa", "coat_stand"), 2), gap=0.4)
    for one in [one for one in plan.furnishings if one.kind in ("filing_cabinet", "bookcase")]:
        if one.bounds[1, 2] < 0.6:
            plan.clutter_on(one, ("potted_plant", "printer", "book_row", "cardboard_box"), share=0.8)
    strew(plan, ("waste_bin", "potted_plant", "office_chair", "coat_stand", "cardboard_box"), share=0.7)
    if rng.uniform() < 0.6:
        plan.lay("rug", (plan.bench.upper[0] + 0.6, float(rng.uniform(-0.5, 0.5))), yaw=np.pi / 2)
    hang_lamps(plan, "ceiling_lamp")
    plan.close(("whiteboard", "picture", "clock", "radiator", "socket", "picture", "curtain"))


def furnish_storage(plan: Plan) -> None:
    """Furnish a storage room: a packing table between racks, and pallets and carts on the floor."""
    rng, (busy, other) = plan.rng, busy_sides(plan)
    plan.below_bench("packing_base")
    open_somewhere(plan, "front", "roller_door", low=0.0)
    if rng.uniform() < 0.5:
        open_somewhere(plan, other, "door", low=0.0)
    line_up(plan, "back", ["pallet_rack"] * 3 if rng.uniform() < 0.7 else ["wire_shelf"] * 4, gap=0.1)
    line_up(plan, busy, ["pallet_rack", "pallet_rack"] if rng.uniform() < 0.6 else ["wire_shelf"] * 3, gap=0.15)
    row = line_up(
        plan,
        other,
        pick_kinds(plan, ("wire_shelf", "drum", "tote_stack", "roll_cage", "drum", "tote_stack"), 5),
        gap=0.2,
    )
    for one in row:
        if one.kind == "tote_stack" and one.bounds[1, 2] < 0.2:
            plan.clutter_on(one, ("cardboard_box", "crate"), share=0.8)
    heading = float(rng.choice([0.0, np.pi / 2]))
    strew(plan, ("pallet", "pallet"), share=0.8, yaw=heading)
    strew(plan, ("strapping_cart", "hand_truck", "step_ladder", "roll_cage", "waste_bin", "crate"), share=0.65)
    strew(plan, ("cardboard_box",) * 4, share=0.8)
    if rng.uniform() < 0.6:
        for x in (plan.x[0] + 0.2, plan.x[1] - 0.2):
            plan.put("column", (x, plan.y[0] + 0.2), size=(0.35, 0.35, plan.height))
    plan.against("front", "fire_extinguisher", 0.3, up=0.5)
    hang_lamps(plan, "ceiling_lamp")
    plan.close(("clock", "poster", "socket", "radiator"))


def furnish_workshop(plan: Plan) -> None:
    """Furnish a workshop: benches and machines along the walls, tools above them, and lumber and drums on the floor."""
    rng, (busy, other) = plan.rng, busy_sides(plan)
    plan.below_bench("workshop_base")
    open_somewhere(plan, "front", "roller_door" if rng.uniform() < 0.5 else "door", low=0.0)
    open_somewhere(plan, other, "window", low=1.1)
    rows: dict[Side, tuple[str, ...]] = {
        "back": ("workbench", "tool_chest", "workbench", "wire_shelf", "tool_chest"),
        busy: ("workbench", "tool_chest"),
    }
    benches = []
    for side, kinds in rows.items():
        for made in line_up(plan, side, pick_kinds(plan, kinds, len(kinds)), gap=0.2):
            if made.kind in ("workbench", "tool_chest"):
                benches.append((side, made))
    for side, bench in benches:
        low, high = bench.bounds
        along = plan.along(side, bench)
        if bench.kind == "workbench":
            plan.against(side, "pegboard" if rng.uniform() < 0.6 else "bin_wall", along, up=1.25)
        if rng.uniform() < 0.4 and bench.kind == "workbench":
            plan.set_down("drill_press", (float(low[0] + high[0]) / 2, float(low[1] + high[1]) / 2), bench)
        plan.clutter_on(bench, ("tool_box", "paint_can", "jar", "bottle", "crate", "desk_lamp", "paint_can"), share=0.8)
    line_up(
        plan, other, pick_kinds(plan, ("lumber_stack", "compressor", "shop_vacuum", "drum", "wire_shelf"), 4), gap=0.3
    )
    strew(plan, ("sawhorse", "sawhorse", "stool", "shop_vacuum", "compressor", "step_ladder", "waste_bin"), share=0.6)
    strew(plan, ("tool_box", "crate", "paint_can", "cardboard_box"), share=0.7)
    hang_lamps(plan, "ceiling_lamp")
    plan.close(("clock", "fire_extinguisher", "poster", "socket", "pegboard", "radiator"))


def furnish_shop(plan: Plan) -> None:
    """Furnish a shop: the bench as the counter, shelves of goods along the walls, stands and gondolas on the floor."""
    rng, (busy, other) = plan.rng, busy_sides(plan)
    plan.below_bench("counter_base")
    open_somewhere(plan, "front", "door", low=0.0)
    for share in (0.25, 0.75):
        plan.open("front", "window", share * plan.wall_of("front").length, low=0.5, size=(1.6, 0.12, 1.6))
    if rng.uniform() < 0.5:
        open_somewhere(plan, other, "window", low=0.7)
    theme = int(rng.integers(3))
    back = (["display_shelf"] * 4, ["fridge_case", "fridge_case", "display_shelf"], ["display_shelf", "fridge_case"])[
        theme
    ]
    line_up(plan, "back", [*back, "display_shelf"], gap=0.05)
    line_up(plan, busy, ["display_shelf"] * 4 if rng.uniform() < 0.6 else ["fridge_case", "display_shelf"], gap=0.1)
    islands = ("fruit_stand", "newspaper_rack", "clothes_rail", "basket_stack", "display_shelf")
    line_up(plan, other, pick_kinds(plan, islands, 4), gap=0.3)
    counter = plan.stand("side_desk", (plan.x[0], 0.0), (plan.y[0], plan.y[1]), yaw=np.pi / 2)
    if counter:
        middle = counter.bounds.mean(axis=0)
        plan.set_down("cash_register", (float(middle[0]), float(middle[1])), counter)
        plan.set_down("card_terminal", (float(middle[0]), float(middle[1]) + 0.4), counter)
        plan.clutter_on(counter, ("jar", "book_row", "mug", "card_terminal"), share=0.6)
    strew(plan, ("gondola", "fruit_stand"), share=0.7, yaw=float(rng.choice([0.0, np.pi / 2])))
    strew(plan, ("basket_stack", "crate", "crate", "newspaper_rack", "potted_plant", "waste_bin"), share=0.7)
    kind = "pendant_lamp" if rng.uniform() < 0.5 else "ceiling_lamp"
    hang_lamps(plan, kind)
    plan.close(("poster", "poster", "clock", "poster", "socket"))


FURNISH: Mapping[Family, Callable[[Plan], None]] = {
    "kitchen": furnish_kitchen,
    "office": furnish_office,
    "storage": furnish_storage,
    "workshop": furnish_workshop,
    "shop": furnish_shop,
}
"""Functions that furnish a plan, by family."""
