"""Views of a driving episode from above, composed from its own images and depth only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.media.contact_sheet import INK
from nimbus.datagen.store.episode_file.read import EpisodeFile

_EVERY, _STRIDE = 3, 3
"""Stride between the used rows of the episode, and between the used pixels along each side of an image."""
_LOWEST, _HIGHEST = -0.3, 1.9
"""Range of heights above the floor that is shown [m]; ceilings and lamps are left out."""
_FARTHEST = 8.0
"""Largest distance from the body of the points that are shown [m]."""
_AROUND = 0.6
"""Smallest margin around the path [m]."""
_WIDEST = 1.5
"""Largest ratio of a view's width to its height."""
_PATH, _BODY, _START, _GOAL = (60, 120, 230), (230, 90, 40), (60, 170, 80), (200, 40, 60)


@dataclass(frozen=True, kw_only=True, eq=False)
class TopDownView:
    """An image of the ground that an episode shows, on which the path can be drawn; x is up, y to the left."""

    ground: ImageArray
    """Image (H, W, 3)."""
    corner: FloatArray
    """Largest x and largest y (2,) [m], at the upper left of the image."""
    scale: float
    """Scale of the image [px/m]."""
    feet: FloatArray
    """Path (T, 2) of the body [m]."""
    yaws: FloatArray
    """Headings (T,) of the body [rad]."""
    goal: FloatArray | None
    """Goal (2,) [m]; None without one."""

    def draw(self, step: int) -> ImageArray:
        """Return the image with the path up to a step."""
        image = Image.fromarray(self.ground)
        draw = ImageDraw.Draw(image)
        path = [self._pixel(point) for point in self.feet[: step + 1]]
        if len(path) > 1:
            draw.line(path, fill=_PATH, width=2)
        self._dot(draw, path[0], _START, 3)
        if self.goal is not None:
            self._dot(draw, self._pixel(self.goal), _GOAL, 4)
        ahead = self.feet[step] + 0.5 * np.array([np.cos(self.yaws[step]), np.sin(self.yaws[step])])
        draw.line([path[-1], self._pixel(ahead)], fill=_BODY, width=2)
        self._dot(draw, path[-1], _BODY, 5)
        return np.asarray(image)

    def _pixel(self, point: FloatArray) -> tuple[float, float]:
        down, right = (self.corner - point) * self.scale
        return float(right), float(down)

    @staticmethod
    def _dot(draw: ImageDraw.ImageDraw, at: tuple[float, float], color: tuple[int, int, int], radius: int) -> None:
        x, y = at
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)


def is_driven(episode: EpisodeFile) -> bool:
    """Return True if the episode's body drives."""
    return episode.texts("names/joints") == ("x", "y", "yaw")


def view_from_above(episode: EpisodeFile, *, height: int) -> TopDownView:
    """Compose the view of a driving episode from above.

    Args:
        episode: The episode; without depth, the ground stays dark.
        height: Height of the view [px].

    Raises:
        InputError: The file is damaged.
    """
    feet = episode.array("observations/body_positions")[:, 0].astype(float)
    yaws = episode.array("observations/qpos")[:, 2].astype(float)
    drawn = episode.layout().physical.drawn.get("goal")
    goal = np.array(drawn["goal"][:2], dtype=float) if isinstance(drawn, dict) and "goal" in drawn else None
    points, colors = _seen(episode, feet)
    shown = np.concatenate([points[:, :2], feet[:, :2]])
    low, high = np.percentile(shown, 1, axis=0), np.percentile(shown, 99, axis=0)
    low = np.minimum(low, feet[:, :2].min(axis=0) - _AROUND)
    high = np.maximum(high, feet[:, :2].max(axis=0) + _AROUND)
    size = high - low
    scale = min(height / size[0], _WIDEST * height / size[1])
    width = min(max(round(size[1] * scale), height // 2), round(_WIDEST * height))
    ground = np.full((height, width, 3), INK, dtype=np.uint8)
    corner = (low + high) / 2 + np.array([height, width]) / (2 * scale)
    rows, columns = np.floor((corner - points[:, :2]) * scale).astype(int).T
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    # Higher points are drawn last, over the floor.
    order = np.flatnonzero(inside)[np.argsort(points[inside, 2], kind="stable")]
    ground[rows[order], columns[order]] = colors[order]
    return TopDownView(
        ground=_filled(ground), corner=corner, scale=float(scale), feet=feet[:, :2], yaws=yaws, goal=goal
    )


def _seen(episode: EpisodeFile, feet: FloatArray) -> tuple[FloatArray, ImageArray]:
    """Return the points (n, 3) that the images show [m], and their colors (n, 3)."""
    places, shades = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.uint8)]
    for camera in episode.cameras:
        if "depth" not in episode.modalities(camera):
            continue
        for row in range(0, episode.step_count, _EVERY):
            frames = episode.frames(camera, row, row + 1)
            depth = frames.depth[0, ::_STRIDE, ::_STRIDE].astype(float)
            matrix, pose = frames.intrinsics, frames.world_T_camera[0]
            y, x = np.mgrid[0 : depth.shape[0], 0 : depth.shape[1]] * _STRIDE + 0.5
            rays = np.stack([(x - matrix[0, 2]) / matrix[0, 0], (y - matrix[1, 2]) / matrix[1, 1], np.ones_like(x)], -1)
            found = (rays * depth[..., None]) @ pose[:3, :3].T + pose[:3, 3]
            above = found[..., 2] - feet[row, 2]
            near = np.linalg.norm(found[..., :2] - feet[row, :2], axis=-1) < _FARTHEST
            kept = (depth > 0) & (above > _LOWEST) & (above < _HIGHEST) & near
            places.append(found[kept])
            shades.append(frames.rgb[0, ::_STRIDE, ::_STRIDE][kept])
    return np.concatenate(places), np.concatenate(shades)


def _filled(ground: ImageArray) -> ImageArray:
    """Fill single pixels without a point from their neighbors."""
    empty = np.all(ground == INK, axis=2)
    for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
        beside = np.roll(ground, step, axis=axis)
        fill = empty & ~np.all(beside == INK, axis=2)
        ground = np.where(fill[..., None], beside, ground)
        empty &= ~fill
    return ground.astype(np.uint8)
