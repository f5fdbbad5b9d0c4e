"""Reference rendering of splats in double precision, and writers of file formats that Nimbus only reads."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import AnyArray, FloatArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.geometry import cameras, transforms
from nimbus.datagen.splats.cloud import FIRST_HARMONIC, SplatCloud, unit_quaternions


def random_cloud(count: int, *, seed: int = 0, degree: int = 0, antialiased: bool = False) -> SplatCloud:
    """Return splats of all shapes in a cube of 4 m."""
    rng = np.random.default_rng(seed)
    harmonics = rng.normal(0, 0.1, (count, 3, (degree + 1) ** 2 - 1)).astype(np.float16) if degree else None
    return SplatCloud(
        positions=rng.uniform(-2, 2, (count, 3)).astype(np.float32),
        scales=np.exp(rng.uniform(-5, -1.5, (count, 3))).astype(np.float32),
        wxyz=unit_quaternions(rng.normal(size=(count, 4))),
        opacities=rng.uniform(0.1, 0.99, count).astype(np.float32),
        colors=rng.uniform(0, 1, (count, 3)).astype(np.float32),
        harmonics=harmonics,
        is_antialiased=antialiased,
    )


def watching_camera(width: int = 64, height: int = 48) -> tuple[Camera, FloatArray, FloatArray]:
    """Return a camera with a pose from which the cube of :func:`random_cloud` fills the image."""
    camera = Camera(
        name="front", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=1.0, width=width, height=height
    )
    position = np.array([-3.5, -1.0, 0.7])
    return camera, position[None], np.array([transforms.look_at(position, (0.0, 0.0, 0.0))])


def project_exactly(cloud: SplatCloud, camera: Camera, world_T_camera: FloatArray) -> dict[str, FloatArray]:
    """Project all splats in double precision (Kerbl et al. 2023, section 4): centers, conics, depths, sharpness."""
    matrix, seen = cameras.intrinsics(camera), (cloud.positions - world_T_camera[:3, 3]) @ world_T_camera[:3, :3]
    focal, middle = np.diag(matrix)[:2], matrix[:2, 2]
    depths = seen[:, 2]
    size = np.array([camera.width, camera.height])
    slopes = np.clip(seen[:, :2] / depths[:, None], -(middle + 0.15 * size) / focal, (1.15 * size - middle) / focal)
    jacobian = np.zeros((len(cloud), 2, 3))
    jacobian[:, [0, 1], [0, 1]] = focal / depths[:, None]
    jacobian[:, :, 2] = -focal * slopes / depths[:, None]
    axes = transforms.quat_to_matrix(cloud.wxyz.astype(float)) * cloud.scales[:, None, :].astype(float)
    half = jacobian @ world_T_camera[:3, :3].T @ axes
    covariance = half @ np.swapaxes(half, -1, -2)
    sharpness = np.linalg.det(covariance).astype(np.float64)
    covariance = covariance + 0.3 * np.eye(2)
    conic = np.linalg.inv(covariance).astype(np.float64)
    return {
        "centers": seen[:, :2] / depths[:, None] * focal + middle,
        "conics": conic[:, [0, 0, 1], [0, 1, 1]],
        "depths": depths,
        "sharpness": np.sqrt(np.maximum(sharpness, 0) / np.linalg.det(covariance)),
    }


def blend_exactly(
    cloud: SplatCloud, camera: Camera, world_T_camera: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Blend all splats at all pixels in double precision: colors (H, W, 3), opacity and median depth (H, W)."""
    flat = project_exactly(cloud, camera, world_T_camera)
    x, y = np.meshgrid(np.arange(camera.width) + 0.5, np.arange(camera.height) + 0.5)
    through, color = np.ones(x.shape), np.zeros((*x.shape, 3))
    depth = np.zeros(x.shape)
    opacities = cloud.opacities * (flat["sharpness"] if cloud.is_antialiased else 1.0)
    for row in np.argsort(flat["depths"], kind="stable"):
        if flat["depths"][row] <= 0.05:
            continue
        dx, dy = x - flat["centers"][row, 0], y - flat["centers"][row, 1]
        a, b, c = flat["conics"][row]
        alpha = np.minimum(opacities[row] * np.exp(-0.5 * (a * dx**2 + 2 * b * dx * dy + c * dy**2)), 0.999)
        weight = np.where((alpha >= 1 / 255) & (through >= 1e-4), alpha * through, 0.0)
        direction = cloud.positions[row] - world_T_camera[:3, 3]
        color += weight[..., None] * harmonic_color(cloud, row, direction / np.linalg.norm(direction))
        depth[(through >= 0.5) & (through - weight < 0.5)] = flat["depths"][row]
        through -= weight
    return color, 1 - through, depth


def harmonic_color(cloud: SplatCloud, row: int, direction: FloatArray) -> FloatArray:
    """Return a splat's color by SciPy's real harmonics, in the order and with the signs of Gaussian splatting."""
    from scipy.special import sph_harm_y

    color = cloud.colors[row].astype(float)
    polar, turn = np.arccos(np.clip(direction[2], -1, 1)), np.arctan2(direction[1], direction[0])
    for degree in range(1, cloud.degree + 1):
        for order in range(-degree, degree + 1):
            value = complex(sph_harm_y(degree, abs(order), polar, turn))
            part = value.real if order >= 0 else value.imag
            basis = part if order == 0 else np.sqrt(2) * part
            assert cloud.harmonics is not None
            color = color + basis * cloud.harmonics[row, :, degree**2 - 1 + degree + order].astype(float)
    return np.maximum(color, 0.0).astype(np.float64)


