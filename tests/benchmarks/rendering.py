"""Rendering: CPU time of a view, and MuJoCo's OpenGL renderer on the same states in the same run.

Run it as ``python tests/benchmarks/rendering.py [--steps 16] [--json FILE]``. Ours makes rgb, depth, instance and
semantic masks, normals, boxes and visibility; MuJoCo's (EGL, shadow map 1024, no multisampling) rgb, depth and
segmentation. It is left out where EGL is not there. Times are CPU seconds of all threads; both take turns, and the best
turn counts, because other programs on the machine slow them down.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT / "tests/datagen/render")]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl"}

import numpy as np  # noqa: E402

from nimbus.datagen.layout import Camera, Layout, Surface  # noqa: E402
from nimbus.datagen.render.parts import Part, object_parts, scene_parts  # noqa: E402
from nimbus.datagen.render.stacked import StackedRenderer  # noqa: E402
from nimbus.datagen.render.textures import procedural_texture  # noqa: E402
from nimbus.datagen.simulate.newton import NewtonSimulation  # noqa: E402

render_scene = importlib.import_module("render_scene")
mujoco: Any = importlib.import_module("mujoco")

SURFACES = {
    "table": Surface(texture="wood", texture_seed=1),
    "floor": Surface(texture="tiles", texture_seed=2),
    "backdrop": Surface(texture="plaster", texture_seed=3),
}


def reaching(layout: Layout, steps: int) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Bodies while the arm goes down to the objects."""
    stage, robot = render_scene.stage_and_robot()
    simulation = NewtonSimulation(stage, robot, rate=15)
    simulation.load(layout.physical)
    home, down = np.array(robot.arm.home), np.array([0.0, 0.35, 0.0, -2.25, 0.0, 2.6, 0.785])
    positions, wxyz = [], []
    for step in range(steps):
        share = 0.5 - 0.5 * math.cos(math.pi * step / (steps - 1))
        simulation.advance(np.append(home + share * (down - home), robot.gripper.open))
        positions.append(simulation.body_positions())
        wxyz.append(simulation.body_wxyz())
    return simulation.body_names, np.array(positions), np.array(wxyz)


States = tuple[tuple[str, ...], np.ndarray, np.ndarray]
"""Names, positions and orientations of bodies."""


class OpenGL:
    """The same parts, looks, light and cameras in MuJoCo's renderer; every body is placed by hand."""

    def __init__(self, layout: Layout, parts: list[Part], *, shadows: bool) -> None:
        spec = mujoco.MjSpec()
        spec.visual.quality.shadowsize, spec.visual.quality.offsamples = 1024, 0
        camera = layout.visual.cameras[0]
        spec.visual.global_.offwidth, spec.visual.global_.offheight = camera.width, camera.height
        light = spec.worldbody.add_light(dir=layout.visual.light.direction, pos=(0, 0, 3), castshadow=shadows)
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        bodies = {name: spec.worldbody.add_body(name=name, mocap=True) for name in {part.body for part in parts} - {""}}
        for index, part in enumerate(parts):
            _add_part(spec, bodies.get(part.body, spec.worldbody), part, index, layout)
        self.names = list(bodies)
        for camera in layout.visual.cameras:
            body = bodies[camera.mount] if camera.mount else spec.worldbody
            body.add_camera(
                name=camera.name, pos=camera.position, quat=camera.wxyz, fovy=math.degrees(camera.vertical_fov)
            )
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.renderer = mujoco.Renderer(self.model, camera.height, camera.width)
        self.renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        self.renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False

    def render(self, names: tuple[str, ...], positions: np.ndarray, wxyz: np.ndarray, camera: str) -> list[np.ndarray]:
        """Rgb, depth and segmentation of the steps."""
        shown = []
        for step in range(len(positions)):
            for name in self.names:
                place = self.model.body(name).mocapid[0]
                self.data.mocap_pos[place] = positions[step, names.index(name)]
                self.data.mocap_quat[place] = wxyz[step, names.index(name)]
            mujoco.mj_forward(self.model, self.data)
            self.renderer.update_scene(self.data, camera)
            shown = [self.renderer.render()]
            self.renderer.enable_depth_rendering()
            shown.append(self.renderer.render())
            self.renderer.disable_depth_rendering()
            self.renderer.enable_segmentation_rendering()
            shown.append(self.renderer.render())
            self.renderer.disable_segmentation_rendering()
        return shown


