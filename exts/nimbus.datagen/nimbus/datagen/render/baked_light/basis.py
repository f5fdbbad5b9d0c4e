"""Light basis of a scene: the contribution of each lamp and each part of the sky, at strength 1, to every sample."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import AnyArray, Float32Array, FloatArray, IntArray
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.kept_arrays import read_arrays
from nimbus.datagen.progress import allow
from nimbus.datagen.render.baked_light.face_grids import FaceGrid, place_grids
from nimbus.datagen.render.baked_light.hidden_samples import hidden_samples, replacements
from nimbus.datagen.render.baked_light.light_basis import GROUPS, PLACES, SKY_BINS, LightBasis

if TYPE_CHECKING:
    from nimbus.datagen.render.baked_light.trace import BakeTracer

LIGHT_VERSION = 2
"""Version of the bake; it is raised when its results change."""
_AWAY = 1.1
"""Distance of lamps from the workplace along x and along y [m]; it is smaller where a wall is nearer."""
_HEIGHT = 2.0
"""Height of lamps above the workplace when no ceiling is lower [m]."""
_FREE, _HIGHEST = 0.8, 4.0
"""Range above the workplace in which a ceiling is searched for [m]."""
_SIDE = 0.6
"""Side of a square lamp [m]."""
_NEAR, _FINE, _COARSE = 1.3, 0.06, 0.15
"""Distance from the workplace within which samples are finer, and the fine and coarse spacing [m]."""
_PROBE = 0.15
"""Height above the workplace at which the light for moving bodies is sampled [m]."""
_USUAL_DROP = 1.6
"""Distance below a home's lamp at which strength 1 gives as much light as a directional light of color 1 [m]."""
_SLOW = 240.0
"""Upper bound of a bake's duration, kernel compilation included [s]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StillScene:
    """Static faces, F of them, with their groups."""

    corners: FloatArray
    """(F, 3, 3) corners of the faces [m]."""
    normals: FloatArray
    """(F, 3, 3) unit normals at the corners."""
    groups: NDArray[np.uint8]
    """(F,) group of surfaces of each face, below GROUPS."""
    workplace: FloatArray
    """(3,) center of the work surface [m]."""
    lamps: FloatArray | None = None
    """(L, 3) centers of the scene's own lamps [m]; when None, PLACES lamps are placed around the workplace."""
    lamp_sources: IntArray | None = None
    """(L,) source, below PLACES, of each lamp."""


def light_basis(scene: StillScene) -> LightBasis:
    """Return the basis of a scene, made on first use and kept between runs."""
    content = [scene.corners.astype(np.float32), scene.normals.astype(np.float32), scene.groups, scene.workplace]
    content += [] if scene.lamps is None or scene.lamp_sources is None else [scene.lamps, scene.lamp_sources]
    # The bake is keyed by content, so that any change of the geometry makes a new one.
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(values).tobytes() for values in content)).hexdigest()
    path = cache_folder("light") / f"{digest[:32]}-{LIGHT_VERSION}.npz"
    names = [field.name for field in fields(LightBasis)]
    kept = read_arrays(path) or {}
    if not kept.keys() >= set(names):
        with allow(_SLOW):
            _save(path, bake(scene))
        kept = read_arrays(path) or {}
    return LightBasis(**{name: kept[name] for name in names})


def _save(path: Path, basis: LightBasis) -> None:
    with writing(path.parent), replacing(path, durable=False, shared=True) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **{field.name: getattr(basis, field.name) for field in fields(basis)})


def bake(scene: StillScene) -> LightBasis:
    """Trace the light of a scene; equal scenes give identical bytes."""
    from scipy.sparse import csr_array

    # The tracer is imported here, so that a run that bakes nothing does not compile its kernels.
    from nimbus.datagen.render.baked_light.trace import RAYS, BakeTracer

    corners, tracer = scene.corners, BakeTracer(scene.corners)
    near = _NEAR if scene.lamps is None else 0.0
    spacing = np.where(_distance(corners, scene.workplace) < near, _FINE, _COARSE)
    grid, points, normals = place_grids(corners, scene.normals, spacing)
    group, is_open = _sample_groups(grid, scene), _open_faces(scene)
    shining = len(points)
    samples = grid.samples.copy()
    counts = (grid.steps + 1) * (grid.steps + 2) // 2
    # Points on light sources such as windows share one emissive sample, whose light is set when sources are weighed.
    samples[np.repeat(is_open, counts)] = shining
    probes = np.repeat(np.eye(3), 2, axis=0) * np.tile([[1.0], [-1.0]], (3, 1))
    above = scene.workplace + (0.0, 0.0, _PROBE)
    points = np.concatenate([points, np.tile(above, (7, 1))]).astype(np.float32)
    normals = np.concatenate([normals, probes[4:5], probes]).astype(np.float32)
    group = np.concatenate([group, np.full(7, GROUPS, dtype=np.uint8)])
    lamps, lit = _light_of_lamps(scene, tracer, points, normals)
    placed = FaceGrid(steps=grid.steps, start=grid.start, samples=samples)
    seen, behind = tracer.look_around(points, normals, placed, is_open, scene.normals.mean(axis=1))
    sky = np.stack([np.mean(seen == -1 - part, axis=1) for part in range(SKY_BINS)], axis=1)
    if scene.lamps is not None:
        # Scenes with a workplace keep their samples: their recorded looks are fixed, and their parts rarely overlap.
        hidden = hidden_samples(behind, lit, sky) & (group < GROUPS) & (np.arange(len(group)) < shining)
        stands_for = replacements(hidden, points, normals, group)
        samples, seen = stands_for[samples].astype(np.int32), np.where(seen >= 0, stands_for[seen], seen)
    direct = np.concatenate([lit, sky], axis=1).astype(np.float32)
    surface = seen >= 0
    rows = np.repeat(np.arange(len(seen)), surface.sum(axis=1))
    values = np.full(len(rows), 1.0 / RAYS, dtype=np.float32)
    gather = csr_array((values, (rows, seen[surface])), shape=(len(seen), len(seen)))
    mask = (group[:, None] == np.arange(GROUPS)).astype(np.float32)
    # Bounces are kept by group, so that a new color of a surface needs a new sum but no new bake.
    bounce = [gather @ (direct * mask[:, [one]]) for one in range(GROUPS)]
    return LightBasis(
        steps=grid.steps,
        start=grid.start,
        samples=samples,
        direct=direct.astype(np.float16),
        bounce=np.stack(bounce, axis=-1).astype(np.float16),
        share=(gather @ mask).astype(np.float16),
        weight=np.asarray(gather.sum(axis=0), dtype=np.float32),
        group=group,
        lamps=lamps,
        workplace=np.asarray(scene.workplace, dtype=float),
    )


