# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Contact shadows ("seams"): less ambient light where a moving body stands on another surface or beside it."""

from __future__ import annotations

import warp as wp

from nimbus.datagen.render.raytracer.kernel_data import GRID, SEAM, DeviceLight, DeviceScene, Steps
from nimbus.datagen.render.raytracer.shading import lowest

wp.set_module_options({"enable_backward": False})

_SEAM_DEPTH = wp.constant(0.75)
"""Fraction of the ambient light that is missing at a contact."""


@wp.func
def _closeness(scene: DeviceScene, steps: Steps, row: int, mesh: int, point: wp.vec3) -> float:
    """Return the nearness of a mesh to a point one seam width above a surface: 1 at contact, 0 from one width on."""
    distance = wp.float32(SEAM)
    if scene.meshes[mesh] == wp.uint64(0):
        # Edges are stored divided by their squared length, so that the product with a stored edge e is a
        # coordinate from 0 to 1, and the edge itself is e / |e|^2.
        off = point - steps.corners[row]
        one = steps.edges[row * 2]
        other = steps.edges[row * 2 + 1]
        along = one * (wp.clamp(wp.dot(off, one), 0.0, 1.0) / wp.length_sq(one))
        across = other * (wp.clamp(wp.dot(off, other), 0.0, 1.0) / wp.length_sq(other))
        distance = wp.length(off - along - across)
    else:
        # The distance has no sign, because open meshes have no inside.
        start = (point - steps.positions[row]) * steps.world_R_mesh[row]
        found = wp.mesh_query_point_no_sign(scene.meshes[mesh], start, SEAM)
        if found.result:
            place = wp.mesh_eval_position(scene.meshes[mesh], found.face, found.u, found.v)
            distance = wp.length(place - start)
    return wp.max(1.0 - distance / SEAM, 0.0)


@wp.func
def open_share(
    scene: DeviceScene, steps: Steps, light: DeviceLight, step: int, instance: int, place: wp.vec3, normal: wp.vec3
) -> float:
    """Return the fraction of ambient light that reaches a point beside moving bodies; its own instance is ignored."""
    if steps.near.words == 0:
        return 1.0
    corner = steps.near_corner[step]
    scale = steps.near_scale[step]
    row = wp.int32(wp.floor((wp.dot(place, light.along) - corner[0]) * scale[0]))
    column = wp.int32(wp.floor((wp.dot(place, light.across) - corner[1]) * scale[1]))
    if row < 0 or column < 0 or row >= GRID or column >= GRID:
        return 1.0
    above = place + normal * SEAM
    closeness = wp.float32(0.0)
    for word in range(steps.near.words):
        bits = steps.near.bits[((step * GRID + row) * GRID + column) * steps.near.words + word]
        while bits != wp.uint32(0):
            mesh = word * 32 + lowest(bits)
            bits = bits & (bits - wp.uint32(1))
            at = step * steps.mesh_rows + mesh
            # The box is tested first, because a query of the mesh costs far more.
            outside = wp.max(steps.near_low[at] - above, above - steps.near_high[at])
            if wp.max(outside) < 0.0:
                if scene.looks[scene.face_part[scene.face_start[mesh]]].instance != instance:
                    closeness = wp.max(closeness, _closeness(scene, steps, at, mesh, above))
    # Only the nearest body counts: a sum would darken places between several of them too much.
    return 1.0 - _SEAM_DEPTH * closeness
