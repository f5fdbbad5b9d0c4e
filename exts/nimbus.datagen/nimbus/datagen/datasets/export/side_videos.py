"""Side files of an export: depth, masks and annotations beside a LeRobot dataset, mostly as lossless videos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.side_tables import describe_side_table, has_table, write_side_table
from nimbus.datagen.datasets.export.source import ExportItem, Source
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import make_place
from nimbus.datagen.store.episode_file.read import EpisodeFile

SIDE_INFO = "side/info.json"
SIDE_NAMES = "side/names.jsonl"
SIDE_VIDEO = "side/{kind}/{camera}/episode_{episode_index:06d}.mkv"
SIDE_KINDS = {"depth": ("depth",), "masks": ("instance", "semantic"), "annotations": ("flow",)}
"""Kinds of images in an episode file, by flag of the export."""
_ABOUT: dict[str, dict[str, str]] = {
    "depth": {"pix_fmt": "gray16le", "unit": "mm", "zero": "nothing was hit"},
    "instance": {"pix_fmt": "gray", "unit": "", "names": f"{SIDE_NAMES}: instance_names"},
    "semantic": {"pix_fmt": "gray", "unit": "", "names": f"{SIDE_NAMES}: semantic_names"},
    "flow": {"pix_fmt": "gray16le", "unit": "px", "values": "bits of float16", "rows": "right, and below it down"},
}
_CODEC = "ffv1"
_BLOCK = 32
"""Number of frames read at a time."""


def check_side_videos(source: Source, asked: tuple[str, ...], *, to: str) -> None:
    """Check that a dataset contains what is requested, and that the format supports side files.

    Args:
        source: Dataset to export.
        asked: Keys of :data:`SIDE_KINDS`.
        to: Format of the export.

    Raises:
        InputError: An episode lacks requested images, or the format does not support side videos.
    """
    if asked and not to.startswith("lerobot"):
        raise InputError(f"{to} does not support side videos", where=f"--{asked[0]}", instead="export to lerobot")
    for item in source.items if asked else ():
        if not item.success:
            continue  # depth of failed attempts is not stored
        with EpisodeFile(item.path) as episode:
            for name in asked:
                instead = "create the dataset with cameras that store it, and without --images none"
                has = [set(SIDE_KINDS[name]) <= set(episode.modalities(camera)) for camera in source.cameras]
                complete = bool(has) and all(has)
                if name == "annotations":  # a camera may lack images that another camera has
                    complete = any(has) or has_table(episode)
                    instead = "add 'modalities: [flow, keypoints, end_effector]' to the task, and run it"
                if not complete:
                    raise InputError(f"the episode has no {name}", where=f"--{name}: {item.path}", instead=instead)


def write_side_videos(source: Source, tree: Path, asked: tuple[str, ...]) -> None:
    """Write the side files, a description of them, and the names of masks, keypoints and arms.

    Args:
        source: Dataset to export.
        tree: Folder of the export.
        asked: Keys of :data:`SIDE_KINDS`.
    """
    if not asked:
        return
    kinds = [kind for name in asked for kind in SIDE_KINDS[name]]
    names: list[str] = []
    written: dict[str, dict[str, None]] = {kind: {} for kind in kinds}
    has_tables = False
    for item in source.stored:
        with EpisodeFile(item.path) as episode:
            for kind in kinds:
                for camera in source.cameras:
                    if kind == "flow" and "flow" not in episode.modalities(camera):
                        continue
                    written[kind][camera] = None
                    _write(episode, kind, camera, make_place(tree, _place(item, kind, camera)), fps=source.fps)
            row: dict[str, Any] = {}
            if labels := episode.labels:
                row |= {"instance_names": labels.instance_names, "semantic_names": labels.semantic_names}
            if "annotations" in asked and has_table(episode):
                row |= write_side_table(episode, item, tree)
                has_tables = True
            if row:
                names.append(to_json({"episode_index": item.position, **row}) + "\n")
    about = {
        kind: {"codec": _CODEC, "lossless": True, **_ABOUT[kind]}
        | ({"cameras": list(cameras)} if kind == "flow" else {})
        for kind, cameras in written.items()
        if cameras
    }
    told: dict[str, Any] = {"path": SIDE_VIDEO, "cameras": list(source.cameras), "fps": source.fps, "kinds": about}
    if has_tables:
        told["tables"] = describe_side_table()
    make_place(tree, SIDE_INFO).write_text(to_json(told, indent=1) + "\n")
    (tree / SIDE_NAMES).write_text("".join(names))


def _place(item: ExportItem, kind: str, camera: str) -> str:
    return SIDE_VIDEO.format(kind=kind, camera=camera, episode_index=item.position)


def _write(episode: EpisodeFile, kind: str, camera: str, target: Path, *, fps: int) -> None:
    from nimbus.datagen.files.av_library import av

    path, pixels = f"observations/{kind}/{camera}", _ABOUT[kind]["pix_fmt"]
    count, height, width = episode.shape(path)[:3]
    if kind == "flow":
        height *= 2
    with av.open(str(target), "w", format="matroska", options={"fflags": "+bitexact"}) as container:
        stream: Any = container.add_stream(_CODEC, rate=fps)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        stream.options = {"threads": "1", "slices": "4", "flags": "+bitexact", "g": "1"}
        for start in range(0, count, _BLOCK):
            for image in episode.rows(path, slice(start, start + _BLOCK)):
                plane = _flow_bits(image) if kind == "flow" else image
                container.mux(stream.encode(av.VideoFrame.from_ndarray(plane, format=pixels)))
        container.mux(stream.encode())


def _flow_bits(flow: NDArray[np.float16]) -> NDArray[np.uint16]:
    """Return the bits of an image of flow (H, W, 2) as one plane (2H, W): motion to the right above motion down."""
    return np.concatenate([flow[..., 0], flow[..., 1]]).view(np.uint16)