def _add_part(spec: Any, body: Any, part: Part, index: int, layout: Layout) -> None:
    surface = layout.visual.surfaces.get(part.instance, Surface())
    triangles, image = part.triangles, part.image
    if surface.texture:
        triangles = triangles.projected(2.0)
        image = procedural_texture(surface.texture, surface.texture_seed)
    name = f"part_{index}"
    uvs = np.stack([triangles.uvs[:, 0], 1.0 - triangles.uvs[:, 1]], axis=1)
    mesh = spec.add_mesh(
        name=name,
        uservert=triangles.vertices.ravel(),
        userface=triangles.faces.ravel(),
        usernormal=triangles.normals.ravel(),
        usertexcoord=uvs.astype(np.float32).ravel(),
    )
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    texture = spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, nchannel=3)
    texture.width, texture.height = image.shape[1], image.shape[0]
    texture.data = np.ascontiguousarray(image).tobytes()
    material = spec.add_material(name=name)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_MESH,
        meshname=name,
        material=name,
        rgba=(*surface.color, 1),
        contype=0,
        conaffinity=0,
    )


def cpu_ms(run: Callable[[], object], count: int) -> float:
    """CPU milliseconds of each of ``count`` views."""
    start = time.process_time()
    run()
    return (time.process_time() - start) / count * 1e3


def compare(layout: Layout, states: States, *, shadows: bool, turns: int) -> dict[str, Any]:
    """Milliseconds a view by camera, of both renderers in turns."""
    stage, robot = render_scene.stage_and_robot()
    names, positions, wxyz = states
    ours = StackedRenderer(stage, robot, stack=len(positions), shadows=shadows)
    ours.load(layout)
    parts = [part for item in layout.physical.objects for part in object_parts(item)] + list(scene_parts(stage, robot))
    try:
        opengl = OpenGL(layout, parts, shadows=shadows)
    except (ImportError, AttributeError, RuntimeError, mujoco.FatalError) as error:
        sys.stderr.write(f"MuJoCo's OpenGL renderer is left out: {error}\n")
        opengl = None
    result: dict[str, Any] = {}
    for camera in layout.visual.cameras:
        ours.cameras = (camera,)
        ours.render(*states)
        if opengl:
            opengl.render(*states, camera.name)
        times: dict[str, list[float]] = {"nimbus": [], "mujoco_egl": []}
        for _ in range(turns):
            times["nimbus"].append(cpu_ms(lambda: ours.render(*states), len(positions)))
            if opengl:
                times["mujoco_egl"].append(
                    cpu_ms(lambda camera=camera: opengl.render(*states, camera.name), len(positions))
                )
        result[camera.name] = {name: min(values) for name, values in times.items() if values}
    total = {name: sum(row[name] for row in result.values()) for name in next(iter(result.values()))}
    result["ratio"] = total["mujoco_egl"] / total["nimbus"] if "mujoco_egl" in total else None
    return result


def set_up_cost(layout: Layout) -> dict[str, float]:
    """CPU milliseconds to prepare the first, a new and the same episode."""
    stage, robot = render_scene.stage_and_robot()
    renderer = StackedRenderer(stage, robot)
    first = cpu_ms(lambda: renderer.load(layout), 1)
    fresh = {name: replace(surface, texture_seed=surface.texture_seed + 1) for name, surface in SURFACES.items()}
    other = replace(layout, visual=replace(layout.visual, surfaces=fresh))
    return {
        "first": first,
        "new_looks": cpu_ms(lambda: renderer.load(other), 1),
        "same": cpu_ms(lambda: renderer.load(other), 1),
    }


def table(figures: dict[str, Any], cameras: tuple[Camera, ...]) -> str:
    """The figures for people."""
    lines = [f"{'CPU ms a view':16}" + "".join(f"{camera.name:>24}" for camera in cameras) + "   MuJoCo / Nimbus"]
    for name in ("shadows", "no_shadows"):
        row = figures[name]
        cells = (" / ".join(f"{value:.1f}" for value in row[camera.name].values()) for camera in cameras)
        ratio = f"{row['ratio']:.2f}" if row["ratio"] else "-"
        lines.append(f"{name:16}" + "".join(f"{cell:>24}" for cell in cells) + f"{ratio:>18}")
    set_up = ", ".join(f"{name} {value:.0f}" for name, value in figures["set_up_ms"].items())
    lines += [
        f"set-up of an episode [CPU ms]: {set_up}",
        f"peak memory, with OpenGL's: {figures['peak_memory_mb']:.0f} MB",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=16, help="states to render")
    parser.add_argument("--turns", type=int, default=4, help="times that each renderer is measured")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    layout = render_scene.layout(width=320, height=240, surfaces=SURFACES)
    states = reaching(layout, options.steps)
    figures: dict[str, Any] = {"set_up_ms": set_up_cost(layout)}
    for shadows in (True, False):
        figures["shadows" if shadows else "no_shadows"] = compare(layout, states, shadows=shadows, turns=options.turns)
    figures["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(table(figures, layout.visual.cameras))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
