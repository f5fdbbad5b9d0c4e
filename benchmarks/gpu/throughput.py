"""Views per second of the renderer by stack size K, cameras, image size and number of processes; all modalities.

Several renderers on one GPU are separate processes, like the workers of a run, and measure at the same time:
``python -m benchmarks.gpu.throughput DEVICE K`` starts one of them. It writes a line when it is ready, waits for a line
as the start signal, and then writes its figures as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from benchmarks.gpu.recording import Recording, load
from benchmarks.gpu.result import PartResult, Row
from benchmarks.gpu.timing import repeat
from nimbus.datagen.render.stacked import StackedRenderer, find_device

_STACKS, _CAMERAS, _SIZES = (1, 8, 32, 128), (1, 3), ((320, 240), (640, 480))
_CPU_STACKS, _CPU_SIZES = (1, 8), ((320, 240),)
_PROCESSES, _CPU_PROCESSES, _TOGETHER_STACK = (2, 4, 8), (2,), 8
_TOGETHER_SECONDS = 3.0
"""Shortest time for which each of several renderers measures [s]; it is so long that the renderers overlap almost all
the time."""
_START = "import sys; sys.path.insert(0, sys.argv[3]); from benchmarks.gpu.throughput import main; main()"


def measure(device: str) -> PartResult:
    """Measure all sizes; on a CPU, fewer.

    Args:
        device: ``cuda`` or ``cpu``.

    Raises:
        InputError: The device does not exist.
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
    # The workers of a run share the GPU, so one computes on the host while another's kernels run.
    rows += [
        measure_together(device, count, stack=_TOGETHER_STACK) for count in (_CPU_PROCESSES if small else _PROCESSES)
    ]
    return PartResult(rows=tuple(rows))


def measure_views(
    recording: Recording,
    device: str,
    *,
    stack: int,
    cameras: int,
    width: int,
    height: int,
    seconds: float | None = None,
) -> Row:
    """Return the views per second of one size.

    Args:
        recording: The episode.
        device: ``cuda`` or ``cpu``.
        stack: K, states in a call.
        cameras: Cameras in a call.
        width: [px]
        height: [px]
        seconds: Shortest measured time [s].
    """
    renderer = StackedRenderer(stack=stack, device=device)
    renderer.load_inputs(recording.seen_by(cameras, width, height))
    states = recording.states(stack)
    renderer.render(*states)
    timing = repeat(lambda: renderer.render(*states), seconds=seconds)
    views = timing.calls * stack * cameras
    return {
        "size": f"{width}x{height}",
        "cameras": cameras,
        "K": stack,
        "processes": 1,
        "views": views,
        "views_per_s": views / timing.wall,
        "control_frames_per_s": views / cameras / timing.wall,
        "cpu_ms_per_view": 1e3 * timing.cpu / views,
    }


def measure_together(device: str, processes: int, *, stack: int) -> Row:
    """Return the sums of several renderers' rates.

    Args:
        device: ``cuda`` or ``cpu``.
        processes: Number of renderers.
        stack: K, states in a call.

    Raises:
        RuntimeError: A renderer stopped.
    """
    line = [sys.executable, "-P", "-c", _START, device, str(stack), str(Path(__file__).parents[2])]
    with ExitStack() as exits:
        running = [
            exits.enter_context(subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(processes)
        ]
        for process in running:
            exits.callback(process.kill)
        for process in running:
            _read(process)
        for process in running:
            assert process.stdin
            process.stdin.write("begin\n")
            process.stdin.flush()
        rows: list[Row] = [json.loads(_read(process)) for process in running]
    summed = {name: sum(float(row[name]) for row in rows) for name in ("views", "views_per_s", "control_frames_per_s")}
    each = {name: rows[0][name] for name in ("size", "cameras", "K")}
    cpu = sum(float(row["cpu_ms_per_view"]) for row in rows) / processes
    return {**each, "processes": processes, **summed, "cpu_ms_per_view": cpu}


def main() -> None:
    """Measure as one of several processes."""
    device, stack = sys.argv[1], int(sys.argv[2])
    recording = load()
    sizes = {"stack": stack, "cameras": 3, "width": 320, "height": 240}
    measure_views(recording, device, **sizes, seconds=0.0)  # compiles
    sys.stdout.write("\nready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    row = measure_views(recording, device, **sizes, seconds=_TOGETHER_SECONDS if device != "cpu" else 0.0)
    sys.stdout.write(json.dumps(row) + "\n")


def _read(process: subprocess.Popen[str]) -> str:
    """Return the next line of JSON, or ``ready``; other lines come from Warp."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith("{") or line.strip() == "ready":
            return line
    raise RuntimeError(f"a renderer stopped with {process.wait()}")


if __name__ == "__main__":
    main()
