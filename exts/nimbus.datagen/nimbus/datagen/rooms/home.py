"""Generated home: rooms with doors, windows and furniture, built from the parts of single rooms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.ndimage import distance_transform_edt, label

from nimbus.datagen.arrays import BoolArray, FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.bath_parts import BATH, JAMB
from nimbus.datagen.rooms.bedroom_parts import BEDROOM
from nimbus.datagen.rooms.building_parts import WALL
from nimbus.datagen.rooms.furnishing import Furnishing, FurnishingKind, by_name
from nimbus.datagen.rooms.home_model import HomeDoor, HomePlan, HomeRoom
from nimbus.datagen.rooms.home_plan import (
    Rectangle,
    SharedWall,
    assign_kinds,
    choose_doors,
    cut_rooms,
    shared_walls,
)
from nimbus.datagen.rooms.home_rooms import HOME_ROOMS
from nimbus.datagen.rooms.kinds import KINDS
from nimbus.datagen.rooms.look import draw_look
from nimbus.datagen.rooms.plan import RoomPlan
from nimbus.datagen.rooms.stairs import DOORWAY, STAIRS, STAIRWELL, Flight, find_flight, opened_wall, stair_patches
from nimbus.datagen.rooms.walls import Side

HOME_VERSION = 4
"""Version of the generator and of the objects in homes; raise it when any home changes."""
HOME_KINDS: Mapping[str, FurnishingKind] = dict(KINDS) | by_name((*BEDROOM, *BATH))
"""Kinds of furnishings in homes, by name."""
_SIGHT = 1.85
"""Smallest height of a lamp above the floor [m], so that bodies and cameras pass below."""
_SLAB = 0.3
"""Thickness between a ceiling and the floor above it [m]."""
_WAY = 0.33
"""Radius of the passage that stays free between all doors of a room [m], for bodies of up to 50 cm in width."""
_CELL = 0.05
"""Side of a cell of the map in which the passage is searched for [m]."""
_STAND_IN_WAY = (0.03, 1.6)
"""Range of heights in which a furnishing is an obstacle [m]."""
_NO_OBSTACLES = ("doorway", "skirting")
"""Kinds that are not obstacles: doorways are open, and skirting is thinner than the margin of the passage."""
_LAMP_REACH = 4.2
"""Length of a room that one lamp lights [m]."""


def make_home(seed: int, rooms: tuple[int, int], *, clutter: float | None = None, storeys: int = 1) -> HomePlan:
    """Generate a home; equal arguments give equal homes.

    Args:
        seed: Seed of the home.
        rooms: Smallest and largest number of rooms on a storey.
        clutter: Fraction of the free positions that small objects fill; drawn by default.
        storeys: Number of storeys with the same walls, connected by stairwells.
    """
    rng = generator(seed, "home")
    cut = cut_rooms(rng, int(rng.integers(rooms[0], rooms[1] + 1)))
    kinds = assign_kinds(rng, cut)
    height, share = float(rng.uniform(2.45, 2.8)), float(rng.uniform(0.3, 0.7)) if clutter is None else clutter
    floors = [_Storey(seed, cut, kinds, rng, height=height, share=share)]
    for number in range(1, storeys):
        own = generator(seed, "home", "storey", number)
        above = assign_kinds(own, cut, is_upper=True)
        salt = int(own.integers(2**31 - 1))
        floor = number * (height + _SLAB)
        floors.append(_Storey(salt, cut, above, own, height=height, share=share, floor=floor, below=floors))
    wells = [_stairwell(seed, floors[place], floors[place + 1], place) for place in range(storeys - 1)]
    flights = [flight for flight, _, _ in wells]
    made = [room for number, storey in enumerate(floors) for room in storey.furnished(flights, is_entered=number == 0)]
    made += [room for _, room, _ in wells]
    doors = [door for storey in floors for door in storey.doors] + [door for _, _, pair in wells for door in pair]
    named = tuple(replace(door, name=f"doorway_{number}") for number, door in enumerate(doors))
    return HomePlan(seed, _numbered(made), named)


class _Storey:
    """One floor of a home during furnishing."""

    def __init__(
        self,
        seed: int,
        cut: Sequence[Rectangle],
        kinds: Sequence[str],
        rng: np.random.Generator,
        *,
        height: float,
        share: float,
        floor: float = 0.0,
        below: Sequence[_Storey] = (),
    ) -> None:
        self.cut, self.kinds, self.floor, self.height, self._seed = cut, kinds, floor, height, seed
        before = [kind for storey in below for kind in storey.kinds]
        self.names = [
            f"{kind}_{before.count(kind) + list(kinds[:place]).count(kind)}" for place, kind in enumerate(kinds)
        ]
        self.plans = [
            RoomPlan(
                floor,
                HOME_KINDS,
                generator(seed, "home", "room", place),
                x=room.x,
                y=room.y,
                height=height,
                clutter=share,
                sight=floor + _SIGHT,
            )
            for place, room in enumerate(cut)
        ]
        self.doors = _open_doors(rng, self.plans, cut, kinds, self.names)

    def furnished(self, flights: Sequence[Flight], *, is_entered: bool) -> list[HomeRoom]:
        """Furnish all rooms; walls in front of a flight of stairs get no windows."""
        entered = self.kinds.index(_entered(self.kinds)) if is_entered else -1
        return [
            _furnished(
                plan,
                self.cut,
                place,
                self.kinds[place],
                self.names[place],
                seed=self._seed,
                entrance=place == entered,
                closed={flight.side for flight in flights if _is_behind(flight, self.cut[place])},
            )
            for place, plan in enumerate(self.plans)
        ]


def _is_behind(flight: Flight, room: Rectangle) -> bool:
    """Return True if a flight of stairs is beside a room."""
    span = room.y if flight.side == "front" else room.x
    return span[0] < flight.span[1] and flight.span[0] < span[1]


def _stairwell(
    seed: int, below: _Storey, above: _Storey, number: int
) -> tuple[Flight, HomeRoom, tuple[HomeDoor, HomeDoor]]:
    """Connect two storeys by a stairwell; return the flight, its room, and the doors on both storeys.

    Raises:
        InputError: No wall of the home is long enough for stairs.
    """
    sides: tuple[Side, Side] = ("front", "left")
    found = (find_flight(below.cut, side, low=below.floor, high=above.floor) for side in sides)
    flight = next((one for one in found if one is not None), None)
    if flight is None:
        what = f"home {seed}, with {len(below.cut)} rooms per storey, has no wall long enough for stairs"
        raise InputError(what, where="scene: rooms", instead="use more rooms, for example rooms: [6, 9]")
    name, doors, width = f"{STAIRWELL}_{number}", [], DOORWAY[0] - 2 * JAMB
    for storey, place, at in zip((below, above), flight.rooms, flight.doors, strict=True):
        room = flight.rectangle
        storey.plans[place].open(flight.side, "doorway", _along(storey.cut[place], flight.side, at), size=DOORWAY)
        edge = room.x[0] - WALL / 2 if flight.side == "front" else room.y[0] - WALL / 2
        spot = (edge, at, storey.floor) if flight.side == "front" else (at, edge, storey.floor)
        doors.append(HomeDoor("", (storey.names[place], name), spot, width))
    rng = generator(seed, "home", "stairwell", number)
    height = above.floor - below.floor + above.height
    plan = RoomPlan(
        below.floor,
        HOME_KINDS,
        rng,
        x=flight.rectangle.x,
        y=flight.rectangle.y,
        height=height,
        clutter=0.0,
        sight=above.floor + _SIGHT,
    )
    inner: Side = "back" if flight.side == "front" else "right"
    plan.walls[inner] = opened_wall(plan.walls[inner], flight)
    middle = (sum(plan.x) / 2, sum(plan.y) / 2)
    plan.hang("ceiling_lamp", middle)
    plan.close()
    lamp = (*middle, below.floor + height - 0.12)
    furnishings = (*plan.furnishings, Furnishing(STAIRS, STAIRS, stair_patches(flight)))
    made = HomeRoom(
        name=name,
        kind=STAIRWELL,
        rectangle=flight.rectangle,
        floor=below.floor,
        height=height,
        furnishings=furnishings,
        walls=np.concatenate([wall.panels() for wall in plan.walls.values()]),
        lamps=(lamp,),
        look=draw_look("office", int(rng.integers(2**31 - 1))),
        ground=flight.ground,
    )
    return flight, made, (doors[0], doors[1])


def _entered(kinds: Sequence[str]) -> str:
    """Return the kind of the room that has the front door."""
    return "hall" if "hall" in kinds else kinds[0]


def _open_doors(
    rng: np.random.Generator,
    plans: Sequence[RoomPlan],
    cut: Sequence[Rectangle],
    kinds: Sequence[str],
    names: Sequence[str],
) -> list[HomeDoor]:
    """Cut doorways into the shared walls of rooms."""
    doors = []
    for wall in choose_doors(rng, shared_walls(cut), kinds):
        width, depth, height = HOME_KINDS["doorway"].draw_size(rng)
        margin = width / 2 + 0.12
        place = float(rng.uniform(wall.low + margin, wall.high - margin))
        first, second = wall.rooms
        if not plans[first].open(
            wall.sides[0], "doorway", _along(cut[first], wall.sides[0], place), size=(width, depth, height)
        ):
            place = (wall.low + wall.high) / 2
            plans[first].open(
                wall.sides[0], "doorway", _along(cut[first], wall.sides[0], place), size=(width, depth, height)
            )
        plans[second].cut(wall.sides[1], _along(cut[second], wall.sides[1], place), width=width, height=height)
        doors.append(
            HomeDoor(
                f"doorway_{len(doors)}",
                (names[first], names[second]),
                (*_middle(cut[first], wall, place), plans[first].floor),
                width - 2 * JAMB,
            )
        )
    return doors


def _middle(room: Rectangle, wall: SharedWall, place: float) -> tuple[float, float]:
    return (room.x[1] + WALL / 2, place) if wall.axis == 0 else (place, room.y[1] + WALL / 2)


def _along(room: Rectangle, side: Side, place: float) -> float:
    """Return the distance of a point on a wall from the wall's start [m]."""
    return {
        "right": place - room.x[0],
        "front": place - room.y[0],
        "left": room.x[1] - place,
        "back": room.y[1] - place,
    }[side]


