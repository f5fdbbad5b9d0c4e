"""K regions of one stage against K separate renders: ``python benchmarks/stacked_stage.py [--sizes 2,8,32]``.

Prints, for each K, the difference of depths, and the number of pixels with different labels. The comparison is that of
``tests/datagen/usd/test_stack_layout.py``.
"""
# The compared code is in the folder of the renderer's tests.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="2,8,32")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    import numpy as np

    from tests.support.one_world import visual_assets
    from tests.support.render_scene import STEPS
    from tests.support.stacked_regions import placed, side_by_side_and_alone

    rows = []
    for count in (int(text) for text in args.sizes.split(",")):
        steps = [index % STEPS for index in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            assets = visual_assets(Path(folder) / "assets")
            layout = placed(assets, steps)
            begin = time.process_time()
            depth_error, wrong, pixels = 0.0, 0, 0
            for (depth, labels), (depth_alone, labels_alone) in side_by_side_and_alone(
                assets, Path(folder), steps, layout
            ):
                depth_error = max(depth_error, float(np.abs(depth - depth_alone).max()))
                wrong, pixels = wrong + int((labels != labels_alone).sum()), pixels + labels.size
            row = {"K": count, "spacing_m": layout.spacing, "far_m": round(layout.far, 3)}
            row |= {"depth_error_m": depth_error, "wrong_labels": wrong, "pixels": pixels}
            rows.append(row | {"cpu_s": round(time.process_time() - begin, 1)})
        sys.stdout.write("  ".join(f"{name} {value}" for name, value in rows[-1].items()) + "\n")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
