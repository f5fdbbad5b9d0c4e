"""Cost of views of Gaussian splats: CPU seconds a view, and the memory of a process that only reads and draws them.

``python -m benchmarks.splat_views [--splats 3000000] [--views 12] [--size 320 240]``

The splats lie on the surfaces of a generated home, and views look in all directions from its free floor. A process of
its own reads the file of the splats, so that the memory of sampling does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

import numpy as np  # noqa: E402

from nimbus.datagen.episode.layout import Camera  # noqa: E402
from nimbus.datagen.geometry.transforms import look_at  # noqa: E402
from nimbus.datagen.navigate.body import BodyShape  # noqa: E402
from nimbus.datagen.navigate.homes import home_scene  # noqa: E402
from nimbus.datagen.navigate.scene_map import map_scene  # noqa: E402
from nimbus.datagen.splats.rasterizer import SplatRasterizer  # noqa: E402
from nimbus.datagen.splats.sample import discs_of, place_samples  # noqa: E402
from nimbus.datagen.splats.training_ply import read_training_ply, write_training_ply  # noqa: E402

_EYE = 1.2
"""Height of the camera above the floor [m]."""


def make_inputs(folder: Path, splats: int, views: int) -> None:
    """Write a cloud of splats on a home, and poses of views inside of it."""
    scene, rng = home_scene(0, (3, 5)), np.random.default_rng(0)
    samples = place_samples(scene.corners, splats)
    write_training_ply(discs_of(samples, samples.normals * 0.4 + 0.5), folder / "cloud.ply")
    space = map_scene(scene, BodyShape(radius=0.25, height=1.4, step=0.03)).space
    eyes = space.positions[rng.choice(space.main_nodes, views, replace=False)] + (0.0, 0.0, _EYE)
    ahead = rng.uniform(-np.pi, np.pi, views)
    targets = eyes + np.column_stack([np.cos(ahead), np.sin(ahead), np.full(views, -0.17)])
    turns = [look_at(eye, target) for eye, target in zip(eyes, targets, strict=True)]
    np.savez(folder / "views.npz", eyes=eyes, turns=turns)


def draw(folder: Path, size: tuple[int, int]) -> dict[str, Any]:
    """Read the cloud and draw each view; return the cost."""
    poses = np.load(folder / "views.npz")
    begin = time.process_time()
    cloud = read_training_ply(folder / "cloud.ply")
    rasterizer = SplatRasterizer(cloud)
    loading = time.process_time() - begin
    count = len(cloud)
    del cloud
    camera = Camera(
        name="c", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=1.1, width=size[0], height=size[1]
    )
    spent, covered = [], []
    rasterizer.render(camera, poses["eyes"][:1], poses["turns"][:1])  # compiles the kernels
    for row in range(len(poses["eyes"])):
        begin = time.process_time()
        made = rasterizer.render(camera, poses["eyes"][row : row + 1], poses["turns"][row : row + 1])
        spent.append(time.process_time() - begin)
        covered.append(float(np.mean(made.depth > 0)))
    return {
        "splats": count,
        "size": list(size),
        "CPU-s a view, median": float(np.median(spent)),
        "CPU-s a view, largest": max(spent),
        "pixels covered, least": min(covered),
        "CPU-s to load": loading,
        "peak memory [GB]": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "load of the machine": os.getloadavg()[0],
    }


def main() -> int:
    """Make the inputs, draw them in another process, and print its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splats", type=int, default=3_000_000)
    parser.add_argument("--views", type=int, default=12)
    parser.add_argument("--size", type=int, nargs=2, default=(320, 240))
    parser.add_argument("--draw", type=Path, help="folder of inputs that are already made")
    words = parser.parse_args()
    if words.draw:
        sys.stdout.write(json.dumps(draw(words.draw, tuple(words.size)), indent=1) + "\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="nimbus-splats-") as folder:
        make_inputs(Path(folder), words.splats, words.views)
        line = [sys.executable, "-P", __file__, "--draw", folder, "--size", *map(str, words.size)]
        return subprocess.run(line, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