def _light_of_lamps(
    scene: StillScene, tracer: BakeTracer, points: Float32Array, normals: Float32Array
) -> tuple[FloatArray, Float32Array]:
    """Return lamp positions (L, 3) [m], and the light of each source on points (S, PLACES)."""
    lamps = _lamp_places(scene, tracer) if scene.lamps is None else scene.lamps
    below = scene.workplace if scene.lamps is None else lamps[0] - (0.0, 0.0, _USUAL_DROP)
    unblocked = type(tracer)(np.full((1, 3, 3), -1e3) + np.eye(3)).see_lamps(
        np.asarray(below)[None].astype(np.float32), np.array([[0, 0, 1]], dtype=np.float32), lamps, _SIDE
    )
    lit = tracer.see_lamps(points, normals, lamps, _SIDE)
    if scene.lamp_sources is None:
        return lamps, (lit / np.maximum(unblocked, 1e-6)).astype(np.float32)
    joined = np.zeros((len(points), PLACES), dtype=np.float32)
    for source in range(PLACES):
        joined[:, source] = lit[:, scene.lamp_sources == source].sum(axis=1)
    return lamps, (joined / max(float(unblocked[0, 0]), 1e-6)).astype(np.float32)


def group_of(instance: str) -> int:
    """Return the group of surfaces of an instance: floor, walls, table, ceiling, or everything else."""
    return {"floor": 0, "backdrop": 1, "table": 2}.get(instance, 3 if instance.startswith("ceiling") else 4)


def join_faces(parts: Sequence[tuple[AnyArray, AnyArray, str]], workplace: FloatArray) -> StillScene:
    """Join faces (f, 3, 3), normals at their corners (f, 3, 3), and the instances that they belong to."""
    return StillScene(
        corners=np.concatenate([corners for corners, _, _ in parts]).astype(float),
        normals=np.concatenate([normals for _, normals, _ in parts]).astype(float),
        groups=np.concatenate([np.full(len(c), group_of(name), dtype=np.uint8) for c, _, name in parts]),
        workplace=np.asarray(workplace, dtype=float),
    )


def _distance(corners: FloatArray, place: FloatArray) -> FloatArray:
    """Return the distance (F,) from the bounding boxes of faces to a point [m]."""
    nearest = np.clip(place, corners.min(axis=1), corners.max(axis=1))
    return np.linalg.norm(nearest - place, axis=1)


def _sample_groups(grid: FaceGrid, scene: StillScene) -> NDArray[np.uint8]:
    counts = (grid.steps + 1) * (grid.steps + 2) // 2
    group = np.zeros(int(grid.samples.max()) + 1, dtype=np.uint8)
    group[grid.samples] = np.repeat(scene.groups, counts)
    return group


def _open_faces(scene: StillScene) -> NDArray[np.bool_]:
    """Return (F,) True for faces with normals far off their plane, which mark light sources such as windows."""
    one, other = (scene.corners[:, place] - scene.corners[:, 0] for place in (1, 2))
    normals = np.cross(one, other)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    across = np.abs(np.einsum("fd,fkd->fk", normals, scene.normals))
    return np.all(across < 0.5, axis=1) & np.all(np.ptp(scene.normals, axis=1) < 1e-3, axis=1)


def _lamp_places(scene: StillScene, tracer: BakeTracer) -> FloatArray:
    """Return (PLACES, 3) lamp positions under the ceiling and within the walls, around the workplace [m]."""
    place, to_walls = scene.workplace, np.array([_SIDE, _SIDE, 0.0])
    low = np.minimum(scene.corners.min(axis=(0, 1)) + to_walls, place)
    high = np.maximum(scene.corners.max(axis=(0, 1)) - to_walls, place)
    sides = np.array([(x, y, 0.0) for x in (_AWAY, -_AWAY) for y in (_AWAY, -_AWAY)])
    feet = np.clip(place + sides, low, high) * (1.0, 1.0, 0.0) + (0.0, 0.0, place[2] + _FREE)
    rise = tracer.rise_above(feet).astype(float)
    feet[:, 2] += np.where(rise < _HIGHEST, rise - 0.03, _HEIGHT - _FREE)
    return feet
