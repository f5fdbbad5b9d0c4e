"""Records an episode's render inputs: ``python benchmarks/gpu/record.py [--steps N] [--out FILE]``.

The episode is the first of seed 0 that succeeds. Ellipsoids with the same extents and numbers of faces replace the
robot's links, so the file contains only meshes and textures of this project.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402

from benchmarks.gpu.recording import RECORDED, Recording, save  # noqa: E402
from benchmarks.rendering import episode  # noqa: E402
from nimbus.datagen.meshes.triangles import Triangles  # noqa: E402
from nimbus.datagen.render.render_inputs import ROBOT, RenderPart  # noqa: E402
from nimbus.datagen.render.scene_renderer import SceneRenderer  # noqa: E402


def main() -> None:
    """Plan an episode and write its inputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--steps", type=int, default=128, help="number of consecutive states, from the middle of the episode"
    )
    parser.add_argument("--out", type=Path, default=RECORDED)
    options = parser.parse_args()
    assets, layout, trajectory = episode(None)
    inputs = SceneRenderer(assets.stage, assets.robot, libraries=tuple(assets.libraries)).inputs(layout)
    parts = tuple(stand_in(part) if part.instance == ROBOT else part for part in inputs.parts)
    first = max(0, (trajectory.step_count - options.steps) // 2)
    rows = slice(first, first + options.steps)
    recording = Recording(
        inputs=replace(inputs, parts=parts),
        bodies=trajectory.body_names,
        positions=trajectory.body_positions[rows],
        wxyz=trajectory.body_wxyz[rows],
    )
    save(recording, options.out)
    faces = sum(len(part.triangles.faces) for part in parts)
    sys.stdout.write(
        f"{options.out}: {len(parts)} parts, {faces} faces, {len(recording.positions)} states, "
        f"{options.out.stat().st_size / 1e6:.2f} MB\n"
    )


def stand_in(part: RenderPart) -> RenderPart:
    """Return an ellipsoid in place of a link: the same extents, one color, about the same number of faces."""
    old = part.triangles
    lower, upper = old.vertices.min(axis=0), old.vertices.max(axis=0)
    around = max(6, round(float(np.sqrt(len(old.faces)))))
    rings = max(3, round(len(old.faces) / (2 * around)) + 1)
    polar, turn = np.meshgrid(np.linspace(0, np.pi, rings + 1), np.arange(around) * (2 * np.pi / around), indexing="ij")
    sphere = np.stack([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)], axis=-1)
    sphere, half = sphere.reshape(-1, 3), np.maximum(0.5 * (upper - lower), 1e-4)
    normals = sphere / half
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    first = (np.arange(rings)[:, None] * around + np.arange(around)).ravel()
    beside = (np.arange(rings)[:, None] * around + (np.arange(around) + 1) % around).ravel()
    faces = np.concatenate(
        [
            np.stack([first, first + around, beside], axis=1)[around:],
            np.stack([beside, first + around, beside + around], axis=1)[:-around],
        ]
    )
    color = np.median(part.image.reshape(-1, 3), axis=0) / 255.0
    triangles, image = Triangles(
        vertices=(0.5 * (lower + upper) + half * sphere).astype(np.float32),
        faces=faces.astype(np.int32),
        normals=normals.astype(np.float32),
        uvs=np.zeros((len(sphere), 2), dtype=np.float32),
        colors=np.broadcast_to(color.astype(np.float32), (len(sphere), 3)).copy(),
    ).with_palette()
    return replace(part, triangles=triangles, image=image)


if __name__ == "__main__":
    main()
