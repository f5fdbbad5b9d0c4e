"""Conversion of RTX annotator buffers to stored frames, without Kit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.episode.observation import CameraFrames, Labels
from nimbus.datagen.geometry.cameras import intrinsics, world_T_camera
from nimbus.datagen.render.camera_model.lens import boxes_of
from nimbus.datagen.usd.stacked_stage import RegionPaths, body_prim


def frames_from_buffers(
    buffers: Mapping[str, NDArray],
    instance: NDArray[np.uint8],
    labels: Labels,
    camera: Camera,
    *,
    eyes: NDArray[np.float64],
    turns: NDArray[np.float64],
    far: float,
) -> CameraFrames:
    """Return one camera's frames of K steps.

    Args:
        buffers: (K, H, W, C) by annotator: ``rgb``, ``distance_to_image_plane``, ``normals``.
        instance: (K, H, W) index into the instance names.
        labels: Meaning of the indices.
        camera: The camera.
        eyes: (K, 3) camera positions in the region's frame, which equals the world frame [m].
        turns: (K, 4) orientations of the camera, wxyz, OpenGL axes.
        far: Far clipping distance [m].
    """
    depth = np.asarray(buffers["distance_to_image_plane"], dtype=np.float32).reshape(instance.shape)
    hit = np.isfinite(depth) & (depth > 0) & (depth <= far)
    normals = np.asarray(buffers["normals"], dtype=np.float32)[..., :3]
    instance = np.where(hit, instance, 0).astype(np.uint8)
    count = len(labels.instance_names)
    return CameraFrames(
        rgb=np.ascontiguousarray(np.asarray(buffers["rgb"])[..., :3], dtype=np.uint8),
        depth=np.where(hit, depth, 0.0).astype(np.float32),
        instance=instance,
        semantic=labels.instance_semantics[instance],
        normals=np.where(hit[..., None], np.rint(normals * 127), 0).astype(np.int8),
        boxes_2d=boxes_of(instance, count),
        visibility=np.full((len(instance), count), np.nan, dtype=np.float32),
        intrinsics=intrinsics(camera),
        world_T_camera=world_T_camera(eyes, turns),
    )


def instance_indices(
    ids: NDArray[np.uint32],
    paths: Mapping[Any, str],
    regions: Sequence[RegionPaths],
    labels: Labels,
    *,
    instance_of: Mapping[str, str],
) -> NDArray[np.uint8]:
    """Return (K, H, W) indices into the instance names, from the ids that the annotator gives to prims.

    Args:
        ids: (K, H, W, 1) or (K, H, W) ids of the annotator.
        paths: Prim path by id, from the annotator's ``idToLabels``.
        regions: Prims of the K regions.
        labels: Meaning of the indices.
        instance_of: Instance by path below a region: ``body_items_0``, ``scene/table_surface``.
    """
    index = {name: number for number, name in enumerate(labels.instance_names)}
    number_of = {place: index[name] for place, name in instance_of.items()}
    return _numbers(ids, paths, regions, number_of, missing=0).astype(np.uint8)


def body_indices(
    ids: NDArray[np.uint32], paths: Mapping[Any, str], regions: Sequence[RegionPaths], names: Sequence[str]
) -> NDArray[np.int16]:
    """Return (K, H, W) rows of the visible bodies; -1 for static parts.

    Args:
        ids: (K, H, W, 1) or (K, H, W) ids of the annotator.
        paths: Prim path by id.
        regions: Prims of the K regions.
        names: B body names.
    """
    number_of = {body_prim(name): row for row, name in enumerate(names)}
    return _numbers(ids, paths, regions, number_of, missing=-1)


def _numbers(
    ids: NDArray[np.uint32],
    paths: Mapping[Any, str],
    regions: Sequence[RegionPaths],
    number_of: Mapping[str, int],
    *,
    missing: int,
) -> NDArray[np.int16]:
    """Return numbers (K, H, W) for ids; each is the number of the deepest known path that contains the prim."""
    known = {int(number): path for number, path in paths.items() if str(path).startswith("/")}
    table = np.full(int(max([*known, *np.unique(ids)], default=0)) + 1, missing, dtype=np.int16)
    roots = {region.root for region in regions}
    for number, path in known.items():
        parts = path.split("/")
        if "/".join(parts[:4]) in roots:
            below = "/".join(parts[4:])
            places = [place for place in number_of if below == place or below.startswith(place + "/")]
            if places:
                table[number] = number_of[max(places, key=len)]
    return table[np.asarray(ids).reshape(*ids.shape[:3])]
