"""Tile rasterizer of splats in Warp: color, opacity and depth of pinhole views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array, FloatArray, ImageArray
from nimbus.datagen.episode.layout import Camera, Vector
from nimbus.datagen.geometry import cameras, transforms
from nimbus.datagen.splats import blending, projection
from nimbus.datagen.splats.cloud import SplatCloud, split_similarity
from nimbus.datagen.splats.curve import curve_order

NEAR, FAR = 0.05, 1000.0
"""Range of depths of drawn splats [m]; a nearer splat would cover the whole image."""
DEPTH_OPACITY = 0.7
"""Smallest opacity of a pixel whose depth is valid."""
_BLOCK = 200_000
"""Number of splats whose covariances are computed at once, which bounds the memory."""


@dataclass(frozen=True, kw_only=True)
class SplatPictures:
    """K views of equal size."""

    rgb: ImageArray
    """(K, H, W, 3) sRGB."""
    alpha: Float32Array
    """(K, H, W) fraction of light that the splats block."""
    depth: Float32Array
    """(K, H, W) median depth [m] along the viewing axis; 0 where alpha is below :data:`DEPTH_OPACITY`."""


class SplatRasterizer:
    """Rasterizer of one cloud. On a CPU, one thread blends splats in the order of depth; on a GPU, it blends tiles.

    Both methods give the same images up to rounding, and each is reproducible bit for bit.

    Args:
        cloud: Splats in the frame of the cloud.
        world_T_cloud: (4, 4) matrix with rotation, uniform scale and offset [m]; identity by default.
        device: Warp device.
        by_tiles: True to blend by tiles; by default only on a GPU.
        behind: sRGB from 0 to 1 behind all splats.
    """

    def __init__(
        self,
        cloud: SplatCloud,
        *,
        world_T_cloud: FloatArray | None = None,
        device: str | wp.Device = "cpu",
        by_tiles: bool | None = None,
        behind: Vector = (0.0, 0.0, 0.0),
    ) -> None:
        self.device = wp.get_device(device)
        for module in (projection, blending):  # kernels are compiled here, because callers expect a slow constructor
            wp.load_module(module, device=self.device)
        self._by_tiles = self.device.is_cuda if by_tiles is None else by_tiles
        self._behind = wp.vec3(*behind)
        matrix = np.eye(4) if world_T_cloud is None else np.asarray(world_T_cloud, dtype=float)
        (self._factor, self._world_R_cloud), self._offset = split_similarity(matrix), matrix[:3, 3]
        self._cloud = self._upload(cloud)
        self._chunks = len(self._cloud.middles)

    def render(self, camera: Camera, positions: FloatArray, wxyz: FloatArray) -> SplatPictures:
        """Render a camera at K poses.

        Args:
            camera: Camera, used for its size and field of view; its distortion is ignored.
            positions: (K, 3) positions of the camera in the world [m].
            wxyz: (K, 4) orientations wxyz, with OpenGL axes.
        """
        poses, matrix = cameras.world_T_camera(positions, wxyz), cameras.intrinsics(camera)
        shape = (len(poses), camera.height, camera.width)
        rgb, alpha = np.empty((*shape, 3), np.uint8), np.empty(shape, np.float32)
        depth = np.empty(shape, np.float32)
        for row, pose in enumerate(poses):
            view = self._view(matrix, pose, camera.width, camera.height)
            splats, order, number, _, _ = self._project(view)
            pixels = self._blend(view, splats, order, number)
            count = camera.width * camera.height
            out = [self._empty(3 * count, wp.uint8), self._empty(count, wp.float32), self._empty(count, wp.float32)]
            self._launch(blending.finish, count, [pixels, self._behind, DEPTH_OPACITY, *out])
            rgb[row] = out[0].numpy().reshape(*shape[1:], 3)
            alpha[row], depth[row] = (array.numpy().reshape(shape[1:]) for array in out[1:])
        return SplatPictures(rgb=rgb, alpha=alpha, depth=depth * np.float32(self._factor))

    def project(self, camera: Camera, position: FloatArray, wxyz: FloatArray) -> dict[str, NDArray[Any]]:
        """Project the splats that may be visible; tests compare the result with double precision.

        Returns:
            Arrays by name: ``numbers`` (M,) of splats in the given cloud, ``colors`` (M, 4), ``centers`` (M, 2) [px],
            ``conics`` (M, 3) [1/px²] and ``depths`` (M,) [unit of the cloud].
        """
        pose = cameras.world_T_camera(np.atleast_2d(position), np.atleast_2d(wxyz))[0]
        view = self._view(cameras.intrinsics(camera), pose, camera.width, camera.height)
        splats, _, _, chunks, places = self._project(view)
        shown = places.numpy()
        rows = chunks.numpy()[shown // projection.CHUNK].astype(np.int64) * projection.CHUNK + shown % projection.CHUNK
        depths = splats.depths.numpy()
        drawn = depths < projection.NEVER
        found = {
            "colors": splats.colors.numpy(),
            "centers": splats.centers.numpy(),
            "conics": splats.conics.numpy()[:, :3],
            "depths": depths,
        }
        return {"numbers": self._order[rows][drawn]} | {name: values[drawn] for name, values in found.items()}

    def _upload(self, cloud: SplatCloud) -> Any:
        self._order = order = curve_order(cloud.positions)
        # Splats that are near each other form chunks, so that whole chunks outside of a view can be skipped.
        cloud = cloud.rows(order)
        covariance = np.concatenate([_covariances(cloud, start) for start in range(0, len(cloud), _BLOCK)])
        device = projection.DeviceCloud()
        device.count, device.degree, device.is_antialiased = len(cloud), cloud.degree, cloud.is_antialiased
        device.positions = self._array(cloud.positions, wp.vec3)
        device.diagonals = self._array(covariance[:, :3], wp.vec3)
        device.crosses = self._array(covariance[:, 3:], wp.vec3)
        device.colors = self._array(np.column_stack([cloud.colors, cloud.opacities]), wp.vec4)
        harmonics = np.zeros(1, np.float16) if cloud.harmonics is None else cloud.harmonics.ravel()
        device.harmonics = wp.array(harmonics, dtype=wp.float16, device=self.device)
        device.middles = self._array(_balls(cloud), wp.vec4)
        return device

    def _view(self, matrix: FloatArray, world_T_camera: FloatArray, width: int, height: int) -> Any:
        view = projection.DeviceView()
        cloud_R_camera = self._world_R_cloud.T @ world_T_camera[:3, :3]
        view.camera_R_world = wp.mat33(*cloud_R_camera.T.ravel())
        view.position = wp.vec3(*(self._world_R_cloud.T @ (world_T_camera[:3, 3] - self._offset) / self._factor))
        view.focal, view.middle = wp.vec2(matrix[0, 0], matrix[1, 1]), wp.vec2(matrix[0, 2], matrix[1, 2])
        view.width, view.height = width, height
        view.near, view.far = NEAR / self._factor, FAR / self._factor
        return view

    def _project(self, view: Any) -> tuple[Any, wp.array, int, wp.array, wp.array]:
        """Project the visible splats.

        Returns:
            The projected splats, their order by depth, their number, the visible chunks, and the index of each splat in
            these chunks.
        """
        flags = self._empty(self._chunks, wp.int32)
        self._launch(projection.cull_chunks, self._chunks, [self._cloud, view, flags])
        chunks = self._flagged(flags)
        flags = self._empty(len(chunks) * projection.CHUNK, wp.int32)
        self._launch(projection.cull_splats, len(flags), [self._cloud, view, chunks, flags])
        shown = self._flagged(flags)
        count, splats = len(shown), projection.Projected()
        splats.centers, splats.conics = self._empty(count, wp.vec2), self._empty(count, wp.vec4)
        splats.colors, splats.boxes = self._empty(count, wp.vec4), self._empty(count, wp.vec4i)
        splats.depths, order = self._empty(count, wp.float32), self._empty(2 * count, wp.int32)
        self._launch(projection.project, count, [self._cloud, view, chunks, shown, order, splats])
        # Warp's radix sort uses a second half of the arrays as scratch memory.
        keys = self._empty(2 * count, wp.float32)
        if count:
            wp.copy(keys, splats.depths, count=count)
            wp.utils.radix_sort_pairs(keys, order, count)
        return splats, order, count, chunks, shown

    def _blend(self, view: Any, splats: Any, order: wp.array, count: int) -> Any:
        size, pixels = view.width * view.height, blending.Pixels()
        pixels.through = wp.full(size, 1.0, dtype=wp.float32, device=self.device)
        pixels.colors = wp.zeros(size, dtype=wp.vec3, device=self.device)
        pixels.depths = wp.zeros(size, dtype=wp.float32, device=self.device)
        across, down = -(-view.width // blending.TILE), -(-view.height // blending.TILE)
        if not self._by_tiles:
            pending = np.minimum(blending.TILE, view.height - blending.TILE * np.arange(down))[:, None] * np.minimum(
                blending.TILE, view.width - blending.TILE * np.arange(across)
            )
            pending = wp.array(pending.astype(np.int32).ravel(), dtype=wp.int32, device=self.device)
            self._launch(blending.blend_in_order, 1, [count, order, splats, view.width, across, pending, pixels])
            return pixels
        starts, rows = self._lists(splats, order, count, across, tiles=across * down)
        shape = (across * blending.TILE, down * blending.TILE)
        self._launch(blending.blend_tiles, shape, [starts, rows, splats, view.width, view.height, across, pixels])
        return pixels

    def _lists(self, splats: Any, order: wp.array, count: int, across: int, *, tiles: int) -> tuple[wp.array, wp.array]:
        """Return the start of each tile's list, and the lists one after another, each in order of depth."""
        counts, ends = self._empty(count, wp.int32), self._empty(count, wp.int32)
        self._launch(blending.count_tiles, count, [order, splats, counts])
        total = 0
        if count:
            wp.utils.array_scan(counts, ends, inclusive=True)
            total = int(ends[count - 1 : count].numpy()[0])
        keys, rows = self._empty(2 * total, wp.int32), self._empty(2 * total, wp.int32)
        self._launch(blending.emit_tiles, count, [order, splats, across, ends, counts, keys, rows])
        if total:
            # Pairs come in order of depth and the sort is stable, so that each tile's list keeps that order.
            wp.utils.radix_sort_pairs(keys, rows, total)
        starts = self._empty(tiles + 1, wp.int32)
        self._launch(blending.find_ranges, tiles + 1, [keys, total, starts])
        return starts, rows

    def _flagged(self, flags: wp.array) -> wp.array:
        """Return the indices of the flagged entries, in order."""
        places = wp.empty_like(flags)
        wp.utils.array_scan(flags, places, inclusive=True)
        found = self._empty(int(places[len(places) - 1 :].numpy()[0]) if len(places) else 0, wp.int32)
        self._launch(projection.collect, len(flags), [flags, places, found])
        return found

    def _launch(self, kernel: Any, size: Any, inputs: list[Any]) -> None:
        wp.launch(kernel, dim=size, inputs=inputs, device=self.device)

    def _empty(self, size: int, kind: Any) -> wp.array:
        return wp.empty(size, dtype=kind, device=self.device)

    def _array(self, values: NDArray[Any], kind: Any) -> wp.array:
        return wp.array(np.ascontiguousarray(values, dtype=np.float32), dtype=kind, device=self.device)


