"""Reading a whole folder of shards again: every byte that its manifest tells of against its sum."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from nimbus.datagen.datasets.export.tar_shards import SHARD
from nimbus.datagen.datasets.training.sharded import ShardManifest
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.episode_file.content_check import content_hash

_BLOCK = 1 << 20


def check_shards(manifest: ShardManifest) -> Iterator[str]:
    """What is not as it was written, one line each."""
    shards = {SHARD.format(number=int(number)) for number in manifest.column("shard")}
    for path in sorted((manifest.folder / "shards").glob("*")):
        name = path.relative_to(manifest.folder).as_posix()
        if name not in shards:
            yield f"{name}: the manifest does not know it"
    gone = {name for name in shards if not (manifest.folder / name).is_file()}
    yield from (f"{name}: missing" for name in sorted(gone))
    for row in range(len(manifest)):
        if SHARD.format(number=int(manifest.column("shard")[row])) not in gone:
            yield from _check_episode(manifest, row)


def _check_episode(manifest: ShardManifest, row: int) -> Iterator[str]:
    whole = True
    for part in ("hdf5", *(f"video/{camera}" for camera in manifest.videos_of(row))):
        span = manifest.span(row, part)
        if _sum(span) != manifest.column(f"{part}/sha256")[row]:
            whole = False
            yield f"{_name(manifest.folder, span)}: differs from what was written (sha256)"
    if not whole:
        return
    try:
        with manifest.open(row) as episode:
            found, length = content_hash(episode).hexdigest(), episode.step_count
    except InputError as error:
        yield error.what
        return
    if (found, length) != (manifest.column("content_sha256")[row], manifest.column("length")[row]):
        yield f"{_name(manifest.folder, manifest.span(row, 'hdf5'))}: holds another episode than the manifest says"


def _name(folder: Path, span: ByteRange) -> str:
    return f"{span.path.relative_to(folder).as_posix()}: {span.name}"


def _sum(span: ByteRange) -> str:
    digest = hashlib.sha256()
    with span.open() as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
