"""Comparison of two renderings of one episode: step by step, and K steps together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.episode.observation import CameraFrames

DEPTH = 1e-4
"""Largest difference of depths [m]; the file stores them in tenths of a millimeter."""
LABELS = 0.002
"""Largest fraction of pixels whose labels may differ; a path tracer samples edges at random."""
MAX_COLOR_DIFFERENCE = 6.0
"""Largest mean difference of colors, of 255; denoising causes small differences."""
_BESIDE = 2e-3
"""Largest median difference of depths from the default renderer's [m]."""
_DARK = 4.0
"""Mean value of an image, of 255, below which it is considered black."""

Frames = Mapping[str, CameraFrames]


@dataclass(frozen=True, kw_only=True)
class Check:
    """Check as a line of the table."""

    name: str
    passed: bool
    found: str
    seconds: float | None = None


def first_images(frames: Frames) -> list[Check]:
    """Check that the first image of each kind is not empty."""
    checks = []
    for name, of in (("rgb", _rgb), ("depth", _depth), ("instance", _instance), ("normals", _normals)):
        found = {camera: of(shown) for camera, shown in frames.items()}
        empty = [camera for camera, (good, _) in found.items() if not good]
        text = ", ".join(f"{camera}: {said}" for camera, (_, said) in sorted(found.items()))
        checks.append(Check(name=f"first {name}", passed=not empty, found=text))
    return checks


def equal(one: Frames, many: Frames) -> list[Check]:
    """Check that stacked images equal those of single steps."""
    depth, labels, colors = 0.0, 0.0, 0.0
    for camera, alone in one.items():
        together = many[camera]
        same = (alone.instance == together.instance) & (alone.depth > 0) & (together.depth > 0)
        error = np.abs(alone.depth - together.depth)[same]
        depth = max(depth, float(np.quantile(error, 0.999)) if len(error) else np.inf)
        labels = max(labels, float((alone.instance != together.instance).mean()))
        colors = max(colors, float(np.abs(alone.rgb.astype(float) - together.rgb).mean()))
    return [
        Check(name="depth", passed=depth <= DEPTH, found=f"{depth:.1e} m apart, at most {DEPTH:g}"),
        Check(name="labels", passed=labels <= LABELS, found=f"{labels:.2%} of pixels, at most {LABELS:.1%}"),
        Check(
            name="colors",
            passed=colors <= MAX_COLOR_DIFFERENCE,
            found=f"{colors:.2f} of 255, at most {MAX_COLOR_DIFFERENCE:g}",
        ),
    ]


def moving_prims(frames: Frames) -> Check:
    """Check that every camera's depth changes from the first to the last step, as it must if poses take effect."""
    changed = {camera: float((shown.depth[0] != shown.depth[-1]).mean()) for camera, shown in frames.items()}
    text = ", ".join(f"{camera}: {share:.1%} of pixels" for camera, share in sorted(changed.items()))
    return Check(name="motion is visible", passed=bool(changed) and all(changed.values()), found=text)


def compare_with_default(rtx: Frames, known: Frames) -> list[Check]:
    """Check that labels, depth and brightness agree with the default renderer's images."""
    agreement, depth, ratio = 1.0, 0.0, []
    for camera, shown in rtx.items():
        other = known[camera]
        same = shown.semantic == other.semantic
        agreement = min(agreement, float(same.mean()))
        both = same & (shown.depth > 0) & (other.depth > 0)
        error = np.abs(shown.depth - other.depth)[both]
        depth = max(depth, float(np.median(error)) if len(error) else np.inf)
        ratio.append(float(shown.rgb.mean() / max(other.rgb.mean(), 1e-9)))
    bright = float(np.mean(ratio))
    return [
        _mounted(rtx, known),
        Check(name="labels as by default", passed=agreement >= 0.95, found=f"{agreement:.1%} of pixels, at least 95%"),
        Check(
            name="depth as by default",
            passed=depth <= _BESIDE,
            found=f"median {depth:.1e} m apart, at most {_BESIDE:g}",
        ),
        Check(name="brightness as by default", passed=0.5 <= bright <= 2.0, found=f"{bright:.2f} times, 0.5 to 2"),
    ]


def _mounted(rtx: Frames, known: Frames) -> Check:
    """Check that wrist cameras end at the default renderer's poses rather than one step behind."""
    apart: dict[str, float] = {}
    for camera, other in known.items():
        if np.allclose(other.world_T_camera[0], other.world_T_camera[-1]):
            continue
        both = (rtx[camera].depth[-1] > 0) & (other.depth[-1] > 0)
        error = np.abs(rtx[camera].depth[-1] - other.depth[-1])[both]
        apart[camera] = float(np.median(error)) if len(error) else np.inf
    text = ", ".join(f"{camera}: {error:.1e} m" for camera, error in sorted(apart.items())) or "none is mounted"
    passed = all(error <= _BESIDE for error in apart.values())
    return Check(name="mounted cameras at the last step", passed=passed, found=f"{text}, at most {_BESIDE:g}")


def _rgb(frames: CameraFrames) -> tuple[bool, str]:
    mean, spread = float(frames.rgb[0].mean()), float(frames.rgb[0].std())
    return mean > _DARK and spread > 1.0, f"mean {mean:.0f}, spread {spread:.0f}"


def _depth(frames: CameraFrames) -> tuple[bool, str]:
    share = float((frames.depth[0] > 0).mean())
    return share > 0.2, f"{share:.0%} hit"


def _instance(frames: CameraFrames) -> tuple[bool, str]:
    count = len(np.unique(frames.instance[0][frames.instance[0] > 0]))
    return count >= 2, f"{count} things"


def _normals(frames: CameraFrames) -> tuple[bool, str]:
    hit = frames.depth[0] > 0
    if not hit.any():
        return False, "none"
    length = float(np.median(np.linalg.norm(frames.normals[0][hit].astype(float) / 127, axis=-1)))
    return abs(length - 1.0) < 0.05, f"length {length:.2f}"
