"""Writer of shards: immutable tar files with many episodes each, and a table of their byte ranges."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from nimbus.datagen.datasets.export.parquet import BOOL, INT, TEXT, write_table
from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.shards import FORMAT, MANIFEST, SHARD, Options, groups, pack
from nimbus.datagen.datasets.export.source import ExportItem, Source, read_signals
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import make_place
from nimbus.datagen.store.episode_file.read import EpisodeFile

NEEDS_PARTS = False
_BLOCK = 1 << 20


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write shards into an empty folder.

    Args:
        source: Dataset to pack.
        parts: Unused: stored files are packed unchanged.
        tree: Folder of the export.
        options: Limits of the size of a shard.
    """
    numbers = pack([_byte_count(item) for item in source.items], options.shard_bytes, options.episode_size)
    rows: list[dict[str, Any]] = []
    for number, positions in groups(numbers):
        with make_place(tree, SHARD.format(number=number)).open("wb") as file:
            for position in positions:
                item = source.items[position]
                rows.append(_row(item, source, number) | _pack(item, file))
            file.write(bytes(2 * tarfile.BLOCKSIZE))
    told = {"format": FORMAT, "source": {name: value for name, value in asdict(source).items() if name in _TOLD}}
    # Failures have no videos: their images are in the HDF5 file. They are last, so that row 0 has all columns.
    columns = {name: ([row.get(name) for row in rows], _TYPES[type(rows[0][name])]) for name in rows[0]}
    write_table(tree / MANIFEST, columns, told={"nimbus": to_json(told)})


_TOLD = ("task", "robot", "fps", "cameras", "joint_names", "action_names")
_TYPES = {int: INT, str: TEXT, bool: BOOL}


def _row(item: ExportItem, source: Source, number: int) -> dict[str, Any]:
    with EpisodeFile(item.path) as episode:
        instruction = read_signals(episode, source).instruction
    return {
        "episode_id": item.episode_id,
        "seed": item.seed,
        "index": item.index,
        "variant": item.variant,
        "attempt": item.attempt,
        "success": item.success,
        "reason": item.reason,
        "phase": item.phase,
        "length": item.step_count,
        "instruction": instruction,
        "content_sha256": item.sha256,
        "shard": number,
    }


def _pack(item: ExportItem, file: IO[bytes]) -> dict[str, Any]:
    """Append the files of an episode to a shard; return their byte ranges and checksums as columns."""
    row: dict[str, Any] = {}
    for column, path in _files(item):
        name = f"{item.episode_id}.{column.removeprefix('video/') + '.mp4' if column != 'hdf5' else 'hdf5'}"
        row |= {f"{column}/{key}": value for key, value in _append(path, name, file).items()}
    return row


def _files(item: ExportItem) -> Iterator[tuple[str, Path]]:
    yield "hdf5", item.path
    for camera, path in sorted(item.videos.items()):
        yield f"video/{camera}", path


def _append(path: Path, name: str, file: IO[bytes]) -> dict[str, Any]:
    member = tarfile.TarInfo(name)  # without times and owners, equal episodes give equal bytes
    member.size, member.mode = path.stat().st_size, 0o644
    file.write(member.tobuf(tarfile.PAX_FORMAT))
    offset, digest = file.tell(), hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(_BLOCK):
            file.write(block)
            digest.update(block)
    if file.tell() != offset + member.size:
        raise InputError("the file changed while it was read", where=str(path), instead="run the same command again")
    file.write(bytes(-member.size % tarfile.BLOCKSIZE))
    return {"offset": offset, "bytes": member.size, "sha256": digest.hexdigest()}


def _byte_count(item: ExportItem) -> int:
    sizes = (path.stat().st_size for _, path in _files(item))
    return sum(tarfile.BLOCKSIZE + size + -size % tarfile.BLOCKSIZE for size in sizes)