def write_spz(cloud: SplatCloud, path: Path, *, version: int = 3, fraction: int = 12) -> None:
    """Write a cloud in the format of Niantic's README and header."""
    count = len(cloud)
    if version == 1:
        places = cloud.positions.astype("<f2").tobytes()
    else:
        fixed = np.round(cloud.positions * (1 << fraction)).astype("<i4").reshape(-1, 1)
        places = fixed.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    xyzw = np.roll(cloud.wxyz.astype(float), -1, axis=1)
    xyzw *= np.where(xyzw[:, 3:] < 0, -1.0, 1.0)
    turns = np.round((xyzw[:, :3] + 1) * 127.5).astype(np.uint8).tobytes()
    if version >= 3:
        turns = b"".join(_smallest_three(row) for row in np.roll(cloud.wxyz.astype(float), -1, axis=1))
    harmonics = b""
    if cloud.harmonics is not None:
        values = np.round(cloud.harmonics.astype(float) * 128 + 128).clip(0, 255).astype(np.uint8)
        harmonics = np.swapaxes(values, 1, 2).tobytes()
    blocks = [
        places,
        np.round(cloud.opacities * 255).astype(np.uint8).tobytes(),
        np.round(((cloud.colors - 0.5) / FIRST_HARMONIC * 0.15 + 0.5) * 255).clip(0, 255).astype(np.uint8).tobytes(),
        np.round((np.log(cloud.scales) + 10) * 16).clip(0, 255).astype(np.uint8).tobytes(),
        turns,
        harmonics,
    ]
    flags = int(cloud.is_antialiased)
    if version < 4:
        header = struct.pack("<4sIIBBBB", b"NGSP", version, count, cloud.degree, fraction, flags, 0)
        path.write_bytes(gzip.compress(header + b"".join(blocks)))
        return
    import pyarrow

    blocks = [block for block in blocks if block]
    packed = [pyarrow.compress(block, codec="zstd", asbytes=True) for block in blocks]
    header = struct.pack("<4sIIBBBBI12x", b"NGSP", 4, count, cloud.degree, fraction, flags, len(blocks), 32)
    table = b"".join(struct.pack("<QQ", len(one), len(other)) for one, other in zip(packed, blocks, strict=True))
    path.write_bytes(header + table + b"".join(packed))


def _smallest_three(xyzw: FloatArray) -> bytes:
    place = int(np.argmax(np.abs(xyzw)))
    word, sign = place, xyzw[place] < 0
    for part in range(4):
        if part != place:
            size = int(511 * abs(xyzw[part]) / np.sqrt(0.5) + 0.5)
            word = (word << 10) | (int((xyzw[part] < 0) != sign) << 9) | size
    return struct.pack("<I", word)


def write_compressed_ply(cloud: SplatCloud, path: Path) -> None:
    """Write a cloud as SuperSplat does: bounds for every 256 splats, and four words per splat."""
    rows, bounds = [], []
    for start in range(0, len(cloud), 256):
        block = slice(start, start + 256)
        place, scale = cloud.positions[block].astype(float), np.log(cloud.scales[block].astype(float))
        color = cloud.colors[block].astype(float)
        low, high = ([np.min(v, 0) for v in (place, scale, color)], [np.max(v, 0) for v in (place, scale, color)])
        bounds.append(np.concatenate([low[0], high[0], low[1], high[1], low[2], high[2]]))
        share = [
            (v - lo) / np.maximum(hi - lo, 1e-9) for v, lo, hi in zip((place, scale, color), low, high, strict=True)
        ]
        words = [_pack(share[0], (11, 10, 11)), _pack_turns(cloud.wxyz[block]), _pack(share[1], (11, 10, 11))]
        rgba = np.column_stack([share[2], cloud.opacities[block]])
        rows.append(np.stack([*words, _pack(rgba, (8, 8, 8, 8))], axis=1))
    ranges = [f"{end}_{axis}" for end in ("min", "max") for axis in "xyz"]
    ranges += [f"{end}_scale_{axis}" for end in ("min", "max") for axis in "xyz"]
    ranges += [f"{end}_{axis}" for end in ("min", "max") for axis in "rgb"]
    lines = ["ply", "format binary_little_endian 1.0", f"element chunk {len(bounds)}"]
    lines += [f"property float {name}" for name in ranges] + [f"element vertex {len(cloud)}"]
    lines += [f"property uint packed_{name}" for name in ("position", "rotation", "scale", "color")]
    content = np.array(bounds, "<f4").tobytes() + np.concatenate(rows).astype("<u4").tobytes()
    if cloud.harmonics is not None:
        lines += [f"element sh {len(cloud)}"]
        lines += [f"property uchar f_rest_{number}" for number in range(3 * cloud.harmonics.shape[2])]
        content += np.round((cloud.harmonics.astype(float) + 4) * 255 / 8).clip(0, 255).astype(np.uint8).tobytes()
    path.write_bytes("\n".join([*lines, "end_header", ""]).encode() + content)


def _pack(shares: AnyArray, bits: tuple[int, ...]) -> AnyArray:
    word = np.zeros(len(shares), np.uint32)
    for column, width in zip(shares.T, bits, strict=True):
        word = (word << np.uint32(width)) | np.round(column * ((1 << width) - 1)).astype(np.uint32)
    return word


def _pack_turns(wxyz: AnyArray) -> AnyArray:
    words = []
    for row in np.asarray(wxyz, float):
        place = int(np.argmax(np.abs(row)))
        others = np.delete(row * np.sign(row[place]), place) / np.sqrt(2) + 0.5
        word = place
        for value in others:
            word = (word << 10) | round(value * 1023)
        words.append(word)
    return np.array(words, np.uint32)
