"""Frames per second of Cycles with OptiX in 1, 2 and 4 processes on one GPU.

The scene, 40 shaded spheres on a plane under one lamp, is built in Blender's own process by the script below; no
episode of Nimbus is rendered. The interpreter is that of ``NIMBUS_BLENDER_PYTHON``, or this one. Each process renders
the same frames, whose mean color is compared between processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.gpu.physics import need
from benchmarks.gpu.result import PartResult, Row
from nimbus.datagen.render.stacked import find_device

_VARIABLE = "NIMBUS_BLENDER_PYTHON"
_PROCESSES, _CPU_PROCESSES = (1, 2, 4), (1,)
_FRAMES, _CPU_FRAMES = 16, 1
_LONGEST = 600.0
"""Time limit of the processes [s]."""
_CLOSE = 1e-3
"""Largest difference of a frame's mean color between processes, 0 to 1."""
_SCRIPT = """
import json, math, sys, time
import bpy
folder, device, frames, width, height, samples = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
scene.render.engine, scene.cycles.samples, scene.cycles.seed = "CYCLES", samples, 0
scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = width, height, 100
if device == "cuda":
    preferences = bpy.context.preferences.addons["cycles"].preferences
    preferences.compute_device_type = "OPTIX"
    preferences.get_devices()
    for one in preferences.devices:
        one.use = one.type == "OPTIX"
    if not any(one.use for one in preferences.devices):
        sys.exit("Cycles finds no OptiX device")
    scene.cycles.device = "GPU"
bpy.ops.mesh.primitive_plane_add(size=20)
for number in range(40):
    angle = 0.7 * number
    x, y = 0.05 * number * math.cos(angle), 0.05 * number * math.sin(angle)
    bpy.ops.mesh.primitive_uv_sphere_add(radius=0.15, location=(x, y, 0.15))
bpy.ops.object.light_add(type="SUN", rotation=(0.5, 0.3, 0.0))
bpy.ops.object.camera_add(location=(0, -4, 2.5), rotation=(1.05, 0, 0))
scene.camera = bpy.context.object
scene.render.image_settings.file_format = "PNG"
means, start = [], 0.0
for frame in range(frames + 1):
    if frame == 1:
        start = time.perf_counter()
    scene.render.filepath = f"{folder}/{frame:03d}.png"
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(scene.render.filepath)
    pixels = image.pixels[:]
    means.append(sum(pixels) / len(pixels))
    bpy.data.images.remove(image)
print("RESULT " + json.dumps({"seconds": time.perf_counter() - start, "mean": means[-1]}))
"""


def measure(device: str) -> PartResult:
    """Render with 1, 2 and 4 simultaneous processes; with one on a CPU.

    Args:
        device: ``cuda`` or ``cpu``.

    Raises:
        InputError: The device does not exist.
        MissingError: Blender's module is not installed.
    """
    python = os.environ.get(_VARIABLE, "")
    if not python:
        need("bpy")
    find_device(device)
    small = device == "cpu"
    rows: list[Row] = []
    problems: list[str] = []
    means: list[float] = []
    for processes in _CPU_PROCESSES if small else _PROCESSES:
        found, failed = _render(python or sys.executable, device, processes, _CPU_FRAMES if small else _FRAMES)
        problems += failed
        if failed:
            continue
        frames = processes * (_CPU_FRAMES if small else _FRAMES)
        rows.append({"processes": processes, "frames_per_s": frames / max(one["seconds"] for one in found)})
        means += [one["mean"] for one in found]
    if means and max(means) - min(means) > _CLOSE:
        problems.append(f"mean colors differ by {max(means) - min(means):.2e} between processes")
    if means and max(means) < 0.01:
        problems.append("the frames are black")
    return PartResult(rows=tuple(rows), problems=tuple(problems))


def _render(python: str, device: str, processes: int, frames: int) -> tuple[list[dict[str, float]], list[str]]:
    """Return the results of the processes, and one line for each failed process."""
    size = ("64", "48", "4") if device == "cpu" else ("640", "480", "64")
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number in range(processes):
            (place := Path(folder) / str(number)).mkdir()
            line = [python, "-P", "-c", _SCRIPT, str(place), device, str(frames), *size]
            running.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        found, problems, end = [], [], time.monotonic() + _LONGEST
        for one in running:
            try:
                text, _ = one.communicate(timeout=max(1.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                one.kill()
                one.communicate()
                problems.append(f"{processes} processes: one took over {_LONGEST:.0f} s")
                continue
            result = next((row[7:] for row in text.splitlines() if row.startswith("RESULT ")), "")
            if one.returncode or not result:
                problems.append(f"{processes} processes: one exits with {one.returncode}: {ascii(text[-200:])}")
            else:
                found.append(json.loads(result))
    return found, problems
