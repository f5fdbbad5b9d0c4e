"""Independent measurements of navigation: homes, coverage, lengths, and distances of swept bodies to triangles.

``python -m benchmarks.navigation homes --count 1000``   every room reachable, no plan twice
``python -m benchmarks.navigation paths --scenes 67 --paths 150``   goals, coverage, clearance, length over geodesic
``python -m benchmarks.navigation geodesics --scenes 2``   stored geodesics against a search over all corners

``paths`` plans the drives that a run stores, without pictures and without the distances to the goal along them. With
``--rows FILE`` it writes the figures of each scene to a file, and continues from that file; so does ``homes``.

Clearance is computed with NumPy from clipped triangles, without cells, rays or kernels of the library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))

import numpy as np  # noqa: E402
from scipy.ndimage import binary_dilation  # noqa: E402
from scipy.sparse import csr_matrix  # noqa: E402
from scipy.sparse.csgraph import dijkstra  # noqa: E402
from scipy.spatial import KDTree  # noqa: E402

from nimbus.datagen.arrays import FloatArray, IndexArray  # noqa: E402
from nimbus.datagen.episode.layout import PhysicalLayout  # noqa: E402
from nimbus.datagen.execute.path_planner import plan_drive  # noqa: E402
from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.load.navigation_loader import open_navigation  # noqa: E402
from nimbus.datagen.navigate.body import BodyShape  # noqa: E402
from nimbus.datagen.navigate.homes import home_scene  # noqa: E402
from nimbus.datagen.navigate.scene_map import SceneMap, map_scene  # noqa: E402
from nimbus.datagen.randomize.goals import sampler_of  # noqa: E402
from nimbus.datagen.tasks.task import NavigationTask, parse_any_task  # noqa: E402

_SPACING = 0.01
"""Distance between the positions at which a swept body is measured [m]."""
_KNOTS = 0.1
"""Distance between the points by which edges are found [m]."""
_AROUND = 3
"""Distance from a corner within which a walk may bend [cells]; 3 instead of 2 shortens 40 walks by 0.03 % at most."""


def slab_edges(corners: FloatArray, low: float, high: float) -> tuple[FloatArray, list[FloatArray]]:
    """Return edges (S, 2, 2) of triangles (F, 3, 3) clipped to heights, seen from above, and the large polygons [m]."""
    edges, large = [], []
    for triangle in corners[(corners[..., 2].max(axis=1) > low) & (corners[..., 2].min(axis=1) < high)]:
        polygon = list(triangle.astype(float))
        for sign, height in ((1.0, low), (-1.0, high)):
            kept = []
            for a, b in zip(polygon, [*polygon[1:], *polygon[:1]], strict=True):
                da, db = sign * (a[2] - height), sign * (b[2] - height)
                if da >= 0:
                    kept.append(a)
                if da * db < 0:
                    kept.append(a + (b - a) * da / (da - db))
            polygon = kept
        if len(polygon) >= 2:
            flat = np.array(polygon)[:, :2]
            edges.append(np.stack([flat, np.roll(flat, -1, axis=0)], axis=1))
            if np.ptp(flat, axis=0).min() > 0.3:
                large.append(flat)
    return np.concatenate(edges), large


class SweptBody:
    """Computes distances of positions to the triangles of one storey at height 0.

    Args:
        corners: (F, 3, 3) [m]
        body: Body whose step and height limit the relevant triangles.
    """

    def __init__(self, corners: FloatArray, body: BodyShape) -> None:
        self._edges, self._large = slab_edges(corners, body.step, body.height)
        self._low = np.array([polygon.min(axis=0) for polygon in self._large]).reshape(-1, 2)
        self._high = np.array([polygon.max(axis=0) for polygon in self._large]).reshape(-1, 2)
        lengths = np.linalg.norm(self._edges[:, 1] - self._edges[:, 0], axis=1)
        counts = np.ceil(lengths / _KNOTS).astype(int) + 1
        self._owner = np.repeat(np.arange(len(counts)), counts)
        share = np.concatenate([np.linspace(0, 1, count) for count in counts])
        first, last = self._edges[self._owner, 0], self._edges[self._owner, 1]
        self._tree = KDTree(first + share[:, None] * (last - first))

    def clearance(self, feet: FloatArray) -> float:
        """Return the smallest distance of an axis swept along positions (T, 3), or 0 inside a large polygon [m]."""
        steps = np.linalg.norm(np.diff(feet[:, :2], axis=0), axis=1)
        along = np.append(0.0, np.cumsum(steps))
        fine = np.arange(0.0, along[-1] + _SPACING, _SPACING)
        places = np.stack([np.interp(fine, along, feet[:, axis]) for axis in (0, 1)], axis=1)
        if any(_holds(polygon, places) for polygon in self._large_near(places)):
            return 0.0
        # The nearest point of an edge is closer than its nearest knot by less than half the spacing of knots. Positions
        # and knots beyond this margin therefore cannot have the smallest distance.
        knots, _ = self._tree.query(places)
        least = float(knots.min()) + 0.5 * _KNOTS
        places = places[knots <= least]
        near = self._tree.query_ball_point(places, least)
        rows = np.repeat(np.arange(len(places)), [len(found) for found in near])
        edges = self._owner[np.concatenate([np.array(found, dtype=int) for found in near])]
        p, (a, b) = places[rows], np.moveaxis(self._edges[edges], 1, 0)
        way = b - a
        share = np.clip(np.sum((p - a) * way, axis=1) / np.maximum(np.sum(way * way, axis=1), 1e-12), 0, 1)
        return float(np.linalg.norm(p - a - share[:, None] * way, axis=1).min())

    def _large_near(self, places: FloatArray) -> list[FloatArray]:
        """Return the large polygons whose bounding boxes overlap that of positions (m, 2)."""
        low, high = places.min(axis=0), places.max(axis=0)
        meets = np.all((self._low <= high) & (self._high >= low), axis=1)
        return [self._large[number] for number in np.flatnonzero(meets)]


def _holds(polygon: FloatArray, places: FloatArray) -> bool:
    """Return True if a convex polygon (n, 2) contains one of the positions (m, 2)."""
    places = places[np.all((places >= polygon.min(axis=0)) & (places <= polygon.max(axis=0)), axis=1)]
    way = np.roll(polygon, -1, axis=0) - polygon
    off = places[:, None] - polygon
    turns = way[:, 0] * off[..., 1] - way[:, 1] * off[..., 0]
    return bool(np.any(np.all(turns > 1e-9, axis=1) | np.all(turns < -1e-9, axis=1)))


def measure_home(seed: int, storeys: tuple[int, int]) -> dict[str, Any]:
    """Make a home and map it."""
    body = BodyShape(radius=0.22, height=1.4, step=0.18 if storeys[1] > 1 else 0.03)
    begin = time.process_time()
    scene = home_scene(seed, (4, 9) if storeys[1] == 1 else (5, 9), storeys)
    reached = set(map_scene(scene, body).main_rooms)
    plan = repr([(room.kind, room.outline, room.floor) for room in scene.rooms])
    return {
        "rooms": len(scene.rooms),
        "unreached": [f"{scene.name} {room.name}" for room in scene.rooms if room.name not in reached],
        "plan": hashlib.sha256(plan.encode()).hexdigest(),
        "seconds": time.process_time() - begin,
    }


def measure_homes(count: int, storeys: tuple[int, int], rows: Path | None) -> dict[str, Any]:
    """Make homes, map each, and compare their plans; homes that are already in the file of rows are not made again."""
    known = read_rows(rows)
    for seed in range(len(known), count):
        known.append(measure_home(seed, storeys))
        write_row(rows, known[-1])
        if seed % 50 == 49:
            sys.stderr.write(f"{seed + 1} homes, {sum(len(one['unreached']) for one in known)} rooms not reached\n")
    return {
        "homes": len(known),
        "rooms": sum(one["rooms"] for one in known),
        "rooms not reached": [name for one in known for name in one["unreached"]],
        "different plans": len({one["plan"] for one in known}),
        "CPU-s a home": float(np.mean([one["seconds"] for one in known])),
    }


def read_rows(rows: Path | None) -> list[dict[str, Any]]:
    """Return the rows of an earlier measurement; none without a file."""
    return [json.loads(line) for line in rows.read_text().splitlines()] if rows and rows.exists() else []


def write_row(rows: Path | None, row: dict[str, Any]) -> None:
    """Append a row to the file, if there is one."""
    if rows:
        with rows.open("a") as file:
            file.write(json.dumps(row) + "\n")


class FastMap(SceneMap):
    """Map without the distances to the goal along a drive: computing them takes half the time and changes no pose."""

    def geodesic(self, start: int, goal: int) -> float:
        """Return zero."""
        return 0.0


def task_of(name: str, scenes: int) -> NavigationTask:
    """Return the shipped task of homes, with additional homes if it has too few."""
    text = scene_file("tasks", name, kind="task").read_text()
    text = re.sub(r"homes: (\d+)", lambda found: f"homes: {max(int(found[1]), scenes)}", text)
    task = parse_any_task(text, name=name)
    assert isinstance(task, NavigationTask)
    return task


def measure_scene(task: NavigationTask, number: int, paths: int) -> dict[str, Any]:
    """Plan the first paths of a scene, and measure each."""
    begin = time.process_time()
    opened = open_navigation(task, number)
    place = FastMap(scene=opened.scene, mesh=opened.place.mesh, space=opened.place.space)
    assets = replace(opened, place=place)
    sampler = sampler_of(task, assets, seed=0)
    seconds = time.process_time() - begin
    swept = SweptBody(assets.scene.corners.astype(float), task.body.shape)
    reasons: Counter[str] = Counter()
    least, ratios, points, visited = [], [], [], set()
    for rank in range(paths):
        goal = sampler.goal(rank)
        driven = plan_drive(task, assets, PhysicalLayout(objects=(), drawn={"goal": goal.to_plain()}))
        if not driven.outcome.success:
            reasons[f"{driven.outcome.reason}: {driven.outcome.detail}"] += 1
            continue
        feet = driven.body_positions[:, 0]
        least.append(swept.clearance(feet))
        length = float(np.linalg.norm(np.diff(feet[:, :2], axis=0), axis=1).sum())
        ratios.append(length / goal.geodesic)
        points.append(feet)
        visited.add(goal.rooms)
    apart, _ = KDTree(np.concatenate(points)).query(place.space.positions[place.space.main_nodes])
    goals = {target.room for target in sampler.targets}
    wanted = {(one, other) for one in set(place.main_rooms) - {""} for other in goals if one != other}
    return {
        "scene": number,
        "least": least,
        "ratios": ratios,
        "covered": float(np.mean(apart <= 0.5)),
        "pairs": [len(wanted & visited), len(wanted)],
        "missing pairs": sorted(wanted - visited),
        "refused": dict(reasons),
        "seconds": seconds,
    }


def measure_paths(name: str, scenes: int, paths: int, rows: Path | None) -> dict[str, Any]:
    """Measure the paths of some scenes; scenes that are already in the file of rows are not measured again."""
    task = task_of(name, scenes)
    known = read_rows(rows)
    for number in range(len(known), scenes):
        known.append(measure_scene(task, number, paths))
        sys.stderr.write(f"scene {number}: {len(known[-1]['least'])} paths, covered {known[-1]['covered']:.1%}\n")
        write_row(rows, known[-1])
    least = np.concatenate([one["least"] for one in known])
    ratios = np.concatenate([one["ratios"] for one in known])
    covered, pairs = [one["covered"] for one in known], np.sum([one["pairs"] for one in known], axis=0)
    radius = task.body.radius if task.keep.clearance is None else task.keep.clearance
    return {
        "task": name,
        "scenes": len(known),
        "paths": len(least),
        "without collision": int(np.sum(least >= radius - 1e-4)),
        "least clearance [m]": float(least.min()),
        "length / geodesic, median": float(np.median(ratios)),
        "covered, mean": float(np.mean(covered)),
        "covered, least": float(min(covered)),
        "scenes covered by 97 %": int(np.sum(np.array(covered) >= 0.97)),
        "room pairs": f"{pairs[0]} of {pairs[1]}",
        "refused": dict(sum((Counter(one["refused"]) for one in known), Counter())),
        "CPU-s to open and map": float(np.median([one["seconds"] for one in known])),
    }


def exact_lengths(place: SceneMap, ends: IndexArray) -> FloatArray:
    """Shortest lengths of walks between pairs of nodes (n, 2), over all cells at corners of the free space [m].

    A shortest walk bends only near corners, which are cells with a closed diagonal neighbor between two open ones. A
    straight walk may touch no closed cell, so that bends can be some cells from their corner: all cells around corners
    are nodes of a graph, connected wherever a straight walk is possible, and SciPy searches it.
    """
    space, allowed = place.space, place.sight.allowed
    is_open = np.zeros(np.array(space.node.shape[1:]) + 2, dtype=bool)
    cells = space.nodes[:, 1:] + 1
    is_open[tuple(cells[allowed].T)] = True
    x, y = cells.T
    corners = np.zeros(len(cells), dtype=bool)
    for dx in (-1, 1):
        for dy in (-1, 1):
            corners |= ~is_open[x + dx, y + dy] & is_open[x + dx, y] & is_open[x, y + dy]
    near = np.zeros_like(is_open)
    near[tuple(cells[corners & allowed].T)] = True
    near = np.asarray(binary_dilation(near, np.ones((2 * _AROUND + 1, 2 * _AROUND + 1))), dtype=bool)
    nodes = np.unique(np.append(np.flatnonzero(near[x, y] & allowed), ends)).astype(np.int32)
    rows, columns, lengths = [], [], []
    for row in range(len(nodes) - 1):
        others = nodes[row + 1 :]
        seen = np.flatnonzero(place.sight.is_free(np.full(len(others), nodes[row]), others))
        apart = np.linalg.norm(space.nodes[others[seen], 1:] - space.nodes[nodes[row], 1:], axis=1)
        rows.append(np.full(len(seen), row))
        columns.append(seen + row + 1)
        lengths.append(apart * space.cell)
    places = np.concatenate(rows), np.concatenate(columns)
    links = csr_matrix((np.concatenate(lengths), places), shape=(len(nodes), len(nodes)))
    first, last = (np.searchsorted(nodes, ends[:, side]) for side in (0, 1))
    found = dijkstra(links, directed=False, indices=first)
    return found[np.arange(len(ends)), last]


def measure_geodesics(name: str, scenes: int, paths: int) -> dict[str, Any]:
    """Compare the geodesic lengths of goals with exact ones."""
    task, errors = task_of(name, scenes), []
    for number in range(scenes):
        assets = open_navigation(task, number)
        sampler, place = sampler_of(task, assets, seed=0), assets.place
        goals = [goal for rank in range(paths) if not (goal := sampler.goal(rank)).refused]
        ends = np.stack([place.space.locate(np.array([goal.start[:3], goal.goal])) for goal in goals])
        exact = exact_lengths(place, ends)
        errors.append(np.array([goal.geodesic for goal in goals]) / exact - 1)
        sys.stderr.write(f"scene {number}: {len(goals)} lengths, largest error {np.abs(errors[-1]).max():.3%}\n")
    signed = np.concatenate(errors)
    every = np.abs(signed)
    return {
        "task": name,
        "scenes": scenes,
        "lengths": len(every),
        "median error": float(np.median(every)),
        "99th percentile": float(np.quantile(every, 0.99)),
        "largest error": float(every.max()),
        "shortest against exact": float(signed.min()),
        "within 0.5 %": float(np.mean(every <= 0.005)),
    }


def main() -> int:
    """Run one of the measurements, and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measure", choices=("homes", "paths", "geodesics"))
    parser.add_argument("--count", type=int, default=1000, help="number of homes")
    parser.add_argument("--storeys", type=int, default=1)
    parser.add_argument("--task", default="navigate_homes")
    parser.add_argument("--scenes", type=int, default=4)
    parser.add_argument("--paths", type=int, default=150, help="number of paths in each scene")
    parser.add_argument("--rows", type=Path, help="file of one line of JSON for each home or scene")
    words = parser.parse_args()
    if words.measure == "homes":
        found = measure_homes(words.count, (words.storeys, words.storeys), words.rows)
    elif words.measure == "geodesics":
        found = measure_geodesics(words.task, words.scenes, words.paths)
    else:
        found = measure_paths(words.task, words.scenes, words.paths, words.rows)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
