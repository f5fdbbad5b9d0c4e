"""CPU time of a rendered view, and that of MuJoCo's OpenGL renderer for the same states in the same run.

Run it as ``python benchmarks/rendering.py [--episode FILE] [--gl-threads N] [--json FILE]``. The states come from a
stored episode of ``sort_trash``, or from one that is planned here. MuJoCo's renderer (EGL, shadow map 1024, no
multisampling) makes RGB, depth and segmentation, each in a separate pass; it is left out if EGL is missing. Nimbus
makes RGB, depth, instance and semantic masks, and in the row ``everything`` also normals, boxes and visibility. In
``both``, all cameras are rendered in one call, as in a run. Times are CPU seconds of all threads. The renderers take
turns, and the best turn counts, because other programs on the machine slow them down. With ``--simplify``, MuJoCo gets
the meshes simplified by Nimbus.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl"}

import numpy as np  # noqa: E402

from nimbus.datagen.episode.layout import EpisodeKey, Layout  # noqa: E402
from nimbus.datagen.episode.trajectory import Trajectory  # noqa: E402
from nimbus.datagen.execute.planner import run_attempt  # noqa: E402
from nimbus.datagen.load.scene_loader import load_assets  # noqa: E402
from nimbus.datagen.random_streams import generator  # noqa: E402
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual  # noqa: E402
from nimbus.datagen.render.scene_renderer import SceneRenderer  # noqa: E402
from nimbus.datagen.simulate.newton import NewtonSimulation  # noqa: E402
from nimbus.datagen.store.episode_file.read import EpisodeFile  # noqa: E402
from nimbus.datagen.tasks.scene_assets import SceneAssets  # noqa: E402
from nimbus.datagen.tasks.task import load_task  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

mujoco: Any = importlib.import_module("mujoco")

States = tuple[tuple[str, ...], np.ndarray, np.ndarray]
"""Names, positions and orientations of the bodies."""


def episode(path: Path | None) -> tuple[SceneAssets, Layout, Trajectory]:
    """Return the scene, a layout and its executed plan; without a file, the first one that succeeds with seed 0."""
    prepare_libraries()
    task = load_task("sort_trash")
    assets = load_assets(task)
    if path:
        with EpisodeFile(path) as file:
            return assets, file.layout(), file.trajectory()
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    for index in range(20):
        physical = draw_physical(task, assets, seed=0, index=index)
        streams = partial(generator, 0, index, "attempt", 0)
        trajectory = run_attempt(task, simulation, physical, streams=streams, planner="ompl")
        if trajectory.outcome.success:
            key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=0, index=index)
            visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
            return assets, Layout(key=key, physical=physical, visual=visual), trajectory
    raise RuntimeError("no plan succeeded")


def spread(trajectory: Trajectory, count: int) -> States:
    """Return states spread evenly over an episode."""
    steps = np.linspace(0, trajectory.step_count - 1, count).round().astype(int)
    return trajectory.body_names, trajectory.body_positions[steps], trajectory.body_wxyz[steps]


def cpu_ms(run: Callable[[], object], count: int) -> float:
    """Return the CPU milliseconds of each of ``count`` views."""
    start = time.process_time()
    run()
    return (time.process_time() - start) / count * 1e3


def compare(
    assets: SceneAssets, layout: Layout, states: States, *, shadows: bool, turns: int, simplify: bool
) -> dict[str, Any]:
    """Measure milliseconds per view by camera, for all renderers in turns, and the ratio of the times."""
    count, cameras = len(states[1]), layout.visual.cameras
    make = partial(SceneRenderer, assets.stage, assets.robot, stack=count, shadows=shadows)
    ours = {
        "rgb": make(modalities=("rgb",)),
        "nimbus": make(modalities=("rgb", "depth", "instance", "semantic")),
        "everything": make(),
    }
    opengl = _open_gl(assets, layout, shadows=shadows, simplify=simplify)
    result: dict[str, Any] = {}
    for name, shown in {**{camera.name: (camera,) for camera in cameras}, "both": cameras}.items():
        runs: dict[str, Callable[[], object]] = {}
        for label, renderer in ours.items():
            renderer.load(replace(layout, visual=replace(layout.visual, cameras=shown)))
            runs[label] = partial(renderer.render, *states)
        if opengl:
            runs["opengl"] = partial(_render_all, [partial(opengl.render, *states, camera.name) for camera in shown])
        for run in runs.values():
            run()
        times = [{label: cpu_ms(run, count * len(shown)) for label, run in runs.items()} for _ in range(turns)]
        result[name] = row = {label: min(turn[label] for turn in times) for label in runs}
        if opengl:
            row |= {"ratio": row["opengl"] / row["nimbus"], "ratio_everything": row["opengl"] / row["everything"]}
    if opengl:
        opengl.close()
    return result


def _render_all(runs: list[Callable[[], object]]) -> None:
    for run in runs:
        run()


def _open_gl(assets: SceneAssets, layout: Layout, *, shadows: bool, simplify: bool) -> Any:
    """Return MuJoCo's renderer; None without EGL."""
    try:
        make = importlib.import_module("benchmarks.opengl").OpenGL
        return make(layout, assets.stage, assets.robot, shadows=shadows, simplify=simplify)
    except (ImportError, AttributeError, RuntimeError, mujoco.FatalError) as error:
        sys.stderr.write(f"MuJoCo's OpenGL renderer is left out: {error}\n")
        return None


