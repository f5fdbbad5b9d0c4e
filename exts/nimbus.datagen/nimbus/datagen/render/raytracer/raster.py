# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Rasterization of meshes: the nearest face in each pixel, for a camera or from the light.

Each pixel holds an integer with the bits of the nearness followed by the face number plus one; for views from the
light, it holds the bits of the nearness alone. An atomic maximum makes the result independent of the order in which
faces are drawn.
"""

from __future__ import annotations

import warp as wp

from nimbus.datagen.render.raytracer.kernel_data import DeviceScene, Raster

wp.set_module_options({"enable_backward": False})

_NEAR = wp.constant(1.0e-3)
"""Depth below which a face is clipped on a slower path [m]."""
_SEAM = wp.constant(1.0e-4)
"""Enlargement of faces, which closes gaps between neighbors [px]."""

_NARROW = wp.constant(4)
"""Width below which each pixel of a face is tested [px]; in wider faces the ends of each line are computed."""
_LANES = 16
"""Number of GPU threads per piece of a mesh."""


@wp.func
def _is_outside(scene: DeviceScene, raster: Raster, row: int, piece: int) -> wp.bool:
    """Return True if a piece cannot cover a pixel center, judged by its box; half a pixel is left for rounding."""
    matrix = raster.matrices[row]
    half = scene.piece_half[piece]
    middle = matrix * scene.piece_middle[piece] + raster.offsets[row]
    deep = wp.vec3(0.0)
    one = wp.float32(1.0)
    if raster.perspective:
        deep = matrix[2]
        one = middle[2]
        if one + wp.dot(wp.abs(deep), half) < 0.5 * _NEAR:
            return wp.bool(True)
    wide = float(raster.width)
    tall = float(raster.height)
    # The clip planes of the right and bottom edge are multiplied by the depth to avoid a division.
    right = matrix[0] - wide * deep
    bottom = matrix[1] - tall * deep
    return (
        middle[0] + wp.dot(wp.abs(matrix[0]), half) < 0.0
        or middle[1] + wp.dot(wp.abs(matrix[1]), half) < 0.0
        or middle[0] - wide * one - wp.dot(wp.abs(right), half) > 0.0
        or middle[1] - tall * one - wp.dot(wp.abs(bottom), half) > 0.0
    )


@wp.kernel
def _place_vertices(scenes: wp.array(dtype=DeviceScene), raster: Raster, lanes: int):
    """Project each vertex to the image, with its nearness, which is 0 for a vertex not in front of the camera."""
    step, piece, lane = wp.tid()
    scene = scenes[raster.layouts[step]]
    if piece >= scene.piece_count:
        return
    row = step * raster.mesh_rows + scene.piece_mesh[piece]
    if raster.shown[row] == wp.uint8(0) or _is_outside(scene, raster, row, piece):
        return
    # Every lane of the piece writes the same value, so their order does not matter.
    raster.drawn[step * raster.piece_rows + piece] = wp.uint8(1)
    matrix = raster.matrices[row]
    offset = raster.offsets[row]
    for vertex in range(scene.piece_points[piece] + lane, scene.piece_points[piece + 1], lanes):
        seen = matrix * scene.points[vertex] + offset
        if raster.perspective:
            # Nearness is stored instead of depth, because only 1 / depth is affine over a projected face.
            closeness = wp.where(seen[2] >= _NEAR, 1.0 / seen[2], 0.0)
            seen = wp.vec3(seen[0] * closeness, seen[1] * closeness, closeness)
        raster.places[step * raster.vertex_rows + vertex] = seen


@wp.func
def _keep(raster: Raster, index: int, closeness: float, face: int):
    # Bits of positive floats have the order of the floats, so that an integer maximum finds the nearest. The plain read
    # skips most of the costly atomics; values only grow, so an outdated one costs no more than a needless atomic.
    if not raster.perspective:
        top = wp.cast(closeness, wp.uint32)
        if top > raster.tops[index]:
            wp.atomic_max(raster.tops, index, top)
        return
    # Equally near faces are decided by the face number in the low bits: the higher one wins in any order of threads.
    key = (wp.uint64(wp.cast(closeness, wp.uint32)) << wp.uint64(32)) | wp.uint64(face + 1)
    if key > raster.nearest[index]:
        wp.atomic_max(raster.nearest, index, key)


@wp.func
def long_shares(scene: DeviceScene, raster: Raster, row: int, face: int, x: float, y: float) -> wp.vec3:
    """Return barycentric coordinates at a pixel, divided by the depth there; corners may be behind the camera."""
    matrix = raster.matrices[row]
    offset = raster.offsets[row]
    pixel = wp.vec3(x, y, 0.0)
    one = matrix * scene.points[scene.corners[face * 3]] + offset
    two = matrix * scene.points[scene.corners[face * 3 + 1]] + offset
    three = matrix * scene.points[scene.corners[face * 3 + 2]] + offset
    # Corners are sheared so that the pixel's ray becomes the third axis.
    one = one - pixel * one[2]
    two = two - pixel * two[2]
    three = three - pixel * three[2]
    # Homogeneous rasterization (Olano and Greer 1997) solves for the corners' weights on the pixel's ray without a
    # division by the depth of a corner, which may be zero or negative here.
    volume = wp.dot(one, wp.cross(two, three))
    shares = wp.vec3(
        two[0] * three[1] - two[1] * three[0],
        three[0] * one[1] - three[1] * one[0],
        one[0] * two[1] - one[1] * two[0],
    )
    # A face seen edge-on has no volume; all of its weights become zero, and it is not drawn.
    return shares / wp.where(wp.abs(volume) > 1.0e-20, volume, 1.0e20)


@wp.func
def _cut(one: wp.vec3, other: wp.vec3, bounds: wp.vec4) -> wp.vec4:
    """Extend bounds in the image by the visible part of an edge."""
    a = one
    b = other
    if one[2] < _NEAR:
        a = one + (_NEAR - one[2]) / (other[2] - one[2]) * (other - one)
    elif other[2] < _NEAR:
        b = one + (_NEAR - one[2]) / (other[2] - one[2]) * (other - one)
    low = wp.vec2(wp.min(a[0] / a[2], b[0] / b[2]), wp.min(a[1] / a[2], b[1] / b[2]))
    high = wp.vec2(wp.max(a[0] / a[2], b[0] / b[2]), wp.max(a[1] / a[2], b[1] / b[2]))
    return wp.vec4(
        wp.min(bounds[0], low[0]), wp.min(bounds[1], low[1]), wp.max(bounds[2], high[0]), wp.max(bounds[3], high[1])
    )


@wp.func
def _draw_long(scene: DeviceScene, raster: Raster, step: int, row: int, face: int):
    """Draw a face that is cut by the near plane."""
    one = raster.matrices[row] * scene.points[scene.corners[face * 3]] + raster.offsets[row]
    two = raster.matrices[row] * scene.points[scene.corners[face * 3 + 1]] + raster.offsets[row]
    three = raster.matrices[row] * scene.points[scene.corners[face * 3 + 2]] + raster.offsets[row]
    bounds = wp.vec4(1.0e9, 1.0e9, -1.0e9, -1.0e9)
    if one[2] >= _NEAR or two[2] >= _NEAR:
        bounds = _cut(one, two, bounds)
    if two[2] >= _NEAR or three[2] >= _NEAR:
        bounds = _cut(two, three, bounds)
    if three[2] >= _NEAR or one[2] >= _NEAR:
        bounds = _cut(three, one, bounds)
    last_y = wp.int32(wp.min(bounds[3], float(raster.height - 1)))
    last_x = wp.int32(wp.min(bounds[2], float(raster.width - 1)))
    for y in range(wp.int32(wp.max(bounds[1], 0.0)), last_y + 1):
        for x in range(wp.int32(wp.max(bounds[0], 0.0)), last_x + 1):
            shares = long_shares(scene, raster, row, face, float(x) + 0.5, float(y) + 0.5)
            # The bounds are those of the visible part; the near plane itself is tested in each pixel.
            closeness = shares[0] + shares[1] + shares[2]
            if wp.min(shares) >= 0.0 and closeness > 0.0 and closeness < 1.0 / _NEAR:
                _keep(raster, (step * raster.height + y) * raster.width + x, closeness, face)


@wp.func
def _inverse(slope: float) -> float:
    # A side parallel to the line meets it far outside the image instead of causing a division by zero.
    return 1.0 / wp.where(slope >= 0.0, wp.max(slope, 1.0e-12), wp.min(slope, -1.0e-12))


@wp.func
def _span(span: wp.vec2, value: float, inverse: float) -> wp.vec2:
    """Return the part of an x interval in which ``value + x / inverse`` is at least zero."""
    root = -value * inverse
    return wp.vec2(
        wp.where(inverse > 0.0, wp.max(span[0], root), span[0]), wp.where(inverse > 0.0, span[1], wp.min(span[1], root))
    )


@wp.func
def _draw_face(scene: DeviceScene, raster: Raster, step: int, row: int, face: int):
    """Draw a face into the pixels whose centers it covers."""
    first = step * raster.vertex_rows
    one = raster.places[first + scene.corners[face * 3]]
    two = raster.places[first + scene.corners[face * 3 + 1]]
    three = raster.places[first + scene.corners[face * 3 + 2]]
    # Nearness 0 marks a vertex behind the near plane; such a face needs clipping, or is invisible as a whole.
    if wp.min(wp.min(one[2], two[2]), three[2]) <= 0.0:
        if wp.max(wp.max(one[2], two[2]), three[2]) > 0.0:
            _draw_long(scene, raster, step, row, face)
        return
    left = wp.min(wp.min(one[0], two[0]), three[0])
    right = wp.max(wp.max(one[0], two[0]), three[0])
    top = wp.min(wp.min(one[1], two[1]), three[1])
    bottom = wp.max(wp.max(one[1], two[1]), three[1])
    # Faces left of or above all pixel centers end here, because truncation would turn their negative end into pixel 0.
    if right < 0.5 - _SEAM or bottom < 0.5 - _SEAM:
        return
    first_x = wp.int32(wp.max(left + 0.5 - _SEAM, 0.0))
    first_y = wp.int32(wp.max(top + 0.5 - _SEAM, 0.0))
    last_x = wp.int32(wp.min(right - 0.5 + _SEAM, float(raster.width - 1)))
    last_y = wp.int32(wp.min(bottom - 0.5 + _SEAM, float(raster.height - 1)))
    if first_x > last_x or first_y > last_y:
        return
    a_x = two[0] - one[0]
    a_y = two[1] - one[1]
    b_x = three[0] - one[0]
    b_y = three[1] - one[1]
    area = a_x * b_y - a_y * b_x
    # Faces seen edge-on cover no pixel center.
    if wp.abs(area) < 1.0e-9:
        return
    inverse = 1.0 / area
    # This is the seam in barycentric units; it is symmetric, so that both faces of a shared edge cover its pixels.
    seam = _SEAM * (right - left + bottom - top) * wp.abs(inverse)
    # In the seam the plane of the face is extrapolated. Its nearness is limited to that of the corners, so that a face
    # seen nearly edge-on does not hide objects in front of it.
    nearest = wp.max(wp.max(one[2], two[2]), three[2])
    farthest = wp.min(wp.min(one[2], two[2]), three[2])
    # Barycentric coordinates are affine in the pixel; a pixel is covered where none is negative.
    slope = wp.vec3((a_y - b_y) * inverse, b_y * inverse, -a_y * inverse)
    rise = slope[1] * (two[2] - one[2]) + slope[2] * (three[2] - one[2])
    out = float(first_x) + 0.5 - one[0]
    rates = wp.vec3(0.0)
    wide = last_x - first_x
    if wide >= _NARROW:
        rates = wp.vec3(_inverse(slope[0]), _inverse(slope[1]), _inverse(slope[2]))
    for y in range(first_y, last_y + 1):
        down = float(y) + 0.5 - one[1]
        s = (out * b_y - down * b_x) * inverse
        t = (down * a_x - out * a_y) * inverse
        shares = wp.vec3(1.0 - s - t + seam, s + seam, t + seam)
        closeness = one[2] + s * (two[2] - one[2]) + t * (three[2] - one[2])
        index = (step * raster.height + y) * raster.width + first_x
        # Solving for the ends of a line costs three divisions, more than testing a few pixels.
        if wide < _NARROW:
            for x in range(wide + 1):
                if wp.min(shares + float(x) * slope) >= 0.0:
                    _keep(raster, index + x, wp.clamp(closeness + float(x) * rise, farthest, nearest), face)
        else:
            span = wp.vec2(0.0, float(wide))
            span = _span(_span(_span(span, shares[0], rates[0]), shares[1], rates[1]), shares[2], rates[2])
            if span[0] <= span[1]:
                begin = wp.int32(span[0])
                # Round the start of the span up: wp.int32 truncates.
                begin += wp.where(float(begin) < span[0], 1, 0)
                for x in range(begin, wp.int32(span[1]) + 1):
                    _keep(raster, index + x, wp.clamp(closeness + float(x) * rise, farthest, nearest), face)


@wp.kernel
def _draw_faces(scenes: wp.array(dtype=DeviceScene), raster: Raster, lanes: int):
    """Draw each face of the pieces that overlap the image.

    For height maps, backs of closed surfaces are skipped: the light is outside all meshes, so fronts hide them.
    """
    step, piece, lane = wp.tid()
    if raster.drawn[step * raster.piece_rows + piece] == wp.uint8(0):
        return
    scene = scenes[raster.layouts[step]]
    row = step * raster.mesh_rows + scene.piece_mesh[piece]
    towards = raster.matrices[row][2]
    for place in range(scene.piece_faces[piece] + lane, scene.piece_faces[piece + 1], lanes):
        if raster.perspective or wp.dot(scene.outward[place], towards) >= 0.0:
            _draw_face(scene, raster, step, row, place)


@wp.func
def face_number(key: wp.uint64) -> int:
    """Return the face of a pixel, or -1."""
    return wp.int32(wp.uint32(key & wp.uint64(0xFFFFFFFF))) - 1


@wp.func
def nearness(key: wp.uint64) -> float:
    """Return the nearness of a pixel; 0 for an empty one."""
    return wp.cast(wp.uint32(key >> wp.uint64(32)), wp.float32)


@wp.func
def corner_shares(scene: DeviceScene, raster: Raster, step: int, row: int, face: int, x: float, y: float) -> wp.vec3:
    """Return the barycentric coordinates of the visible point of a face at (x, y)."""
    first = step * raster.vertex_rows
    one = raster.places[first + scene.corners[face * 3]]
    two = raster.places[first + scene.corners[face * 3 + 1]]
    three = raster.places[first + scene.corners[face * 3 + 2]]
    shares = wp.vec3(0.0)
    if wp.min(wp.min(one[2], two[2]), three[2]) > 0.0:
        a_x = two[0] - one[0]
        a_y = two[1] - one[1]
        b_x = three[0] - one[0]
        b_y = three[1] - one[1]
        inverse = 1.0 / (a_x * b_y - a_y * b_x)
        # A pixel of the seam lies slightly outside the face and takes the value at its border.
        s = wp.clamp(((x - one[0]) * b_y - (y - one[1]) * b_x) * inverse, 0.0, 1.0)
        t = wp.clamp(((y - one[1]) * a_x - (x - one[0]) * a_y) * inverse, 0.0, 1.0 - s)
        # Weights by nearness make the interpolation perspective-correct; the return value normalizes them.
        shares = wp.vec3((1.0 - s - t) * one[2], s * two[2], t * three[2])
    else:
        shares = long_shares(scene, raster, row, face, x, y)
    return shares / (shares[0] + shares[1] + shares[2])


def draw(scenes: wp.array, raster: Raster, *, steps: int, device: wp.Device) -> None:
    """Draw all meshes that are shown at K steps; set ``places``, and ``nearest`` or ``tops``."""
    raster.places = wp.empty(steps * raster.vertex_rows, dtype=wp.vec3, device=device)
    pixels = steps * raster.height * raster.width
    raster.nearest = wp.zeros(pixels if raster.perspective else 0, dtype=wp.uint64, device=device)
    raster.tops = wp.zeros(0 if raster.perspective else pixels, dtype=wp.uint32, device=device)
    raster.drawn = wp.zeros(steps * raster.piece_rows, dtype=wp.uint8, device=device)
    # On a GPU neighboring threads share a piece; on a CPU one thread draws all of it.
    lanes = _LANES if device.is_cuda else 1
    if raster.piece_rows:
        for kernel in (_place_vertices, _draw_faces):
            wp.launch(kernel, dim=(steps, raster.piece_rows, lanes), inputs=[scenes, raster, lanes], device=device)
