"""Control frames per second of rollouts: one layout, and 32 different layouts in one launch, as a policy sees them.

All layouts advance by one step at a time, and all their images are rendered in one call. The images must equal those of
each layout rendered alone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.gpu.equality import NOTHING, compare, find_problems
from benchmarks.gpu.layouts import DrawnLayout, draw_layout
from benchmarks.gpu.recording import load
from benchmarks.gpu.result import PartResult, Row
from benchmarks.gpu.timing import repeat
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.render.loaded_layout import load_layout
from nimbus.datagen.render.stacked import StackedRenderer, find_device

LAYOUTS, CAMERAS, SIZE = 32, 3, (320, 240)
_CPU_LAYOUTS = 4
_FEWEST_THINGS = 4
"""Smallest number of objects that at least one camera of a layout must see."""


def measure(device: str) -> PartResult:
    """Compare layouts rendered together and alone, and measure both; on a CPU, fewer and smaller ones.

    Args:
        device: ``cuda`` or ``cpu``.

    Raises:
        InputError: The device does not exist.
    """
    find_device(device)
    recording, count = load(), _CPU_LAYOUTS if device == "cpu" else LAYOUTS
    width, height = SIZE
    layouts = [draw_layout(recording, seed, cameras=CAMERAS, width=width, height=height) for seed in range(count)]
    differing, problems = compare_layouts(layouts, device)
    rows = [measure_layouts(layouts, device, together=together) for together in (1, count)]
    rows[-1]["images_not_equal_to_the_bit"] = differing
    return PartResult(rows=tuple(rows), problems=tuple(problems))


def compare_layouts(layouts: Sequence[DrawnLayout], device: str) -> tuple[int, list[str]]:
    """Compare layouts rendered together and alone, each in a different state.

    Args:
        layouts: The layouts.
        device: ``cuda`` or ``cpu``.

    Returns:
        Number of images that are not equal to the bit, and the problems beyond the limits of ``equality``.
    """
    differing, problems = 0, []
    together = Rollouts(layouts, device, reuse=False).show(apart=1)
    for place, (layout, shown) in enumerate(zip(layouts, together, strict=True)):
        alone = Rollouts([layout], device, reuse=False).show(place)[0]
        rows = compare(alone, shown)
        for camera, row in rows.items():
            # A wrist camera in front of a surface sees one object.
            found = [problem for problem in find_problems(row) if problem != NOTHING]
            problems += [f"layout {place}, {camera}: {problem}" for problem in found]
        if max(int(row["things_seen"]) for row in rows.values()) < _FEWEST_THINGS:
            problems.append(f"layout {place}: {NOTHING}")
        differing += sum(
            not np.array_equal(getattr(alone[camera], name), getattr(shown[camera], name))
            for camera in alone
            for name in ("rgb", "depth", "instance", "semantic", "normals")
        )
    return differing, problems


class Rollouts:
    """Layouts on a device that are rendered in one call.

    Args:
        layouts: The layouts.
        device: ``cuda`` or ``cpu``.
        reuse: True to keep pixels that do not change; by default depends on the device.
    """

    def __init__(self, layouts: Sequence[DrawnLayout], device: str, *, reuse: bool | None = None) -> None:
        self._layouts = layouts
        self._renderer = StackedRenderer(stack=1, device=device, reuse=reuse)
        on = self._renderer.device
        self._renderer.load_layouts([load_layout(layout.inputs, on, shadows=True) for layout in layouts])

    def show(self, step: int = 0, *, apart: int = 0) -> list[dict[str, CameraFrames]]:
        """Render a step of every layout.

        Args:
            step: The step of the first layout.
            apart: Difference between the steps of neighboring layouts.
        """
        numbered = enumerate(self._layouts)
        return self._renderer.render_states([layout.state(step + apart * place, place) for place, layout in numbered])


def measure_layouts(layouts: Sequence[DrawnLayout], device: str, *, together: int) -> Row:
    """Measure loading and rendering.

    Args:
        layouts: The layouts.
        device: ``cuda`` or ``cpu``.
        together: Layouts in a launch.
    """
    start = time.perf_counter()
    groups = [Rollouts(layouts[first : first + together], device) for first in range(0, len(layouts), together)]
    loading = time.perf_counter() - start
    for group in groups:
        group.show()
    steps = itertools.count(1)

    def show_next() -> None:
        step = next(steps)
        for group in groups:
            group.show(step)

    timing = repeat(show_next)
    frames = timing.calls * len(layouts)
    return {
        "size": "x".join(map(str, SIZE)),
        "cameras": CAMERAS,
        "layouts": len(layouts),
        "in_a_launch": together,
        "loaded_per_s": len(layouts) / loading,
        "control_frames": frames,
        "control_frames_per_s": frames / timing.wall,
        "cpu_ms_per_view": 1e3 * timing.cpu / frames / CAMERAS,
    }