def set_up_cost(assets: SceneAssets, layout: Layout) -> dict[str, float]:
    """Return the CPU milliseconds to prepare the first episode, a new episode, and the same episode again."""
    renderer = SceneRenderer(assets.stage, assets.robot)
    first = cpu_ms(lambda: renderer.load(layout), 1)
    looks = layout.visual.surfaces
    fresh = {name: replace(surface, texture_seed=surface.texture_seed + 1) for name, surface in looks.items()}
    other = replace(layout, visual=replace(layout.visual, surfaces=fresh))
    return {
        "first": first,
        "new_looks": cpu_ms(lambda: renderer.load(other), 1),
        "same": cpu_ms(lambda: renderer.load(other), 1),
    }


def table(figures: dict[str, Any]) -> str:
    """Return the figures as a table."""
    lines = []
    for name in ("shadows", "no_shadows"):
        for camera, row in figures[name].items():
            values = "  ".join(f"{key} {value:5.2f}" for key, value in row.items())
            lines.append(f"{name:12}{camera:8}{values}")
    lines.append("CPU ms a view; ratio: OpenGL's time over ours")
    set_up = ", ".join(f"{name} {value:.0f}" for name, value in figures["set_up_ms"].items())
    lines += [
        f"set-up of an episode [CPU ms]: {set_up}",
        f"peak memory, with OpenGL's: {figures['peak_memory_mb']:.0f} MB",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episode", type=Path, help="file of a stored episode of sort_trash")
    parser.add_argument("--steps", type=int, default=16, help="number of states to render")
    parser.add_argument("--turns", type=int, default=4, help="number of measurements of each renderer")
    parser.add_argument("--gl-threads", type=int, help="threads of the software OpenGL (default: its own)")
    parser.add_argument("--simplify", action="store_true", help="render Nimbus's simplified meshes with MuJoCo")
    parser.add_argument("--json", type=Path, help="also write the figures to this JSON file")
    options = parser.parse_args()
    if options.gl_threads is not None:
        os.environ["LP_NUM_THREADS"] = str(options.gl_threads)
    assets, layout, trajectory = episode(options.episode)
    states = spread(trajectory, options.steps)
    figures: dict[str, Any] = {"set_up_ms": set_up_cost(assets, layout)}
    for shadows in (True, False):
        name = "shadows" if shadows else "no_shadows"
        figures[name] = compare(assets, layout, states, shadows=shadows, turns=options.turns, simplify=options.simplify)
    figures["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(table(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
