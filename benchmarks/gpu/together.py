"""Several renderers on one GPU, as the workers of a run are: each is a process, and all measure at the same time.

``python -m benchmarks.gpu.together DEVICE K`` is one of them: it writes a line when it is ready, waits for a line, and
writes its figures as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack

from benchmarks.gpu.recording import load
from benchmarks.gpu.result import Row
from benchmarks.gpu.throughput import measure_views

CAMERAS, WIDTH, HEIGHT = 3, 320, 240
_SECONDS = 3.0
"""[s] Shortest time that each measures; nearly all of it overlaps."""


def measure_together(device: str, processes: int, *, stack: int) -> Row:
    """Return the sums of several renderers' rates.

    Args:
        device: ``cuda`` or ``cpu``.
        processes: Number of renderers.
        stack: K, states in a call.

    Raises:
        RuntimeError: A renderer stopped.
    """
    line = [sys.executable, "-m", "benchmarks.gpu.together", device, str(stack)]
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
    sizes = {"stack": stack, "cameras": CAMERAS, "width": WIDTH, "height": HEIGHT}
    measure_views(recording, device, **sizes, seconds=0.0)  # compiles
    sys.stdout.write("\nready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    row = measure_views(recording, device, **sizes, seconds=_SECONDS if device != "cpu" else 0.0)
    sys.stdout.write(json.dumps(row) + "\n")


def _read(process: subprocess.Popen[str]) -> str:
    """Return the next line of JSON, or ``ready``; others are Warp's."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith("{") or line.strip() == "ready":
            return line
    raise RuntimeError(f"a renderer stopped with {process.wait()}")


if __name__ == "__main__":
    main()