def _furnished(
    plan: RoomPlan,
    cut: Sequence[Rectangle],
    place: int,
    kind: str,
    name: str,
    *,
    seed: int,
    entrance: bool,
    closed: Collection[Side],
) -> HomeRoom:
    """Add windows, furniture, lamps and objects on walls to a room; its doors stay connected."""
    rng, room, made = plan.rng, cut[place], HOME_ROOMS[kind]
    outside: list[Side] = [side for side in _outside(cut, room) if side not in closed]
    if entrance and outside:
        _open_at(plan, outside[0], "door", low=0.0)
    for side in outside:
        if made.has_window and rng.uniform() < 0.85:
            _open_at(plan, side, "window", low=1.3 if kind == "bathroom" else 0.85)
    built = len(plan.furnishings)
    made.furnish(plan)
    _keep_way(plan, built)
    long = 0 if np.ptp(plan.x) > np.ptp(plan.y) else 1
    count = max(1, round(float(np.ptp((plan.x, plan.y)[long])) / _LAMP_REACH))
    lamps = []
    for share in (np.arange(count) + 0.5) / count:
        spot = [sum(plan.x) / 2, sum(plan.y) / 2]
        spot[long] = float((plan.x, plan.y)[long][0] + share * np.ptp((plan.x, plan.y)[long]))
        before = len(plan.furnishings)
        plan.hang(made.lamp, (spot[0], spot[1]))
        low = plan.height if len(plan.furnishings) == before else float(plan.furnishings[-1].bounds[0, 2])
        lamps.append((spot[0], spot[1], low - 0.02))
    furnished = len(plan.furnishings)
    plan.close(made.hung)
    _keep_way(plan, furnished)
    return HomeRoom(
        name=name,
        kind=kind,
        rectangle=room,
        floor=plan.floor,
        height=plan.height,
        furnishings=tuple(plan.furnishings),
        walls=np.concatenate([wall.panels() for wall in plan.walls.values()]),
        lamps=tuple(lamps),
        look=draw_look(made.family, int(generator(seed, "home", "look", place).integers(2**31 - 1))),
    )


