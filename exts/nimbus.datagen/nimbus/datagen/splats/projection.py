# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Kernels of the splat rasterizer that cull and project splats; the kernels of ``splats.blending`` draw them.

The projection is that of 3D Gaussian splatting (Kerbl et al., 2023; Zwicker et al., 2001): the covariance of a Gaussian
is transformed by the Jacobian of the perspective projection at its mean, and 0.3 px² are added against aliasing.
Contributions below an opacity of 1/255 are not drawn.
"""

from __future__ import annotations

import warp as wp

wp.config.quiet = True

CHUNK = wp.constant(128)
"""Number of splats that are culled together."""
BLUR = wp.constant(0.3)
"""Variance added to each projected splat [px²]."""
FAINTEST = wp.constant(1.0 / 255.0)
"""Smallest opacity that a splat contributes to a pixel."""
REACH = wp.constant(3.3290429)
"""Distance in standard deviations at which an opacity of 1 has fallen to 1/255: sqrt(2 ln 255)."""
NEVER = wp.constant(3.0e38)
"""Depth assigned to splats that are not drawn."""


@wp.struct
class DeviceCloud:
    """Splats in the order of a space-filling curve."""

    count: wp.int32
    positions: wp.array(dtype=wp.vec3)
    diagonals: wp.array(dtype=wp.vec3)
    """xx, yy and zz of the covariances [m²]."""
    crosses: wp.array(dtype=wp.vec3)
    """xy, xz and yz of the covariances [m²]."""
    colors: wp.array(dtype=wp.vec4)
    """sRGB and opacity."""
    degree: wp.int32
    harmonics: wp.array(dtype=wp.float16)
    """Coefficients of one splat after another, each with its first, second and third channel."""
    middles: wp.array(dtype=wp.vec4)
    """Center and radius of a ball around each chunk of splats [m]."""
    is_antialiased: wp.bool


@wp.struct
class DeviceView:
    """Pinhole camera with OpenCV axes."""

    camera_R_world: wp.mat33
    position: wp.vec3
    focal: wp.vec2
    middle: wp.vec2
    width: wp.int32
    height: wp.int32
    near: wp.float32
    far: wp.float32


@wp.struct
class Projected:
    """Projected splats that may be visible in a view."""

    centers: wp.array(dtype=wp.vec2)
    conics: wp.array(dtype=wp.vec4)
    """xx, xy and yy of the inverse covariance [1/px²], and twice the logarithm of opacity over smallest opacity."""
    depths: wp.array(dtype=wp.float32)
    colors: wp.array(dtype=wp.vec4)
    boxes: wp.array(dtype=wp.vec4i)
    """First and last column, and first and last row of pixels; empty if the first is larger than the last."""


@wp.func
def may_show(view: DeviceView, place: wp.vec3, radius: float):
    """Return True if a ball intersects the view frustum (it may be True for a ball just outside a corner)."""
    seen = view.camera_R_world * (place - view.position)
    if seen[2] + radius < view.near or seen[2] - radius > view.far:
        return False
    # These are the signed distances to the four side planes of the frustum, which contain the camera.
    left = view.middle[0]
    right = float(view.width) - left
    top = view.middle[1]
    bottom = float(view.height) - top
    fx = view.focal[0]
    fy = view.focal[1]
    if -seen[0] * fx - seen[2] * left > radius * wp.sqrt(fx * fx + left * left):
        return False
    if seen[0] * fx - seen[2] * right > radius * wp.sqrt(fx * fx + right * right):
        return False
    if -seen[1] * fy - seen[2] * top > radius * wp.sqrt(fy * fy + top * top):
        return False
    if seen[1] * fy - seen[2] * bottom > radius * wp.sqrt(fy * fy + bottom * bottom):
        return False
    return True


@wp.kernel
def cull_chunks(cloud: DeviceCloud, view: DeviceView, shown: wp.array(dtype=wp.int32)):
    """Flag the chunks that may contain visible splats."""
    chunk = wp.tid()
    ball = cloud.middles[chunk]
    # The blur enlarges a splat by up to 4 px; in space, this is largest at the far side of the ball.
    reach = ball[3] + 4.0 * (wp.length(wp.vec3(ball[0], ball[1], ball[2]) - view.position) + ball[3]) / view.focal[0]
    shown[chunk] = wp.where(may_show(view, wp.vec3(ball[0], ball[1], ball[2]), reach), 1, 0)


@wp.kernel
def cull_splats(
    cloud: DeviceCloud, view: DeviceView, chunks: wp.array(dtype=wp.int32), shown: wp.array(dtype=wp.int32)
):
    """Flag the splats in some chunks that may be visible."""
    thread = wp.tid()
    splat = chunks[thread // CHUNK] * CHUNK + thread % CHUNK
    flag = wp.int32(0)
    if splat < cloud.count:
        place = cloud.positions[splat]
        spread = cloud.diagonals[splat]
        depth = wp.dot(view.camera_R_world[2], place - view.position)
        if depth > view.near and depth < view.far:
            reach = (
                REACH * wp.sqrt(spread[0] + spread[1] + spread[2])
                + 2.0 * wp.length(place - view.position) / view.focal[0]
            )
            if may_show(view, place, reach):
                flag = 1
    shown[thread] = flag


@wp.kernel
def collect(flags: wp.array(dtype=wp.int32), places: wp.array(dtype=wp.int32), found: wp.array(dtype=wp.int32)):
    """List the flagged entries in order; ``places`` is the inclusive scan of the flags."""
    thread = wp.tid()
    if flags[thread] == 1:
        found[places[thread] - 1] = thread


@wp.func
def harmonic_color(cloud: DeviceCloud, splat: int, towards: wp.vec3):
    """Sum the real spherical harmonics of degrees 1 to 3 for a direction of unit length."""
    x = towards[0]
    y = towards[1]
    z = towards[2]
    count = (cloud.degree + 1) * (cloud.degree + 1) - 1
    total = wp.vec3(0.0, 0.0, 0.0)
    for channel in range(3):
        k = (splat * 3 + channel) * count
        sh = cloud.harmonics
        part = 0.4886025119029199 * (-y * float(sh[k]) + z * float(sh[k + 1]) - x * float(sh[k + 2]))
        if cloud.degree > 1:
            part += 1.0925484305920792 * (x * y * float(sh[k + 3]) - y * z * float(sh[k + 4]))
            part += 0.31539156525252005 * (2.0 * z * z - x * x - y * y) * float(sh[k + 5])
            part += -1.0925484305920792 * x * z * float(sh[k + 6])
            part += 0.5462742152960396 * (x * x - y * y) * float(sh[k + 7])
        if cloud.degree > 2:
            part += -0.5900435899266435 * y * (3.0 * x * x - y * y) * float(sh[k + 8])
            part += 2.890611442640554 * x * y * z * float(sh[k + 9])
            part += -0.4570457994644658 * y * (4.0 * z * z - x * x - y * y) * float(sh[k + 10])
            part += 0.3731763325901154 * z * (2.0 * z * z - 3.0 * x * x - 3.0 * y * y) * float(sh[k + 11])
            part += -0.4570457994644658 * x * (4.0 * z * z - x * x - y * y) * float(sh[k + 12])
            part += 1.445305721320277 * z * (x * x - y * y) * float(sh[k + 13])
            part += -0.5900435899266435 * x * (x * x - 3.0 * y * y) * float(sh[k + 14])
        total[channel] = part
    return total


@wp.kernel
def project(
    cloud: DeviceCloud,
    view: DeviceView,
    chunks: wp.array(dtype=wp.int32),
    shown: wp.array(dtype=wp.int32),
    numbers: wp.array(dtype=wp.int32),
    out: Projected,
):
    """Project the flagged splats."""
    row = wp.tid()
    splat = chunks[shown[row] // CHUNK] * CHUNK + shown[row] % CHUNK
    offset = cloud.positions[splat] - view.position
    seen = view.camera_R_world * offset
    depth = seen[2]
    closeness = 1.0 / depth
    color = cloud.colors[splat]
    # The slope is limited to 1.15 times the image, because the Jacobian grows without limit beyond it.
    slope_x = wp.clamp(
        seen[0] * closeness,
        -(view.middle[0] + 0.15 * float(view.width)) / view.focal[0],
        (1.15 * float(view.width) - view.middle[0]) / view.focal[0],
    )
    slope_y = wp.clamp(
        seen[1] * closeness,
        -(view.middle[1] + 0.15 * float(view.height)) / view.focal[1],
        (1.15 * float(view.height) - view.middle[1]) / view.focal[1],
    )
    across = view.focal[0] * closeness * (view.camera_R_world[0] - slope_x * view.camera_R_world[2])
    down = view.focal[1] * closeness * (view.camera_R_world[1] - slope_y * view.camera_R_world[2])
    diagonal = cloud.diagonals[splat]
    cross = cloud.crosses[splat]
    matrix = wp.mat33(diagonal[0], cross[0], cross[1], cross[0], diagonal[1], cross[2], cross[1], cross[2], diagonal[2])
    half = matrix * across
    xx = wp.dot(across, half)
    xy = wp.dot(down, half)
    yy = wp.dot(down, matrix * down)
    # For a very thin splat, rounding can make the determinant negative.
    sharp = wp.max(xx * yy - xy * xy, 0.0)
    xx += BLUR
    yy += BLUR
    area = xx * yy - xy * xy
    opacity = color[3]
    if cloud.is_antialiased:
        # The blur widens a splat; the opacity is reduced so that its total light stays the same.
        opacity *= wp.sqrt(sharp / area)
    numbers[row] = row
    out.depths[row] = NEVER
    out.boxes[row] = wp.vec4i(1, 0, 1, 0)
    if opacity >= FAINTEST:
        level = 2.0 * wp.log(opacity / FAINTEST)
        center = wp.vec2(
            view.focal[0] * seen[0] * closeness + view.middle[0], view.focal[1] * seen[1] * closeness + view.middle[1]
        )
        wide = wp.sqrt(level * xx)
        high = wp.sqrt(level * yy)
        box = wp.vec4i(
            # The bounds are limited before the conversion to integers, which would overflow for splats far outside the
            # image.
            wp.max(int(wp.ceil(wp.max(center[0] - wide, -1.0) - 0.5)), 0),
            wp.min(int(wp.floor(wp.min(center[0] + wide, float(view.width)) - 0.5)), view.width - 1),
            wp.max(int(wp.ceil(wp.max(center[1] - high, -1.0) - 0.5)), 0),
            wp.min(int(wp.floor(wp.min(center[1] + high, float(view.height)) - 0.5)), view.height - 1),
        )
        if box[0] <= box[1] and box[2] <= box[3]:
            out.boxes[row] = box
            out.depths[row] = depth
            out.centers[row] = center
            out.conics[row] = wp.vec4(yy / area, -xy / area, xx / area, level)
            rgb = wp.vec3(color[0], color[1], color[2])
            if cloud.degree > 0:
                rgb += harmonic_color(cloud, splat, wp.normalize(offset))
            out.colors[row] = wp.vec4(wp.max(rgb[0], 0.0), wp.max(rgb[1], 0.0), wp.max(rgb[2], 0.0), opacity)
