"""Maps and path problems in the formats of the Moving AI Lab (Sturtevant 2012), and an exact search for the shortest
lengths.

The two maps beside this file are Nimbus's own, because the lab's maps are too large and have their own license. The
optimal lengths in ``*.scen`` were computed by :func:`exact_length`, which shares no code with the library: Dijkstra's
algorithm on pairs of straight and diagonal steps. ``python -m tests.support.moving_ai`` writes them again.
"""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import BoolArray

FOLDER = Path(__file__).parent / "maps"
PROBLEMS = 60
Cell = tuple[int, int]


def read_map(path: Path) -> BoolArray:
    """Read the free cells (width, height) of a map."""
    lines = path.read_text().splitlines()
    assert lines[0] == "type octile" and lines[3] == "map"
    height, width = (int(line.split()[1]) for line in lines[1:3])
    rows = lines[4 : 4 + height]
    assert all(len(row) == width for row in rows)
    return np.array([[letter in ".GS" for letter in row] for row in rows]).T


def read_problems(path: Path) -> list[tuple[Cell, Cell, float]]:
    """Read start, goal and optimal length of each problem; diagonal steps never cut a corner."""
    lines = path.read_text().splitlines()
    assert lines[0] == "version 1"
    found = []
    for line in lines[1:]:
        _, _, _, _, sx, sy, gx, gy, length = line.split("\t")
        found.append(((int(sx), int(sy)), (int(gx), int(gy)), float(length)))
    return found


def exact_length(free: BoolArray, start: Cell, goal: Cell) -> float:
    """Return the length of the shortest path by Dijkstra's algorithm, from numbers of straight and diagonal steps."""
    best: dict[Cell, tuple[int, int]] = {start: (0, 0)}
    heap, done = [(0.0, start)], set()
    width, height = free.shape

    def is_open(x: int, y: int) -> bool:
        return 0 <= x < width and 0 <= y < height and bool(free[x, y])

    while heap:
        _, (x, y) = heapq.heappop(heap)
        if (x, y) == goal:
            straight, diagonal = best[goal]
            return straight + diagonal * 2**0.5
        if (x, y) in done:
            continue
        done.add((x, y))
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                there = (x + dx, y + dy)
                if (dx, dy) == (0, 0) or not is_open(*there):
                    continue
                if dx and dy and not (is_open(x + dx, y) and is_open(x, y + dy)):
                    continue
                straight, diagonal = best[x, y]
                steps = (straight, diagonal + 1) if dx and dy else (straight + 1, diagonal)
                if there not in best or _length(steps) < _length(best[there]) - 1e-12:
                    best[there] = steps
                    heapq.heappush(heap, (_length(steps), there))
    return float("inf")


def _length(steps: tuple[int, int]) -> float:
    return steps[0] + steps[1] * 2**0.5


def write_maps() -> None:
    """Write both maps and their problems."""
    rng = np.random.default_rng(7)
    rooms = np.ones((64, 64), dtype=bool)
    rooms[::8], rooms[:, ::8] = False, False
    for x in range(8, 64, 8):
        for y in range(4, 64, 8):
            rooms[x, y + int(rng.integers(-3, 4))] = rng.uniform() < 0.8
            rooms[y + int(rng.integers(-3, 4)), x] = rng.uniform() < 0.8
    arena = np.ones((49, 49), dtype=bool)
    arena[[0, -1]] = arena[:, [0, -1]] = False
    for x, y, radius in rng.integers((4, 4, 1), (45, 45, 5), (22, 3)):
        xs, ys = np.mgrid[:49, :49]
        arena[(xs - x) ** 2 + (ys - y) ** 2 <= radius**2] = False
    for name, free in (("rooms", rooms), ("arena", arena)):
        width, height = free.shape
        rows = ["".join("." if free[x, y] else "@" for x in range(width)) for y in range(height)]
        text = "\n".join(["type octile", f"height {height}", f"width {width}", "map", *rows])
        (FOLDER / f"{name}.map").write_text(text + "\n")
        cells, lines = np.argwhere(free), ["version 1"]
        while len(lines) <= PROBLEMS:
            (sx, sy), (gx, gy) = (map(int, cells[int(rng.integers(len(cells)))]) for _ in range(2))
            start, goal = (sx, sy), (gx, gy)
            if np.isfinite(length := exact_length(free, start, goal)):
                place = "\t".join(map(str, (*start, *goal)))
                lines.append(f"{int(length // 4)}\t{name}.map\t{width}\t{height}\t{place}\t{length:.8f}")
        (FOLDER / f"{name}.scen").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_maps()
