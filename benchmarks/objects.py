"""The tables of docs/objects.md: every kind with its size, mass and grasps for a gripper.

Run it as ``python benchmarks/objects.py [--robot NAME] [--write]``; it prints the tables, or writes them into the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))

import numpy as np  # noqa: E402

from nimbus.datagen.objects.libraries import open_library  # noqa: E402
from nimbus.datagen.objects.library import ObjectLibrary  # noqa: E402
from nimbus.datagen.robots.robot import load_robot  # noqa: E402
from nimbus.runner.media.object_sheet import grasp_counts  # noqa: E402

LIBRARIES = ("blocks", "kitchen", "tools", "containers", "pegs", "beads")
PAGE = ROOT / "docs/objects.md"
BEGIN, END = "<!-- tables: python benchmarks/objects.py --write -->\n", "<!-- end of tables -->\n"


def shapes(library: ObjectLibrary) -> Iterator[tuple[str, str]]:
    """Return the kinds that differ in more than color: the name in the table, and a representative kind."""
    seen = set()
    for kind in library.kinds:
        color = next(iter(library.kind(kind).colors), "")
        shape = kind.removeprefix(f"{color}_") if color else kind
        if shape not in seen:
            yield f"*color*_{shape}" if color else shape, kind
        seen.add(shape)


def tables(robot: str) -> str:
    """Return one table per library."""
    gripper = load_robot(robot).gripper.shape
    text = ""
    for name in LIBRARIES:
        library = open_library(name)
        text += f"\n`{name}`\n\n| kind | size [mm] | mass [g] | pieces | frames | grasps |\n|---|---|---|---|---|---|\n"
        for called, kind in shapes(library):
            model = library.model(kind, 0)
            size = " x ".join(f"{1000 * side:.0f}" for side in np.ptp(model.bounds, axis=0))
            pieces = "a sphere" if model.ball else str(len(model.convex_pieces))
            grasps = ", ".join(f"{rest} {count}" for rest, count in grasp_counts(library, kind, gripper).items())
            frames = ", ".join(model.frames)
            text += f"| {called} | {size} | {1000 * model.mass:.3g} | {pieces} | {frames} | {grasps} |\n"
    return text + "\n"


def main() -> int:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", default="panda", metavar="NAME")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/objects.md")
    args = parser.parse_args()
    text = tables(args.robot)
    if not args.write:
        sys.stdout.write(text)
        return 0
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