def _covariances(cloud: SplatCloud, start: int) -> Float32Array:
    """Return the entries xx, yy, zz, xy, xz and yz of the covariances of a block of splats."""
    block = slice(start, start + _BLOCK)
    axes = transforms.quat_to_matrix(cloud.wxyz[block]) * cloud.scales[block, None, :]
    matrix = axes @ np.swapaxes(axes, -1, -2)
    return matrix[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].astype(np.float32)


def _balls(cloud: SplatCloud) -> Float32Array:
    """Return the center and radius (C, 4) of a ball around each chunk of splats, up to where they fade."""
    chunk = int(projection.CHUNK)
    count = -(-len(cloud) // chunk)
    padded = np.concatenate([np.arange(len(cloud)), np.full(count * chunk - len(cloud), len(cloud) - 1)])
    places, reach = cloud.positions[padded].reshape(count, chunk, 3), float(projection.REACH) * cloud.scales.max(axis=1)
    middle = 0.5 * (places.min(axis=1) + places.max(axis=1))
    away = np.linalg.norm(places - middle[:, None], axis=2) + reach[padded].reshape(count, chunk)
    # Balls are slightly enlarged, because rounding to single precision must not put a splat outside its ball.
    return np.column_stack([middle, away.max(axis=1) * 1.0001]).astype(np.float32)
