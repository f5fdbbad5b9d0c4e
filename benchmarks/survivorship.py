"""Check in physics that the yield ledger finds variants that are never kept: blocks too wide for the fingers.

Run it as ``python benchmarks/survivorship.py [--episodes N] [--out DIR]``. Prints the flags after every ten episodes;
runs without faults are in ``whole_runs.py``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.analysis.yields import find_yields  # noqa: E402
from nimbus.datagen.store.ledger.ledger import Ledger  # noqa: E402
from nimbus.runner.cell.run import run_serial  # noqa: E402
from nimbus.runner.cell.transport.spec import CellSpec  # noqa: E402

LIBRARY = """\
classes: [toy]
kinds:
  block:    # the first of eight variants is 79 mm wide, the fourth 76; the fingers open to 80 mm and need room
    class: toy
    category: block
    variants: 8
    size: {width: [36 mm, 100 mm], depth: [90 mm, 100 mm], height: 40 mm}
    mass: [60 g, 90 g]
    friction: [0.6, 0.85]
    symmetry: box
    rests: [lying]
    lies_on: base
    shapes: [{family: block, rounding: 2 mm}]
    texture: [{paint: plain, colors: ["#2360b8"]}]
"""
TASK = """\
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.4]}
objects:
  items: {library: wide.yaml, kinds: all, count: [1, 2], region: start}
steps:
  - for item in items:
      - pick: item
      - place: {object: item, into: recycling}
success:
  - for item in items:
      - inside: {object: item, container: recycling}
  - gripper_clear
cameras: {front: {position: [1.5, 0.0, 0.95], look_at: [0.4, 0.0, 0.14], vertical_fov: 45 deg, size: [32, 24]}}
randomize: medium
instructions: ["Put {items} into the bin."]
"""


def measure(folder: Path, episodes: int) -> None:
    """Run, and report the flags of the ledger over time."""
    (folder / "wide.yaml").write_text(LIBRARY)
    (folder / "blocks.yaml").write_text(TASK)
    run_serial(CellSpec(folder=str(folder / "data"), task=str(folder / "blocks.yaml"), episodes=episodes))
    ledger = Ledger(folder / "data", read_only=True)
    try:
        attempts = ledger.attempts()
    finally:
        ledger.close()
    found = find_yields(attempts)
    for count in range(10, episodes + 1, 10):
        found = find_yields(attempt for attempt in attempts if attempt.idx < count)
        flags = [f"{row.factor} {row.value}: {row.flag}, {row.kept} of {row.episodes}" for row in found.flags]
        sys.stdout.write(f"{count:3} episodes, {found.kept} kept: {'; '.join(flags) or 'no flag'}\n")
    for row in sorted(found.of("variant"), key=lambda row: row.value):
        sys.stdout.write(f"    {row.value:<12} {row.kept} of {row.episodes}\n")


def main() -> None:
    """Measure in a given folder, or in a temporary one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--out", type=Path, help="empty folder for the run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        measure(out, args.episodes)


if __name__ == "__main__":
    main()
