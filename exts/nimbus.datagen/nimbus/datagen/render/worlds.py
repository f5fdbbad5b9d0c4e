"""K copies of one scene as K worlds of one Newton model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import newton
import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.layout import Surface
from nimbus.datagen.render.parts import Part
from nimbus.datagen.render.textures import procedural_texture

_PERIODS = {"table": 1.6, "floor": 2.4, "backdrop": 3.1}
"""[m] Length after which a procedural texture repeats; larger than what one view shows of the surface."""
_SHAPE = newton.ModelBuilder.ShapeConfig(density=0.0, has_shape_collision=False, has_particle_collision=False)


class Worlds:
    """A model of ``count`` worlds with the same parts, and the state that places their bodies.

    Args:
        parts: What each world holds.
        surfaces: Tints and textures by instance.
        count: K, the number of worlds.
        device: ``cpu`` or a CUDA device.
    """

    def __init__(
        self, parts: Sequence[Part], surfaces: Mapping[str, Surface], *, count: int, device: wp.DeviceLike
    ) -> None:
        world = newton.ModelBuilder()
        self.body_names = tuple(dict.fromkeys(part.body for part in parts if part.body))
        bodies = {name: world.add_link(label=name) for name in self.body_names} | {"": -1}
        for part in parts:
            surface = surfaces.get(part.instance, Surface())
            mesh = _with_surface(part, surface)
            world.add_shape_mesh(bodies[part.body], mesh=mesh, cfg=_SHAPE, color=surface.color, label=part.label)
        builder = newton.ModelBuilder()
        builder.replicate(world, count)
        self.count = count
        self.model = builder.finalize(device=device, skip_all_validations=True)
        self.state = self.model.state()
        self._body_q = np.zeros((count, len(self.body_names), 7), dtype=np.float32)
        self._body_q[..., 6] = 1.0

    def place(self, rows: Sequence[int], positions: NDArray[np.float64], wxyz: NDArray[np.float64]) -> None:
        """Put the bodies of the first ``len(positions)`` worlds in place.

        Args:
            rows: Row in ``positions`` of each of ``body_names``.
            positions: (k, B, 3) [m], k up to the number of worlds.
            wxyz: (k, B, 4)
        """
        count = len(positions)
        self._body_q[:count, :, :3] = positions[:, rows]
        self._body_q[:count, :, 3:] = np.roll(wxyz[:, rows], -1, axis=-1)
        self.state.body_q.assign(self._body_q.reshape(-1, 7))
        self.model.bvh_build_shapes(self.state)


def _with_surface(part: Part, surface: Surface) -> newton.Mesh:
    if not surface.texture:
        return part.mesh
    image = procedural_texture(surface.texture, surface.texture_seed)
    return part.triangles.projected(_PERIODS.get(part.instance, 1.0)).to_mesh(image)
