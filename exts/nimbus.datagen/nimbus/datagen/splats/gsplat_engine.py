"""Rasterizer of splats that uses gsplat, an optional library; it is several times faster than ours on a GPU.

gsplat needs PyTorch and CUDA, and compiles its kernels on first use. Its images differ slightly from ours, and unlike
ours they are not reproducible to the bit, because gsplat uses fast, less accurate arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Vector
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import cameras
from nimbus.datagen.splats.cloud import FIRST_HARMONIC, SplatCloud, split_similarity
from nimbus.datagen.splats.rasterizer import DEPTH_OPACITY, FAR, NEAR, SplatPictures

_TOGETHER = 8
"""Number of views per call, which bounds the memory."""


class GsplatRasterizer:
    """Rasterizer of one cloud by gsplat; arguments and images are those of :class:`SplatRasterizer`.

    Raises:
        InputError: The device is a CPU, or gsplat or PyTorch is not installed.
    """

    def __init__(
        self,
        cloud: SplatCloud,
        *,
        world_T_cloud: FloatArray | None = None,
        device: str = "cuda",
        behind: Vector = (0.0, 0.0, 0.0),
    ) -> None:
        if device == "cpu":
            raise InputError("gsplat only renders on a GPU", where="engine: gsplat", instead="write --device cuda")
        try:
            from nimbus.datagen.geometry.torch_library import torch  # isort: skip - before gsplat
            import gsplat  # pyright: ignore[reportMissingImports]
        except ModuleNotFoundError as error:
            what, instead = f"the package {error.name} is not installed", "pip install gsplat, or use engine: warp"
            raise InputError(what, where="engine: gsplat", instead=instead) from None
        self._torch, self._rasterize, self._device = torch, gsplat.rasterization, device
        matrix = np.eye(4) if world_T_cloud is None else np.asarray(world_T_cloud, dtype=float)
        (self._factor, self._world_R_cloud), self._offset = split_similarity(matrix), matrix[:3, 3]
        self._degree, self._mode = cloud.degree, "antialiased" if cloud.is_antialiased else "classic"
        self._behind = self._upload(np.array(behind))
        arrays = cloud.positions, cloud.wxyz, cloud.scales, cloud.opacities, _coefficients(cloud)
        self._cloud = tuple(map(self._upload, arrays))

    def render(self, camera: Camera, positions: FloatArray, wxyz: FloatArray) -> SplatPictures:
        """Render a camera at K poses.

        Args:
            camera: Camera, used for its size and field of view; its distortion is ignored.
            positions: (K, 3) positions of the camera in the world [m].
            wxyz: (K, 4) orientations wxyz, with OpenGL axes.
        """
        poses = cameras.world_T_camera(positions, wxyz)
        # Harmonics are relative to the frame of the cloud, so the camera is transformed into that frame.
        cloud_T_camera = np.tile(np.eye(4), (len(poses), 1, 1))
        cloud_T_camera[:, :3, :3] = self._world_R_cloud.T @ poses[:, :3, :3]
        cloud_T_camera[:, :3, 3] = (poses[:, :3, 3] - self._offset) @ self._world_R_cloud / self._factor
        views = np.asarray(np.linalg.inv(cloud_T_camera), dtype=float)
        made = [self._blend(camera, views[start : start + _TOGETHER]) for start in range(0, len(views), _TOGETHER)]
        rgb, alpha, depth = (np.concatenate([part[index] for part in made]) for index in range(3))
        return SplatPictures(rgb=rgb, alpha=alpha, depth=depth)

    def _blend(self, camera: Camera, views: FloatArray) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return colors (K, H, W, 3), opacities (K, H, W) and depths (K, H, W) [m]."""
        count = len(views)
        with self._torch.no_grad():
            colors, alpha, _ = self._rasterize(
                *self._cloud,
                viewmats=self._upload(views),
                Ks=self._upload(np.tile(cameras.intrinsics(camera), (count, 1, 1))),
                width=camera.width,
                height=camera.height,
                near_plane=NEAR / self._factor,
                far_plane=FAR / self._factor,
                sh_degree=self._degree,
                backgrounds=self._behind.expand(count, 3),
                render_mode="RGB+ED",
                rasterize_mode=self._mode,
            )
            # Colors are converted on the device, because the conversion on the host would take longer than the
            # rendering.
            rgb = (255.0 * colors[..., :3].clamp(0.0, 1.0)).round().to(self._torch.uint8)
            alpha = alpha[..., 0]
            depth = self._torch.where(alpha >= DEPTH_OPACITY, colors[..., 3] * self._factor, 0.0)
        return rgb.cpu().numpy(), alpha.cpu().numpy(), depth.cpu().numpy()

    def _upload(self, values: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).to(self._device)


def _coefficients(cloud: SplatCloud) -> NDArray[np.floating[Any]]:
    """Return the spherical harmonics (N, C, 3) of all degrees, including the constant one."""
    constant = (cloud.colors - 0.5) / FIRST_HARMONIC
    if cloud.harmonics is None:
        return constant[:, None]
    return np.concatenate([constant[:, None], np.swapaxes(cloud.harmonics, 1, 2)], axis=1)
