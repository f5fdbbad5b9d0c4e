"""Plans of the families of rooms: what stands where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nimbus.datagen.rooms.plan import Plan
from nimbus.datagen.rooms.settings import Family
from nimbus.datagen.rooms.walls import Side

_CORNER = 0.64
"""[m] Of a wall, that the row along the wall beside it takes."""


def _shuffled(plan: Plan, names: Sequence[str], count: int) -> list[str]:
    """Draw kinds one by one, with repetition."""
    return [names[int(plan.rng.integers(len(names)))] for _ in range(count)]


def _sides(plan: Plan) -> tuple[Side, Side]:
    """Draw which of the two sides is the busier one."""
    return ("left", "right") if plan.rng.uniform() < 0.5 else ("right", "left")


def _somewhere(plan: Plan, side: Side, kind: str, *, low: float) -> bool:
    """Cut an opening into a wall at a drawn place."""
    length = plan.wall_of(side).length
    return any(plan.open(side, kind, float(plan.rng.uniform(0.25, 0.75)) * length, low=low) for _ in range(3))


def furnish_kitchen(plan: Plan) -> None:
    """Furnish a kitchen: an island before a row of units in the shape of an I or an L, stools, a table."""
    rng, (busy, other) = plan.rng, _sides(plan)
    plan.below_bench("island_base")
    _somewhere(plan, "front", "door", low=0.0)
    _somewhere(plan, other, "window", low=0.95)
    if rng.uniform() < 0.6:
        _somewhere(plan, "back", "window", low=1.05)
    length, end = plan.wall_of("back").length, _CORNER if rng.uniform() < 0.6 else 0.0
    low, high = (0.0, length - end) if busy == "right" else (end, length)
    tall = ["fridge", "tall_unit"] if rng.uniform() < 0.6 else ["fridge"]
    units = ["base_cabinet", "stove", "drawer_unit", "sink_unit", "dishwasher", "base_cabinet", "drawer_unit"]
    rng.shuffle(units)
    row = plan.row("back", [*tall, *units, "base_cabinet", "base_cabinet"], low, high)
    if end:
        width = plan.wall_of(busy).length
        start, stop = (0.02, 0.62 * width) if busy == "right" else (0.38 * width, width - 0.02)
        more = ["base_cabinet", *_shuffled(plan, ("base_cabinet", "drawer_unit", "dishwasher"), 4)]
        row += plan.row(busy, more, start, stop)
    kitchenware = ("kettle", "toaster", "coffee_machine", "pot", "knife_block", "jar", "fruit_bowl", "bottle")
    kitchenware += ("dish_rack", "microwave_oven", "paper_roll", "cutting_board", "mug", "jar", "bottle")
    wall, along = plan.wall_of("back"), {}
    for unit in row:
        back = unit.bounds[0, 0] < plan.x[0] + 0.05
        if unit.kind == "stove" and back:
            along["stove"] = wall.start[1] - float(unit.bounds.mean(axis=0)[1])
            plan.against("back", "cooker_hood", along["stove"], up=1.6)
        if unit.kind in ("base_cabinet", "drawer_unit", "dishwasher"):
            plan.clutter_on(unit, kitchenware)
        elif unit.kind == "stove":
            plan.clutter_on(unit, ("pot", "pan"), share=0.7)
    if rng.uniform() < 0.75:
        plan.row("back", ["wall_cupboard"] * 8, low + 0.7, high, up=1.45)
    else:
        plan.row("back", ["open_shelf"] * 4, low + 0.75, high, up=1.4)
    if rng.uniform() < 0.7:
        for unit in row:
            if (
                unit.kind in ("base_cabinet", "drawer_unit", "sink_unit", "stove")
                and unit.bounds[0, 0] < plan.x[0] + 0.05
            ):
                width = float(np.ptp(unit.bounds[:, 1]))
                middle = wall.start[1] - float(unit.bounds.mean(axis=0)[1])
                plan.against("back", "tiled_splash", middle, up=0.91, size=(width, 0.012, 0.48))
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
    """Put a table and chairs onto the floor of one side."""
    y = (plan.bench.upper[1] + 0.8, plan.y[1]) if side == "left" else (plan.y[0], plan.bench.lower[1] - 0.8)
    table = plan.stand("dining_table", plan.x, y, yaw=float(plan.rng.choice([0.0, np.pi / 2])))
    if table is None:
        return
    plan.clutter_on(table, ("fruit_bowl", "mug", "bottle", "jar"), share=0.6)
    low, high = table.bounds
    for x, y_place, yaw in (
        *((float(value), float(high[1]) + 0.12, np.pi) for value in np.linspace(low[0], high[0], 4)[1:-1]),
        *((float(value), float(low[1]) - 0.12, 0.0) for value in np.linspace(low[0], high[0], 4)[1:-1]),
    ):
        plan.put("chair", (x, y_place), yaw=yaw + float(plan.rng.uniform(-0.3, 0.3)))


FURNISH: Mapping[Family, Callable[[Plan], None]] = {"kitchen": furnish_kitchen}
"""Furnishes a plan, by family."""
