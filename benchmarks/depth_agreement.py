"""Depth of one drive through a home by three engines: the rasterizer, MuJoCo's rays, and Blender where it is installed.

``NIMBUS_BLENDER_PYTHON=… python -m benchmarks.depth_agreement [--size 160 120] [--keep DIR]``
``python -m benchmarks.depth_agreement --splats 300000``

A run makes an episode; ``rerender`` draws it again with the other engines. Depths agree if they differ by at most 1 cm,
or if neither engine sees anything.

``--splats`` compares splats with the mesh that they were sampled from: a drive through them alone, whose paths and
proxy come from the splats. The depths of the episode agree if they are within 10 cm of the rasterizer's depths of the
mesh.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

import h5py  # noqa: E402
import numpy as np  # noqa: E402

from nimbus.datagen.arrays import FloatArray  # noqa: E402
from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.navigate.homes import home_scene  # noqa: E402
from nimbus.datagen.render.scene_views import SceneViews, scene_inputs  # noqa: E402
from nimbus.datagen.splats.sample import discs_of, place_samples  # noqa: E402
from nimbus.datagen.splats.training_ply import write_training_ply  # noqa: E402
from nimbus.datagen.store.episode_file.read import EpisodeFile  # noqa: E402

_NEAR = 10.0
"""Largest difference of depths that agree [mm]."""
_NEAR_SPLATS = 0.1
"""Largest difference of the depths of splats [m]."""
_SPLAT_TASK = """\
scene: {{splats: [{{splat: home.ply, up: z}}]}}
navigate: {{to: point, length: [2 m, 8 m]}}
cameras: {{front: {{position: [0.1, 0, 1.2], tilt: 10 deg, hfov: 79 deg, size: [{}, {}], modalities: [rgb, depth]}}}}
pipeline: nav_splat
rate: 2
"""
_RAYS = ROOT / "integrations/external_renderer/mujoco_renderer.py"


def nimbus(*words: str) -> None:
    """Run a command of Nimbus to its end."""
    subprocess.run([sys.executable, str(ROOT / "runner/runner.py"), *words], check=True, stdout=subprocess.DEVNULL)


def read_depth(folder: Path) -> FloatArray:
    """Return the depths of the only episode of a dataset [mm], with all steps in one array."""
    path = next((folder / "episodes").rglob("*.hdf5"))
    with h5py.File(path) as file:
        stored: Any = file["observations/depth/front"]
        return np.asarray(stored[:], dtype=float)


def compare_splats(scratch: Path, splats: int, size: tuple[int, int]) -> dict[str, Any]:
    """Return the share of pixels of a drive through splats whose depth is near that of the mesh below them."""
    scene = home_scene(0, (3, 5))
    samples = place_samples(scene.corners, splats)
    write_training_ply(discs_of(samples, samples.normals * 0.4 + 0.5), scratch / "home.ply")
    task = scratch / "splats.yaml"
    task.write_text(_SPLAT_TASK.format(*size))
    nimbus("run", "--task", str(task), "--episodes", "1", "--out", str(scratch / "splats"))
    with EpisodeFile(next((scratch / "splats/episodes").rglob("*.hdf5"))) as episode:
        layout, drive = episode.layout(), episode.trajectory()
        stored = episode.frames("front", 0, episode.step_count).depth
    views = SceneViews()
    views.load_inputs(scene_inputs(scene, layout, drive, baked=False))
    shares = []
    for row in range(drive.step_count):
        here = slice(row, row + 1)
        cameras = views.render(drive.body_names, drive.body_positions[here], drive.body_wxyz[here], first_step=row)
        shares.append(float(np.mean(np.abs(cameras["front"].depth[0] - stored[row]) <= _NEAR_SPLATS)))
    return {
        "views": len(shares),
        "size": list(size),
        "splats": splats,
        "splats, mesh: pixels within 10 cm": float(np.mean(shares)),
        "splats, mesh: the worst view": min(shares),
    }


def main() -> int:
    """Draw an episode with each engine, and print the agreement of each pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs=2, default=(160, 120))
    parser.add_argument("--keep", type=Path, help="empty folder for the datasets; a temporary one by default")
    parser.add_argument("--splats", type=int, help="number of splats to compare with their mesh, instead of engines")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nimbus-depth-") as name:
        scratch = (words.keep or Path(name)).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        if words.splats:
            found = compare_splats(scratch, words.splats, tuple(words.size))
            sys.stdout.write(json.dumps(found, indent=1) + "\n")
            return 0
        text = scene_file("tasks", "navigate_homes", kind="task").read_text()
        size = f"size: [{words.size[0]}, {words.size[1]}], modalities: [rgb, depth, instance, semantic]"
        text = re.sub(r"size: \[\d+, \d+\]", size, text).replace("length: [2 m, 25 m]", "length: [2 m, 5 m]")
        task = scratch / "task.yaml"
        task.write_text(text + "rate: 2\n")
        nimbus("run", "--task", str(task), "--episodes", "1", "--out", str(scratch / "rasterizer"))
        episode = next((scratch / "rasterizer/episodes").rglob("*.hdf5")).stem
        engines = {"rays": f"{{external: {{command: [python, {_RAYS}]}}}}"}
        if os.environ.get("NIMBUS_BLENDER_PYTHON"):
            engines["blender"] = "{blender: {samples: 4, device: cpu}}"
        for engine, render in engines.items():
            stages = {"load": "scenes", "randomize": "goals", "plan": "path", "render": render, "store": "hdf5"}
            pipeline = scratch / f"{engine}.yaml"
            pipeline.write_text("".join(f"{stage}: {one}\n" for stage, one in stages.items()))
            folders = [str(scratch / "rasterizer"), episode, "--out", str(scratch / engine)]
            nimbus("rerender", *folders, "--pipeline", str(pipeline))
        depths = {engine: read_depth(scratch / engine) for engine in ("rasterizer", *engines)}
    found = {"views": len(depths["rasterizer"]), "size": list(words.size)}
    names = list(depths)
    for row, one in enumerate(names):
        for other in names[row + 1 :]:
            apart = np.abs(depths[one] - depths[other])
            share = np.mean(apart <= _NEAR, axis=(1, 2))
            found[f"{one}, {other}: pixels within 1 cm"] = float(share.mean())
            found[f"{one}, {other}: the worst view"] = float(share.min())
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