def _outside(cut: Sequence[Rectangle], room: Rectangle) -> list[Side]:
    """Return the sides of a room that are on outer walls."""
    x = min(one.x[0] for one in cut), max(one.x[1] for one in cut)
    y = min(one.y[0] for one in cut), max(one.y[1] for one in cut)
    found: dict[Side, bool] = {
        "right": room.y[0] == y[0],
        "front": room.x[1] == x[1],
        "left": room.y[1] == y[1],
        "back": room.x[0] == x[0],
    }
    return [side for side, is_outer in found.items() if is_outer]


def _open_at(plan: RoomPlan, side: Side, kind: str, *, low: float) -> bool:
    """Cut an opening into a wall at a drawn position with enough room; return False if there is none."""
    length = plan.walls[side].length
    size = plan.kinds[kind].draw_size(plan.rng)
    size = (min(size[0], length - 0.5), size[1], min(size[2], plan.height - low - 0.15))
    places = [
        float(plan.rng.uniform(size[0] / 2 + 0.15, max(length - size[0] / 2 - 0.15, size[0] / 2 + 0.16)))
        for _ in range(4)
    ]
    return any(plan.open(side, kind, along, low=low, size=size) for along in places)


def _keep_way(plan: RoomPlan, start: int) -> None:
    """Remove furnishings, starting with the last, until a body can pass between all doors.

    Args:
        plan: Plan of the room.
        start: Number of furnishings, from the start of the list, that are never removed.
    """
    spots = [
        wall.frame(opening.middle, out=0.45)[:2, 3]
        for wall in plan.walls.values()
        for opening in wall.openings
        if opening.kind == "doorway"
    ]
    while not _is_joined(plan, [one for one in plan.furnishings if _is_in_way(plan, one)], spots):
        loose = [one for one in plan.furnishings[start:] if _is_in_way(plan, one)]
        removable = [one for one in loose if not any(_stands_on(one, other) for other in loose)]
        if not removable:
            return
        gone = removable[-1]
        on_top = [one for one in loose if _stands_on(one, gone)]
        plan.furnishings = [one for one in plan.furnishings if one is not gone and one not in on_top]


