"""Sampling of starts and goals in a scene; areas not covered by earlier paths are preferred."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial import KDTree

from nimbus.datagen import registry
from nimbus.datagen.arrays import IndexArray, IntArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.codec import from_plain
from nimbus.datagen.navigate.goal_kind import GoalKind, GoalTarget
from nimbus.datagen.navigate.keep import frechet
from nimbus.datagen.navigate.scene_map import SceneMap
from nimbus.datagen.random_streams import generator

_SEEN = 0.5
"""Distance from a path within which free area counts as covered [m]."""
_TRIES = 24
"""Largest number of pairs of start and goal that are tried for one episode."""
_CHOICES = 40
"""Largest number of candidates for a start, or for a goal; the one with the most uncovered area around it is used."""


@dataclass(frozen=True, kw_only=True)
class GoalRequest:
    """Goals requested by a task."""

    to: str
    """Registered name of the goal kind."""
    kinds: tuple[str, ...] = ()
    """Classes of objects or kinds of rooms; empty for all."""
    length: tuple[float, float]
    """Range of the geodesic distance [m]."""
    detour: float
    """Smallest ratio of geodesic to straight distance; after many tries without such a pair, others are accepted."""
    duplicates: float
    """Smallest discrete Frechet distance between two paths to the same target [m]."""


@dataclass(frozen=True, kw_only=True)
class NavigationGoal:
    """Start and goal of one episode."""

    scene: str
    number: int
    """Number of the scene in its source."""
    rank: int
    """Rank of the episode among the episodes of its scene."""
    kind: str
    start: tuple[float, float, float, float]
    """Position x, y, z [m] and yaw [rad] of the start."""
    goal: tuple[float, float, float]
    """x, y, z of the goal [m]."""
    facing: tuple[float, float, float] | None
    """Point that the body faces at the end [m]; None if it keeps the heading of arrival."""
    name: str
    """Name of the target; empty for a point."""
    object_class: str
    """Class of the target object or kind of the target room; empty for a point."""
    rooms: tuple[str, str]
    """Names of the rooms of start and goal."""
    geodesic: float
    """Geodesic distance from start to goal [m]."""
    refused: str = ""
    """Reason why no goal was found, with its figures; empty if there is a goal."""

    @classmethod
    def from_drawn(cls, drawn: Mapping[str, Any]) -> Self:
        """Return the goal among the drawn values of a physical layout, which may come from a foreign file.

        Raises:
            InputError: There is no goal, or a field of it is missing or of another type.
        """
        try:
            return from_plain(cls, drawn.get("goal"))
        except ValueError as error:
            what = f"the layout of the episode has no goal: {error}".split("\n")[0]
            raise InputError(what, where="layout", instead="run 'nimbus verify' for details") from None

    def to_plain(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


class GoalSampler:
    """Sampler of one scene's goals. The goal of a rank depends only on the scene, the request, the seed and the rank.

    Args:
        place: Scene with its free space.
        request: Goals requested by the task.
        seed: Seed of the run.
        number: Number of the scene.

    Raises:
        InputError: The scene has no goal of the requested kinds.
    """

    def __init__(self, place: SceneMap, request: GoalRequest, *, seed: int, number: int) -> None:
        self._place, self._request, self._seed, self._number = place, request, seed, number
        self._kind: GoalKind = registry.lookup("goal", request.to)()
        self._targets = self._kind.targets(place, request.kinds)
        if not self._targets:
            raise InputError(
                f"scene {place.scene.name} has no {' or '.join(request.kinds) or 'object'} to go to",
                where="navigate: kinds",
                instead=suggest((request.kinds or ("",))[0], sorted(self._kind.names(place))),
            )
        nodes = place.space.main_nodes
        self._tree = KDTree(place.space.positions[nodes])
        self._covered = np.zeros(len(nodes), dtype=bool)
        self._paths: dict[str, list[IndexArray]] = {}
        self._pairs = self._room_pairs()
        self._made: list[NavigationGoal] = []

    def goal(self, rank: int) -> NavigationGoal:
        """Return the goal of a rank; the goals of lower ranks are drawn before it."""
        while len(self._made) <= rank:
            self._made.append(self._draw(len(self._made)))
        return self._made[rank]

    @property
    def targets(self) -> tuple[GoalTarget, ...]:
        """All possible targets of paths."""
        return tuple(self._targets)

    @property
    def covered(self) -> float:
        """Fraction of the free area that is within 50 cm of a path drawn so far."""
        return float(self._covered.mean())

    def _room_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of start room and goal room in random order; pairs of equal rooms are last."""
        starts = list(self._place.nodes_by_room)
        goals = sorted({target.room for target in self._targets})
        pairs = [(one, other) for one in starts for other in goals]
        order = generator(self._seed, "navigation pairs", self._number).permutation(len(pairs))
        return sorted((pairs[int(place)] for place in order), key=lambda pair: pair[0] == pair[1])

    def _draw(self, rank: int) -> NavigationGoal:
        rng = generator(self._seed, "navigation goal", self._number, rank)
        best: NavigationGoal | None = None
        reason = f"{Reason.UNREACHABLE}: no pair of start and goal"
        for attempt in range(_TRIES):
            pair = self._pairs[attempt] if attempt < len(self._pairs) and attempt < _TRIES // 2 else None
            found = self._try(rng, rank, pair)
            if isinstance(found, str):
                reason = found
                continue
            made, path = found
            straight = max(float(np.linalg.norm(np.subtract(made.goal, made.start[:3]))), 1e-6)
            if made.geodesic / straight >= self._request.detour or attempt >= _TRIES - 4:
                return self._keep(made, path)
            best = best or made
            reason = f"{Reason.TOO_STRAIGHT}: detour {made.geodesic / straight:.2f}, at least {self._request.detour:g}"
        if best is not None and (path := self._path(best)) is not None:
            return self._keep(best, path)
        return self._refused(rank, reason)

    def _try(
        self, rng: np.random.Generator, rank: int, pair: tuple[str, str] | None
    ) -> tuple[NavigationGoal, IndexArray] | str:
        place, request = self._place, self._request
        start = self._start(rng, pair)
        low, high = request.length
        targets = [target for target in self._targets if not pair or target.room == pair[1]]
        if not targets:
            return f"{Reason.UNREACHABLE}: nothing between {low:g} m and {high:g} m away"
        ends = np.concatenate([target.nodes for target in targets])
        every = place.search.distances(start, ends, within=1.05 * high)
        starts = np.cumsum([len(target.nodes) for target in targets])[:-1]
        choices = []
        for target, distance in zip(targets, np.split(every, starts), strict=True):
            is_near = np.isfinite(distance)
            nodes, distance = target.nodes[is_near], distance[is_near]
            if not len(nodes):
                continue
            if self._kind.nearest:
                nearest = [int(distance.argmin())]
                nodes, distance = nodes[nearest], distance[nearest]
            nodes = nodes[(distance >= low) & (distance <= 1.05 * high)]
            choices += [(target, int(node)) for node in rng.permutation(nodes)[:_CHOICES]]
        if not choices:
            return f"{Reason.UNREACHABLE}: nothing between {low:g} m and {high:g} m away"
        order = rng.permutation(len(choices))[:_CHOICES]
        target, goal = max((choices[int(entry)] for entry in order), key=lambda choice: self._news(choice[1]))
        path = place.search.path(start, goal)
        if path is None:
            return f"{Reason.UNREACHABLE}: no path"
        geodesic = place.taut_length(path)
        if not low <= geodesic <= high:
            wrong = Reason.TOO_SHORT if geodesic < low else Reason.TOO_LONG
            return f"{wrong}: {geodesic:.2f} m, {low:g} m to {high:g} m"
        near = [
            frechet(place.space.positions[path], place.space.positions[one]) for one in self._paths.get(target.name, ())
        ]
        if near and min(near) < request.duplicates:
            return f"{Reason.DUPLICATE}: {min(near):.2f} m from an earlier path, at least {request.duplicates:g} m"
        return self._goal(rng, rank, start, goal, target, geodesic), path

    def _goal(
        self, rng: np.random.Generator, rank: int, start: int, goal: int, target: GoalTarget, geodesic: float
    ) -> NavigationGoal:
        (x, y, z), (gx, gy, gz) = (
            self._place.space.positions[start].tolist(),
            self._place.space.positions[goal].tolist(),
        )
        facing = None
        if target.facing is not None:
            fx, fy, fz = target.facing.tolist()
            facing = (fx, fy, fz)
        return NavigationGoal(
            scene=self._place.scene.name,
            number=self._number,
            rank=rank,
            kind=self._request.to,
            start=(x, y, z, float(rng.uniform(-np.pi, np.pi))),
            goal=(gx, gy, gz),
            facing=facing,
            name=target.name,
            object_class=target.object_class,
            rooms=(self._room_of(start), target.room),
            geodesic=geodesic,
        )

    def _refused(self, rank: int, reason: str) -> NavigationGoal:
        node = int(self._place.space.main_nodes[0])
        nothing = GoalTarget(name="", object_class="", room="", nodes=np.array([node]))
        rng = generator(self._seed, "navigation refused", self._number, rank)
        made = self._goal(rng, rank, node, node, nothing, 0.0)
        return NavigationGoal(**{**asdict(made), "refused": reason})

    def _start(self, rng: np.random.Generator, pair: tuple[str, str] | None) -> int:
        nodes = self._place.space.main_nodes if pair is None else self._place.nodes_by_room[pair[0]]
        choices: IntArray = rng.choice(nodes, min(len(nodes), _CHOICES), replace=False)
        return int(max(choices, key=lambda node: self._news(int(node))))

    def _room_of(self, node: int) -> str:
        """Return the name of the room of a node; empty outside all rooms."""
        row = np.searchsorted(self._place.space.main_nodes, node)
        number = int(self._place.main_room_numbers[row])
        return self._place.scene.rooms[number].name if number >= 0 else ""

    def _news(self, node: int) -> int:
        """Count the uncovered nodes near a node."""
        near = self._tree.query_ball_point(self._place.space.positions[node], _SEEN)
        return int(np.count_nonzero(~self._covered[near]))

    def _path(self, made: NavigationGoal) -> IndexArray | None:
        ends = self._place.space.locate(np.array([made.start[:3], made.goal]))
        return self._place.search.path(int(ends[0]), int(ends[1]))

    def _keep(self, made: NavigationGoal, path: IndexArray) -> NavigationGoal:
        """Record the area covered by the path to a goal; return the goal."""
        for near in self._tree.query_ball_point(self._place.space.positions[path[::3]], _SEEN):
            self._covered[near] = True
        self._paths.setdefault(made.name, []).append(path)
        crossed = made.rooms
        self._pairs = [pair for pair in self._pairs if pair != crossed] or self._room_pairs()
        return made


def check_kinds(place: SceneMap, to: str, kinds: Collection[str]) -> None:
    """Check that a scene has a possible goal of each given class or kind.

    Raises:
        InputError: A kind is missing; the message lists the available ones.
    """
    known = registry.lookup("goal", to)().names(place)
    for kind in kinds:
        if kind not in known:
            what = f"scene {place.scene.name} has no '{kind}'"
            raise InputError(what, where="navigate: kinds", instead=suggest(kind, sorted(known)))
