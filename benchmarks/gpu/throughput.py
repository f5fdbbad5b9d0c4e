"""Views a second of the renderer by stack size K, cameras, image size and number of processes; all modalities."""

from __future__ import annotations

import time

from benchmarks.gpu.recording import Recording, load
from benchmarks.gpu.result import PartResult, Row
from nimbus.datagen.render.stacked import StackedRenderer, find_device

_STACKS, _CAMERAS, _SIZES = (1, 8, 32, 128), (1, 3), ((320, 240), (640, 480))
_CPU_STACKS, _CPU_SIZES = (1, 8), ((320, 240),)
_PROCESSES, _CPU_PROCESSES, _TOGETHER_STACK = (2, 4, 8), (2,), 8
_SECONDS = 1.0
"""[s] Shortest time that is measured, after one launch that is not."""


def measure(device: str) -> PartResult:
    """Measure all sizes, fewer on a CPU.

    Args:
        device: ``cuda`` or ``cpu``.

    Raises:
        InputError: The device is not there.
    """
    find_device(device)
    recording = load()
    small = device == "cpu"
    rows = [
        measure_views(recording, device, stack=stack, cameras=cameras, width=width, height=height)
        for width, height in (_CPU_SIZES if small else _SIZES)
        for cameras in _CAMERAS
        for stack in (_CPU_STACKS if small else _STACKS)
    ]
    from benchmarks.gpu.together import measure_together

    # The workers of a run share the GPU, so that one computes on the host while another's kernels run.
    rows += [
        measure_together(device, count, stack=_TOGETHER_STACK) for count in (_CPU_PROCESSES if small else _PROCESSES)
    ]
    return PartResult(rows=tuple(rows))


def measure_views(
    recording: Recording, device: str, *, stack: int, cameras: int, width: int, height: int, seconds: float = _SECONDS
) -> Row:
    """Views a second of one size.

    Args:
        recording: The episode.
        device: ``cuda`` or ``cpu``.
        stack: K, states in a call.
        cameras: Cameras in a call.
        width: [px]
        height: [px]
        seconds: [s] Shortest time that is measured.
    """
    renderer = StackedRenderer(stack=stack, device=device)
    renderer.load_inputs(recording.seen_by(cameras, width, height))
    states = recording.states(stack)
    renderer.render(*states)
    calls, start, cpu_start = 0, time.perf_counter(), time.process_time()
    while not calls or time.perf_counter() - start < seconds:
        renderer.render(*states)
        calls += 1
    wall, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    views = calls * stack * cameras
    return {
        "size": f"{width}x{height}",
        "cameras": cameras,
        "K": stack,
        "processes": 1,
        "views": views,
        "views_per_s": views / wall,
        "control_frames_per_s": views / cameras / wall,
        "cpu_ms_per_view": 1e3 * cpu_seconds / views,
    }
