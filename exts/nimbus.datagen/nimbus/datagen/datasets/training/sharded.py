"""Training reader of shards; their manifest locates every episode, and no other metadata are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.shards import FORMAT, MANIFEST, SHARD
from nimbus.datagen.datasets.export.source import Signals, Source, read_signals
from nimbus.datagen.datasets.export.stored_views import StoredViews
from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.tables import check_columns, read_table
from nimbus.datagen.datasets.training.frames import KeptSignals, Recent, fetch_blocks
from nimbus.datagen.datasets.training.native import COLUMNS, FACTS, by_name
from nimbus.datagen.datasets.training.order import FrameBlock
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.bounded import Pixels, as_typed, check_regular, parse_plain
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.episode_file.content_check import content_hash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.remote.range_file import span_of
from nimbus.datagen.store.remote.working_copy import is_remote

_BLOCK = 1 << 20


_COLUMNS: dict[str, str] = {name: "whole" for name in ("shard", "length", "hdf5/offset", "hdf5/bytes")}
_COLUMNS |= {name: "text" for name in ("episode_id", "instruction", "content_sha256", "hdf5/sha256")}
"""Type of each column that a manifest must have."""
_AGAIN = "restore it from a copy, or export again"


@dataclass(frozen=True, kw_only=True)
class _SourceNote:
    """Description of the dataset from which the shards were created."""

    task: str
    robot: str
    fps: Annotated[int, Meta(ge=1, le=100_000)]
    cameras: dict[str, tuple[Pixels, Pixels]]
    joint_names: tuple[str, ...]
    action_names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _ManifestNote:
    """Metadata of a manifest."""

    format: str
    source: Any = None


class ShardManifest:
    """Manifest of a folder of shards: a table with one row per episode.

    Args:
        folder: Folder that contains ``manifest.parquet``.
        where: Filter of rows in the form of ``pyarrow.parquet``, such as
            ``[("success", "=", True), ("length", ">", 50)]``.

    Raises:
        InputError: The manifest cannot be read, has another format version, or the filter is invalid.
    """

    def __init__(self, folder: Path | str, *, where: list[tuple[str, str, Any]] | None = None) -> None:
        self.folder = folder = Path(folder)
        self._inside = DatasetPaths(folder)
        path = folder / MANIFEST
        try:
            self.table: Any = read_table(path)
            names = self.table.column_names
            if lacking := next((name for name in _COLUMNS if name not in names), None):
                raise Unreadable(lacking, f"no column {lacking}")
            check_columns(self.table, _COLUMNS)
            for name in self.videos:  # a failed attempt has no video
                kinds = {
                    f"video/{name}/offset": "whole",
                    f"video/{name}/bytes": "whole",
                    f"video/{name}/sha256": "text",
                }
                if lacking := next((column for column in kinds if column not in names), None):
                    raise Unreadable(lacking, f"no column {lacking}")
                check_columns(self.table.select(list(kinds)).drop_null(), kinds)
        except Unreadable as error:
            raise InputError(f"not a manifest of shards: {error.what}", where=str(path), instead=_AGAIN) from None
        if lost := next((name for name, *_ in where or () if name not in names), None):
            raise InputError(f"no column '{lost}'", where=f"where of {path}", instead=suggest(lost, names))
        note = (self.table.schema.metadata or {}).get(b"nimbus", b"{}").decode(errors="replace")
        told = as_typed(_ManifestNote, parse_plain(note, where=str(path)), where=str(path))
        if told.format != FORMAT:
            what = f"format {told.format}, this Nimbus reads {FORMAT}"
            raise InputError(what, where=str(path), instead="use the Nimbus that wrote it")
        self.source = as_typed(_SourceNote, told.source, where=str(path))
        if where:
            try:
                self.table = self.table.filter(pq.filters_to_expression(where))
            except (pa.ArrowException, ValueError, TypeError) as error:
                raise InputError(
                    f"cannot be compared: {error}".split("\n")[0],
                    where=f"where of {path}",
                    instead="compare values of the same type",
                ) from None

    def __len__(self) -> int:
        return self.table.num_rows

    def column(self, name: str) -> NDArray[Any]:
        """Return a column (R,) of the table."""
        if name not in self.table.column_names:
            raise InputError(f"no column {name}", where=str(self.folder / MANIFEST), instead=_AGAIN)
        return self.table.column(name).to_numpy()

    def span(self, row: int, part: str) -> ByteRange:
        """Return the byte range of a file of an episode in its shard.

        Args:
            row: Row of the episode.
            part: File: ``hdf5`` or ``video/<camera>``.

        Raises:
            InputError: The shard is missing, shorter than in the manifest, or a link out of the folder.
        """
        number, name = self.table.column("shard")[row].as_py(), self.table.column("episode_id")[row].as_py()
        offset, size = (self.table.column(f"{part}/{key}")[row].as_py() for key in ("offset", "bytes"))
        path = self.folder / SHARD.format(number=number)
        span = span_of(path, offset=offset, byte_count=size, name=f"{name}/{part}")
        if not span.is_here:
            return span
        self._inside.path(SHARD.format(number=number))
        if not path.exists():
            raise InputError("the file is missing", where=str(path), instead=_AGAIN)
        if offset + size > check_regular(path):
            what = f"the manifest ends {name} at byte {offset + size}, but the file has {path.stat().st_size} bytes"
            raise InputError(what, where=str(path), instead=_AGAIN)
        return span

    def shard_sizes(self) -> list[tuple[str, int]]:
        """Return the names of the shards, and their sizes up to the end of the last episode [bytes]."""
        ends: dict[str, int] = {}
        parts = ("hdf5", *(f"video/{camera}" for camera in self.videos))
        for part in parts:
            for number, offset, size in zip(
                *(self.table.column(name).to_pylist() for name in ("shard", f"{part}/offset", f"{part}/bytes")),
                strict=True,
            ):
                if offset is not None:
                    name = SHARD.format(number=number)
                    ends[name] = max(ends.get(name, 0), offset + size)
        return sorted(ends.items())

    @property
    def videos(self) -> tuple[str, ...]:
        """Cameras whose images are stored as video in some episodes."""
        names = (name.split("/") for name in self.table.column_names)
        return tuple(parts[1] for parts in names if parts[0] == "video" and parts[-1] == "offset")

    def videos_of(self, row: int) -> tuple[str, ...]:
        """Return the cameras with a video in the episode of a row; failed attempts have none."""
        return tuple(name for name in self.videos if self.table.column(f"video/{name}/offset")[row].is_valid)

    def open(self, row: int) -> EpisodeFile:
        """Open the episode of a row in its shard."""
        videos = {camera: self.span(row, f"video/{camera}") for camera in self.videos_of(row)}
        return EpisodeFile(self.span(row, "hdf5"), videos=videos)


class ShardFrames:
    """Episodes of a folder of shards, in the order of the manifest.

    Args:
        folder: Folder that contains ``manifest.parquet``.
        open_files: Number of episodes that stay open.
        where: Filter of rows; see :class:`ShardManifest`.
        view: Form of states and actions; the stored form by default.

    Raises:
        InputError: The manifest cannot be read, or the dataset does not support the view.
    """

    def __init__(
        self,
        folder: Path,
        *,
        open_files: int = 16,
        where: list[tuple[str, str, Any]] | None = None,
        view: SignalView | None = None,
    ) -> None:
        self.manifest = ShardManifest(folder, where=where)
        views = None
        if view and not view.is_stored and len(self.manifest):
            with self.manifest.open(0) as first:
                views = StoredViews(view, first)
        self._source = Source(folder=folder, items=(), **vars(self.manifest.source), views=views)
        self.columns = (*COLUMNS, *self._source.extra_names)
        self._open: Recent[EpisodeFile] = Recent(open_files)
        self._signals = KeptSignals(self._read)
        self.fps = self._source.fps
        self.cameras = tuple(self._source.cameras)
        self.lengths = self.manifest.column("length").astype(np.int64)

    def signals(self, episode: int) -> dict[str, NDArray[np.float32]]:
        """Return the signals (T, D) of an episode, by name."""
        return by_name(self._signals(episode))

    def images(self, episode: int, camera: str, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the images (n, H, W, 3) of frames ``[start, stop)``, sRGB [levels, 0 to 255]."""
        return self._file(episode).rows(f"observations/images/{camera}", slice(start, stop))

    def task(self, episode: int) -> str:
        """Return the instruction of an episode."""
        return self.manifest.table.column("instruction")[episode].as_py()

    def facts(self) -> dict[str, NDArray[Any]]:
        """Return columns (E,) with one value per episode, by name."""
        return {name: self.manifest.column(name) for name in FACTS}

    @property
    def is_stored(self) -> bool:
        """True if the shards are in a store."""
        return is_remote(self.manifest.folder)

    def fetch(self, blocks: Sequence[FrameBlock], cameras: Sequence[str]) -> None:
        """Fetch the data for some blocks from a store; see :meth:`Frames.fetch`."""
        spans = [self.manifest.span(block.episode, "hdf5") for block in blocks]
        fetch_blocks(spans, blocks, cameras, self._file)

    def close(self) -> None:
        """Close all files."""
        self._open.close()

    def _read(self, episode: int) -> Signals:
        return read_signals(self._file(episode), self._source)

    def _file(self, episode: int) -> EpisodeFile:
        return self._open.get(episode, lambda: self.manifest.open(episode))


def check_shards(manifest: ShardManifest) -> Iterator[str]:
    """Check that shards are unchanged since their export; yield one line for each difference."""
    shards = {SHARD.format(number=int(number)) for number in manifest.column("shard")}
    for path in sorted((manifest.folder / "shards").glob("*")):
        name = path.relative_to(manifest.folder).as_posix()
        if name not in shards:
            yield f"{name}: not in the manifest"
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
            yield f"{_name(manifest.folder, span)}: the content has changed (SHA-256)"
    if not whole:
        return
    try:
        with manifest.open(row) as episode:
            found, length = content_hash(episode).hexdigest(), episode.step_count
    except InputError as error:
        yield error.what
        return
    if (found, length) != (manifest.column("content_sha256")[row], manifest.column("length")[row]):
        yield f"{_name(manifest.folder, manifest.span(row, 'hdf5'))}: differs from the episode in the manifest"


def _name(folder: Path, span: ByteRange) -> str:
    return f"{span.path.relative_to(folder).as_posix()}: {span.name}"


def _sum(span: ByteRange) -> str:
    digest = hashlib.sha256()
    with span.open() as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