def _is_in_way(plan: RoomPlan, one: Furnishing) -> bool:
    low, high = (float(value) - plan.floor for value in one.bounds[:, 2])
    return one.kind not in _NO_OBSTACLES and high > _STAND_IN_WAY[0] and low < _STAND_IN_WAY[1]


def _stands_on(one: Furnishing, other: Furnishing) -> bool:
    (low, high), middle = other.bounds, one.bounds.mean(axis=0)
    return bool(
        one is not other and np.all(low[:2] < middle[:2]) and np.all(middle[:2] < high[:2]) and middle[2] > low[2] + 0.2
    )


def _is_joined(plan: RoomPlan, standing: Sequence[Furnishing], spots: Sequence[FloatArray]) -> bool:
    """Check that one sufficiently wide region of the floor joins all doors, or exists if there are no doors."""
    origin = np.array([plan.x[0], plan.y[0]])
    free = _free_map(plan, standing, origin)
    wide = np.asarray(distance_transform_edt(np.pad(free, 1)))[1:-1, 1:-1] * _CELL >= _WAY
    regions = np.zeros(wide.shape, dtype=np.int32)
    label(wide, output=regions)
    found = []
    for spot in spots:
        i, j = np.clip(((spot - origin) / _CELL).astype(int), 0, np.array(free.shape) - 1)
        found.append(int(regions[i, j]))
    if not found:
        return bool(wide.any())
    return found[0] > 0 and all(region == found[0] for region in found)


def _free_map(plan: RoomPlan, standing: Sequence[Furnishing], origin: FloatArray) -> BoolArray:
    size = np.ceil((np.array([plan.x[1], plan.y[1]]) - origin) / _CELL).astype(int)
    free = np.ones(size, dtype=bool)
    for one in standing:
        low = np.floor((one.bounds[0, :2] - origin) / _CELL).astype(int)
        high = np.ceil((one.bounds[1, :2] - origin) / _CELL).astype(int)
        free[max(low[0], 0) : max(high[0], 0), max(low[1], 0) : max(high[1], 0)] = False
    return free


def _numbered(rooms: Sequence[HomeRoom]) -> tuple[HomeRoom, ...]:
    """Rename the furnishings of the home so that all names are unique."""
    counts: dict[str, int] = {}
    found = []
    for room in rooms:
        named = []
        for one in room.furnishings:
            number = counts.get(one.kind, 0)
            counts[one.kind] = number + 1
            named.append(replace(one, name=f"{one.kind}_{number}"))
        found.append(replace(room, furnishings=tuple(named)))
    return tuple(found)
