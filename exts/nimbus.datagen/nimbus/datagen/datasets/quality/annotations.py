"""Checks of annotations: optical flow against successive images, keypoints against masks and projections."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nimbus.datagen.datasets.quality.finding import fail
from nimbus.datagen.episode.observation import CameraFrames, Keypoints
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.store.episode_file.read import EpisodeFile

_STEPS = 8
"""Number of compared steps per episode, at equal spacing."""
_MOVES = 1.0
"""Smallest flow of compared pixels [px]; smaller flow is lost in the rounding to whole pixels."""
_FEW = 300
"""Smallest number of compared pixels in an episode; with fewer, flow is not judged."""
_FLAT = 2.0
"""Smallest mean difference between unshifted images for which flow is judged [levels]; below it, they lack texture."""
_AROUND = 2
"""Largest distance between a visible keypoint and the mask of its object [px]."""
_SHARE = 0.9
"""Smallest fraction of visible keypoints near the mask of their object."""
_PROJECTED = 0.1
"""Largest distance between a 2D keypoint and the projection of its 3D position [px]."""
_SURFACE = ("_min", "_max")
"""Suffixes of the names of keypoints on a surface."""


def check_annotations(episode: EpisodeFile, where: str) -> Iterator[Diagnostic]:
    """Check some steps of an episode in all cameras that store annotations.

    Args:
        episode: Stored episode.
        where: Name of the episode in findings.

    Raises:
        InputError: The file is damaged.
    """
    last = episode.step_count - 2
    if last < 0:
        return
    steps = np.unique(np.linspace(0, last, _STEPS).astype(int)).tolist()
    points = episode.labels.keypoints if episode.labels else None
    for camera in episode.cameras:
        stored = episode.modalities(camera)
        if not {"flow", "keypoints"} & {*stored}:
            continue
        pairs = [episode.frames(camera, step, step + 2) for step in steps]
        if "flow" in stored:
            yield from _check_flow(pairs, f"{where}, {camera}")
        if points is not None and {"keypoints", "instance"} <= {*stored}:
            lens = next((one.distortion for one in episode.layout().visual.cameras if one.name == camera), (0.0, 0.0))
            yield from _check_keypoints(pairs, points, f"{where}, {camera}", has_lens=any(lens))


def _check_flow(pairs: list[CameraFrames], where: str) -> Iterator[Diagnostic]:
    """Compare moving pixels with the next image, both at their target and at their own position.

    The difference must be smaller at the target.
    """
    warped, unmoved, count = 0.0, 0.0, 0
    for frames in pairs:
        assert frames.flow is not None
        flow, (now, later) = frames.flow[0].astype(np.float64), frames.rgb.astype(np.float64)
        height, width = flow.shape[:2]
        row, column = np.nonzero(np.linalg.norm(np.nan_to_num(flow), axis=-1) > _MOVES)
        target = np.stack([column, row], axis=-1) + 0.5 + flow[row, column]
        inside = ((target >= 0) & (target < (width, height))).all(axis=-1)
        row, column, (right, down) = row[inside], column[inside], target[inside].astype(int).T
        warped += np.abs(later[down, right] - now[row, column]).mean(axis=-1).sum()
        unmoved += np.abs(later[row, column] - now[row, column]).mean(axis=-1).sum()
        count += len(row)
    if count >= _FEW and unmoved > _FLAT * count and warped >= unmoved:
        what = f"following the flow, images differ by {warped / count:.1f} levels; without it, by {unmoved / count:.1f}"
        yield fail("flow", where, what)


def _check_keypoints(
    pairs: list[CameraFrames], points: Keypoints, where: str, *, has_lens: bool
) -> Iterator[Diagnostic]:
    """Compare 2D with projected 3D positions, and visible points on surfaces with the masks of their objects."""
    on_surface = np.array([name.endswith(_SURFACE) for name in points.names])
    found: list[bool] = []
    farthest = 0.0
    for frames in pairs:
        assert frames.keypoints_2d is not None and frames.keypoints_3d is not None
        assert frames.keypoint_visibility is not None
        places, visible = frames.keypoints_2d[0].astype(np.float64), frames.keypoint_visibility[0] == 2
        height, width = frames.instance.shape[1:]
        if not ((places[visible] >= 0) & (places[visible] < (width, height))).all():
            yield fail("keypoints", where, "a visible keypoint is outside the image")
            return
        if not has_lens and visible.any():
            seen = frames.keypoints_3d[0][visible].astype(np.float64) @ frames.intrinsics.T
            away = np.linalg.norm(seen[:, :2] / seen[:, 2:] - places[visible], axis=-1)
            farthest = max(farthest, float(away.max()))
        for number in np.flatnonzero(visible & on_surface):
            column, row = places[number].astype(int)
            low, high = np.maximum((row - _AROUND, column - _AROUND), 0), (row + _AROUND + 1, column + _AROUND + 1)
            around = frames.instance[0, low[0] : high[0], low[1] : high[1]]
            found.append(bool((around == points.instances[number]).any()))
    if farthest > _PROJECTED:
        yield fail("keypoints", where, f"projected 3D keypoints are up to {farthest:.2f} px away from the 2D ones")
    if found and np.mean(found) < _SHARE:
        yield fail(
            "keypoints", where, f"{1 - np.mean(found):.0%} of the visible keypoints are not on the mask of their object"
        )
