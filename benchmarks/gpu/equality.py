"""Equality of the renderer on two devices, and of stacks of several sizes.

Limits: 99.99 % of the labels are equal. The depths of 99.99 % of the pixels with equal labels differ by at most 1e-4 m.
The colors of 99.9 % of the pixels differ by at most 2/255. If a ray passes an edge at a distance below the float32
resolution, it may hit either side.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.gpu.recording import Recording, load
from benchmarks.gpu.result import PartResult, Row
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.render.stacked import StackedRenderer, find_device

MOST_LABELS, MOST_DEPTHS, MOST_COLORS = 1e-4, 1e-4, 1e-3
"""Largest fractions of pixels whose labels, depths and colors differ."""
DEPTH = 1e-4
"""Largest difference of depths that count as equal [m]."""
COLOR = 2
"""Largest difference per channel of colors that count as equal [1/255]."""
STATES = 16
"""Number of consecutive states that are compared."""
NOTHING = "nothing is seen"
"""Text of the problem that the images show at most one object."""
_SIZES = ((320, 240), (640, 480))


def check(device: str) -> PartResult:
    """Render the recorded states on the CPU and on ``device``, and in other stack sizes; compare the images.

    Args:
        device: ``cuda``; or ``cpu``, where only two stack sizes are compared.

    Raises:
        InputError: The device does not exist.
    """
    find_device(device)
    recording = load()
    small = device == "cpu"
    rows: list[Row] = []
    problems: list[str] = []
    for width, height in _SIZES[: 1 if small else None]:
        states = 4 if small else STATES
        whole = render(recording, device, stack=states, states=states, width=width, height=height)
        others = {f"{device}, stacks of 1": (device, 1)} | ({} if small else {"cpu": ("cpu", 8)})
        for label, (other, stack) in others.items():
            frames = render(recording, other, stack=stack, states=states, width=width, height=height)
            for camera, row in compare(frames, whole).items():
                where = {"against": label, "size": f"{width}x{height}", "camera": camera}
                rows.append(where | row)
                problems += [f"{', '.join(where.values())}: {problem}" for problem in find_problems(row)]
    return PartResult(rows=tuple(rows), problems=tuple(problems))


def render(
    recording: Recording, device: str, *, stack: int, states: int, width: int, height: int
) -> dict[str, CameraFrames]:
    """Return the frames of two cameras, rendered ``stack`` states at a time.

    Args:
        recording: The episode.
        device: ``cpu`` or ``cuda``.
        stack: K states, all of which are rendered.
        width: [px]
        height: [px]
    """
    renderer = StackedRenderer(stack=stack, device=device)
    renderer.load_inputs(recording.seen_by(2, width, height))
    bodies, positions, wxyz = recording.states(states)
    pieces = [
        renderer.render(bodies, positions[start : start + stack], wxyz[start : start + stack], first_step=start)
        for start in range(0, states, stack)
    ]
    return {camera: _joined([piece[camera] for piece in pieces]) for camera in pieces[0]}


def compare(expected: Mapping[str, CameraFrames], found: Mapping[str, CameraFrames]) -> dict[str, Row]:
    """Return the fractions of different pixels, and the largest differences, by camera.

    Args:
        expected: Frames by camera.
        found: Frames of the same states and cameras.
    """
    rows: dict[str, Row] = {}
    for camera, one in expected.items():
        other = found[camera]
        same = (one.instance == other.instance) & (one.semantic == other.semantic)
        depth = np.abs(one.depth.astype(np.float64) - other.depth)[same]
        color = np.abs(one.rgb.astype(np.int16) - other.rgb).max(axis=-1)
        rows[camera] = {
            "pixels": same.size,
            "labels_differ": float(np.mean(~same)),
            "depths_differ": float(np.mean(~(depth <= DEPTH))) if depth.size else 1.0,
            "colors_differ": float(np.mean(color > COLOR)),
            "most_depth_m": float(depth.max(initial=0.0)),
            "most_color": int(color.max(initial=0)),
            "things_seen": len(np.unique(one.instance)),
        }
    return rows


def find_problems(row: Row) -> list[str]:
    """Return one line for each limit that a row of :func:`compare` exceeds."""
    limits = {"labels_differ": MOST_LABELS, "depths_differ": MOST_DEPTHS, "colors_differ": MOST_COLORS}
    broken = [f"{name} {row[name]:.2e}, at most {limit:.0e}" for name, limit in limits.items() if row[name] > limit]  # pyright: ignore[reportOperatorIssue]
    return broken + ([NOTHING] if row["things_seen"] == 1 else [])


def _joined(pieces: list[CameraFrames]) -> CameraFrames:
    names = ("rgb", "depth", "instance", "semantic", "normals", "boxes_2d", "visibility", "world_T_camera")
    arrays = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names}
    return CameraFrames(**arrays, intrinsics=pieces[0].intrinsics)
