"""Scenes of several layouts side by side on the device, and the state of all their meshes at any steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray, IntArray
from nimbus.datagen.geometry.cameras import BodyRows
from nimbus.datagen.render.raytracer import culling, placing, raster
from nimbus.datagen.render.raytracer.geometry import Geometry
from nimbus.datagen.render.raytracer.kernel_data import MAP, DeviceLight, DeviceScene, Raster, Steps, Views


@dataclass(frozen=True, kw_only=True)
class PlacedSteps:
    """Meshes of K steps on the device."""

    steps: Any
    """``Steps`` of the kernels."""
    placed: Any
    """``Placed`` of the kernels, in double precision."""
    body_positions: wp.array
    """(K, B) positions of the bodies, world frame [m]."""
    body_wxyz: wp.array

    @cached_property
    def poses(self) -> FloatArray:
        """Positions [m] and rotation matrices of G meshes at each step (K, G, 12)."""
        positions, rotations = self.placed.positions.numpy(), self.placed.rotations.numpy()
        return np.concatenate([positions, rotations.reshape(-1, 9)], axis=1).reshape(len(self), -1, 12)

    @cached_property
    def casts(self) -> NDArray[np.bool_]:
        """(K, G) True for meshes that cast shadows."""
        return self.steps.active.numpy().reshape(len(self), -1) > 0

    @cached_property
    def extents(self) -> FloatArray:
        """(K, G, 2, 2) lower and upper corners of the meshes across the light, as in ``Placed`` [m]."""
        return self.placed.extents.numpy().reshape(len(self), -1, 2, 2)

    def __len__(self) -> int:
        return len(self.steps.layouts)


@dataclass(frozen=True, kw_only=True)
class PlacedViews:
    """Views of one size on the device."""

    views: Any
    """``Views`` of the kernels."""
    eyes: Any
    """``Eyes`` of the kernels, in double precision."""

    def __len__(self) -> int:
        return len(self.views.steps)


class SceneTable:
    """Scenes and lights of L layouts; a step or a view shows one of them.

    Tables of steps have as many rows for each step as the largest scene needs.

    Args:
        geometries: Geometry of each layout; layouts may share one.
        lights: A ``DeviceLight`` for each.
        device: Device of all of them.
    """

    def __init__(self, geometries: Sequence[Geometry], lights: Sequence[Any], device: wp.Device) -> None:
        # Geometries and lights are kept, because an array of structures does not keep the arrays in its structures
        # alive.
        self._geometries, self._lights, self.device = tuple(geometries), tuple(lights), device
        scenes = [geometry.scene for geometry in geometries]
        self.scenes = wp.array(scenes, dtype=DeviceScene, device=device)
        self.lights = wp.array(list(lights), dtype=DeviceLight, device=device)
        self.mesh_rows = max(scene.mesh_count for scene in scenes)
        self.rectangle_rows = max(scene.rectangle_count for scene in scenes)
        self._solid_rows = max(scene.mesh_count - scene.rectangle_count for scene in scenes)
        self._box_rows = max(scene.boxes.count for scene in scenes)
        self._vertex_rows = max(scene.vertex_count for scene in scenes)
        self._piece_rows = max(scene.piece_count for scene in scenes)
        self.has_seams = any(scene.is_baked for scene in scenes)
        """True where contact shadows are computed: in baked scenes."""
        self._has_shadows = any(light.shadows for light in lights)
        self._bodies: dict[tuple[tuple[str, ...], ...], wp.array] = {}

    def place(
        self, layouts: IntArray, names: Sequence[Sequence[str]], positions: FloatArray, wxyz: FloatArray
    ) -> PlacedSteps:
        """Compute all that does not depend on cameras.

        Args:
            layouts: (K,) layout of each step.
            names: Names of the bodies of each layout, in the order of its rows.
            positions: (K, B, 3) positions of the bodies, world frame [m]; rows beyond a layout's bodies are ignored.
            wxyz: (K, B, 4) their orientations.
        """
        count, device, empty = len(layouts), self.device, self._empty
        size, steps, placed = count * self.mesh_rows, Steps(), placing.Placed()

        steps.layouts = self._upload(layouts, wp.int32)
        steps.mesh_rows, steps.box_rows = self.mesh_rows, self._box_rows
        steps.rectangle_rows, steps.solid_rows = self.rectangle_rows, self._solid_rows
        # Rows beyond a layout's meshes stay inactive.
        steps.active = wp.zeros(size, dtype=wp.uint8, device=device)
        steps.world_R_mesh, steps.positions = empty(size, wp.mat33), empty(size, wp.vec3)
        steps.light_in_mesh, steps.normals = empty(size, wp.vec3), empty(size, wp.vec3)
        steps.shades, steps.tops = empty(3 * size, wp.vec4), empty(size, wp.float32)
        steps.margins, steps.pictures = empty(size, wp.vec2), empty(size, wp.int32)
        steps.map_corner, steps.map_scale = empty(size, wp.vec2), empty(size, wp.vec2)
        steps.corners, steps.edges = empty(size, wp.vec3), empty(2 * size, wp.vec3)
        steps.near_low, steps.near_high = empty(size, wp.vec3), empty(size, wp.vec3)
        heights = self._raster(steps.layouts, size)
        heights.width, heights.height, heights.perspective = MAP, MAP * self._solid_rows, False
        steps.heights = heights
        placed.positions, placed.rotations = empty(size, wp.vec3d), empty(size, wp.mat33d)
        placed.rectangles = empty(4 * count * self.rectangle_rows, wp.vec3d)
        placed.extents, placed.moves = empty(size, wp.vec4d), wp.zeros(size, dtype=wp.uint8, device=device)
        bodies = [self._rows(names), self._upload(positions, wp.vec3d), self._upload(wxyz, wp.vec4d)]
        inputs = [self.scenes, self.lights, *bodies, steps, placed]
        wp.launch(placing.place_meshes, dim=(count, self.mesh_rows), inputs=inputs, device=device)
        if self._has_shadows:
            inputs = [self.scenes, steps, placed, count]
            wp.launch(placing.choose_maps, dim=self.mesh_rows, inputs=inputs, device=device)
            raster.draw(self.scenes, heights, steps=count, device=device)
            # Structures are assigned by value: those of the steps have no pixels yet.
            steps.heights = heights
        culling.cover_light(self.scenes, self.lights, steps, placed.extents)
        if self.has_seams and self._has_shadows:
            culling.cover_near(self.scenes, steps, placed.moves)
        return PlacedSteps(steps=steps, placed=placed, body_positions=bodies[1], body_wxyz=bodies[2])

    def see(
        self,
        shown: PlacedSteps,
        *,
        layouts: IntArray,
        steps: IntArray,
        positions: FloatArray,
        rotations: FloatArray,
        focals: FloatArray,
        tones: IntArray,
        size: tuple[int, int],
    ) -> PlacedViews:
        """Draw the meshes of V views of one size, and compute all that depends on the cameras.

        Args:
            shown: The steps.
            layouts: (V,) layout of each view.
            steps: (V,) step of each view.
            positions: (V, 3) positions of the cameras, world frame [m].
            rotations: (V, 3, 3) their orientations, OpenGL axes.
            focals: (V,) focal lengths [px].
            tones: (V,) starts of the tone curves.
            size: Width and height [px].
        """
        count, device = len(steps), self.device
        rows, views, eyes = count * self.mesh_rows, Views(), placing.Eyes()
        views.width, views.height = size
        views.layouts, views.steps = self._upload(layouts, wp.int32), self._upload(steps, wp.int32)
        views.focals, views.tones = self._upload(focals, wp.float32), self._upload(tones, wp.int32)
        views.positions, views.world_R_camera = self._upload(positions, wp.vec3), self._upload(rotations, wp.mat33)
        views.origins, views.mesh_R_camera = self._empty(rows, wp.vec3), self._empty(rows, wp.mat33)
        views.planes = self._empty(3 * rows, wp.vec3)
        views.seen = wp.zeros(rows, dtype=wp.uint8, device=device)
        meshes = self._raster(views.layouts, rows)
        meshes.width, meshes.height, meshes.perspective = *size, True
        views.meshes = meshes
        eyes.positions, eyes.rotations = self._upload(positions, wp.vec3d), self._upload(rotations, wp.mat33d)
        eyes.focals = self._upload(focals, wp.float64)
        inputs = [self.scenes, shown.steps, shown.placed, eyes, views]
        wp.launch(placing.place_views, dim=(count, self.mesh_rows), inputs=inputs, device=device)
        culling.cover_image(self.scenes, views, mesh_rows=self.mesh_rows, rectangle_rows=self.rectangle_rows)
        raster.draw(self.scenes, meshes, steps=count, device=device)
        views.meshes = meshes
        return PlacedViews(views=views, eyes=eyes)

    def body_rows(self, layout: int, rows: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the row of each mesh's body of a layout; -1 for static meshes."""
        return np.array([rows[body] if body else -1 for body in self._geometries[layout].bodies], dtype=np.int64)

    def _rows(self, names: Sequence[Sequence[str]]) -> wp.array:
        key = tuple(map(tuple, names))
        if key not in self._bodies:
            table = np.full((len(key), self.mesh_rows), -1, dtype=np.int32)
            for layout, found in enumerate(key):
                if not found:
                    continue  # no step shows this layout
                rows = self.body_rows(layout, BodyRows(found))
                table[layout, : len(rows)] = rows
            # The cache has one entry, because names rarely change between calls.
            self._bodies = {key: wp.array(table, dtype=wp.int32, device=self.device)}
        return self._bodies[key]

    def _raster(self, layouts: wp.array, rows: int) -> Any:
        found = Raster()
        found.layouts, found.mesh_rows = layouts, self.mesh_rows
        found.vertex_rows, found.piece_rows = self._vertex_rows, self._piece_rows
        found.matrices, found.offsets = self._empty(rows, wp.mat33), self._empty(rows, wp.vec3)
        found.shown = wp.zeros(rows, dtype=wp.uint8, device=self.device)
        return found

    def _empty(self, rows: int, dtype: Any) -> wp.array:
        return wp.empty(rows, dtype=dtype, device=self.device)

    def _upload(self, values: NDArray[Any], dtype: Any) -> wp.array:
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.device)
