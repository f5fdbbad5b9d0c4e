"""Independent measurements of navigation: homes, coverage, lengths, and distances of swept bodies to triangles.

``python -m benchmarks.navigation homes --count 1000``   every room reachable, no plan twice
``python -m benchmarks.navigation paths --scenes 4 --paths 150``   goals, coverage, clearance, length over geodesic

Clearance is computed with NumPy from clipped triangles, without cells, rays or kernels of the library.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))

import numpy as np  # noqa: E402
from scipy.spatial import KDTree  # noqa: E402

from nimbus.datagen.arrays import FloatArray  # noqa: E402
from nimbus.datagen.episode.layout import PhysicalLayout  # noqa: E402
from nimbus.datagen.execute.path_planner import plan_drive  # noqa: E402
from nimbus.datagen.load.navigation_loader import open_navigation  # noqa: E402
from nimbus.datagen.navigate.body import BodyShape  # noqa: E402
from nimbus.datagen.navigate.homes import home_scene  # noqa: E402
from nimbus.datagen.navigate.scene_map import map_scene  # noqa: E402
from nimbus.datagen.randomize.goals import sampler_of  # noqa: E402
from nimbus.datagen.tasks.task import NavigationTask, load_any_task  # noqa: E402

_SPACING = 0.01
"""Distance between the positions at which a swept body is measured [m]."""
_KNOTS = 0.1
"""Distance between the points by which edges are found [m]."""


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
        lengths = np.linalg.norm(self._edges[:, 1] - self._edges[:, 0], axis=1)
        counts = np.ceil(lengths / _KNOTS).astype(int) + 1
        self._owner = np.repeat(np.arange(len(counts)), counts)
        share = np.concatenate([np.linspace(0, 1, count) for count in counts])
        first, last = self._edges[self._owner, 0], self._edges[self._owner, 1]
        self._tree = KDTree(first + share[:, None] * (last - first))

    def clearance(self, feet: FloatArray, reach: float = 0.6) -> float:
        """Return the smallest distance of an axis swept along positions (T, 3), at most ``reach`` [m]."""
        steps = np.linalg.norm(np.diff(feet[:, :2], axis=0), axis=1)
        along = np.append(0.0, np.cumsum(steps))
        fine = np.arange(0.0, along[-1] + _SPACING, _SPACING)
        places = np.stack([np.interp(fine, along, feet[:, axis]) for axis in (0, 1)], axis=1)
        near = self._tree.query_ball_point(places, reach + _KNOTS)
        rows = np.repeat(np.arange(len(places)), [len(found) for found in near])
        knots = np.concatenate([np.array(found, dtype=int) for found in near]) if len(rows) else np.zeros(0, int)
        pairs = np.unique(np.stack([rows, self._owner[knots]], axis=1), axis=0)
        p, (a, b) = places[pairs[:, 0]], np.moveaxis(self._edges[pairs[:, 1]], 1, 0)
        way = b - a
        share = np.clip(np.sum((p - a) * way, axis=1) / np.maximum(np.sum(way * way, axis=1), 1e-12), 0, 1)
        least = float(np.linalg.norm(p - a - share[:, None] * way, axis=1).min(initial=reach))
        return 0.0 if any(_holds(polygon, places) for polygon in self._large) else least


def _holds(polygon: FloatArray, places: FloatArray) -> bool:
    """Return True if a convex polygon (n, 2) contains one of the positions (m, 2)."""
    way = np.roll(polygon, -1, axis=0) - polygon
    off = places[:, None] - polygon
    turns = way[:, 0] * off[..., 1] - way[:, 1] * off[..., 0]
    return bool(np.any(np.all(turns > 1e-9, axis=1) | np.all(turns < -1e-9, axis=1)))


def measure_homes(count: int, storeys: tuple[int, int]) -> dict[str, Any]:
    """Make homes, map each, and compare their plans."""
    body = BodyShape(radius=0.22, height=1.4, step=0.18 if storeys[1] > 1 else 0.03)
    plans, unreached, rooms, begin = set(), [], 0, time.process_time()
    for seed in range(count):
        scene = home_scene(seed, (4, 9) if storeys[1] == 1 else (5, 9), storeys)
        reached = set(map_scene(scene, body).main_rooms)
        rooms += len(scene.rooms)
        unreached += [f"{scene.name} {room.name}" for room in scene.rooms if room.name not in reached]
        plans.add(tuple((room.kind, room.outline, room.floor) for room in scene.rooms))
        if seed % 50 == 49:
            sys.stderr.write(f"{seed + 1} homes, {len(unreached)} rooms not reached\n")
    return {
        "homes": count,
        "rooms": rooms,
        "rooms not reached": unreached,
        "different plans": len(plans),
        "CPU-s a home": (time.process_time() - begin) / count,
    }


def measure_paths(name: str, scenes: int, paths: int) -> dict[str, Any]:
    """Plan the first paths of some scenes, and measure each."""
    task = load_any_task(name)
    assert isinstance(task, NavigationTask)
    least, ratios, covered, pairs, admissible, seconds = [], [], [], 0, 0, []
    reasons: Counter[str] = Counter()
    for number in range(scenes):
        begin = time.process_time()
        assets = open_navigation(task, number)
        sampler, place = sampler_of(task, assets, seed=0), assets.place
        seconds.append(time.process_time() - begin)
        swept = SweptBody(assets.scene.corners.astype(float), task.body.shape)
        nodes, points, visited = place.space.main_nodes, [], set()
        for rank in range(paths):
            goal = sampler.goal(rank)
            driven = plan_drive(task, assets, PhysicalLayout(objects=(), drawn={"goal": goal.to_plain()}))
            if not driven.outcome.success:
                reasons[f"{driven.outcome.reason}"] += 1
                continue
            feet = driven.body_positions[:, 0]
            least.append(swept.clearance(feet))
            length = float(np.linalg.norm(np.diff(feet[:, :2], axis=0), axis=1).sum())
            ratios.append(length / goal.geodesic)
            points.append(feet)
            visited.add(goal.rooms)
        apart, _ = KDTree(np.concatenate(points)).query(place.space.positions[nodes])
        covered.append(float(np.mean(apart <= 0.5)))
        goals = {target.room for target in sampler.targets}
        wanted = {(one, other) for one in set(place.main_rooms) - {""} for other in goals if one != other}
        pairs, admissible = pairs + len(wanted & visited), admissible + len(wanted)
        sys.stderr.write(f"scene {number}: {len(points)} paths, covered {covered[-1]:.1%}\n")
    radius = task.body.radius if task.keep.clearance is None else task.keep.clearance
    return {
        "task": name,
        "scenes": scenes,
        "paths": len(least),
        "without collision": int(np.sum(np.array(least) >= radius - 1e-4)),
        "least clearance [m]": float(min(least)),
        "length / geodesic, median": float(np.median(ratios)),
        "covered, mean": float(np.mean(covered)),
        "covered, least": float(min(covered)),
        "room pairs": f"{pairs} of {admissible}",
        "refused": dict(reasons),
        "CPU-s to open and map": float(np.median(seconds)),
    }


def main() -> int:
    """Run one of the measurements, and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measure", choices=("homes", "paths"))
    parser.add_argument("--count", type=int, default=1000, help="number of homes")
    parser.add_argument("--storeys", type=int, default=1)
    parser.add_argument("--task", default="navigate_homes")
    parser.add_argument("--scenes", type=int, default=4)
    parser.add_argument("--paths", type=int, default=150, help="number of paths in each scene")
    words = parser.parse_args()
    if words.measure == "homes":
        found = measure_homes(words.count, (words.storeys, words.storeys))
    else:
        found = measure_paths(words.task, words.scenes, words.paths)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
