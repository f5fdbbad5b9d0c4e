"""Export of a dataset to another format. Equal episodes and options give equal bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from nimbus.datagen.datasets.certificates.record import FILE_NAME as CERTIFICATES
from nimbus.datagen.datasets.certificates.record import attach_certificates
from nimbus.datagen.datasets.export.formats import load_writer
from nimbus.datagen.datasets.export.parts import EpisodeParts, prepare
from nimbus.datagen.datasets.export.publication import (
    Manifest,
    find_published,
    is_whole,
    publish,
    refuse_strangers,
    stage_of,
    staging,
)
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.export.side_videos import check_side_videos, write_side_videos
from nimbus.datagen.datasets.export.source import Source, open_source
from nimbus.datagen.datasets.export.stored_views import ENVIRONMENT_STATE, with_view
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import remove_tree, write_new
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.folder import OTHER_OUT
from nimbus.datagen.store.publish import disk
from nimbus.datagen.version import nimbus_version

_OWN = ("episodes", "stage", "failures", "incidents", "orphans", "preview")
"""Folders that a run writes into its dataset."""
_REVISION = 2
"""Version of the export; raise it when the same episodes give a different export."""
_FORMATS_WITH_OBJECTS = ("robomimic", "shards")
"""Formats that always contain the poses of objects."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """Result of an export."""

    out: Path
    format: str
    episode_count: int
    """Number of stored episodes."""
    failure_count: int
    """Number of exported failed attempts."""
    left_out: int
    """Number of episodes left out, because they show assets whose license restricts redistribution."""
    frame_count: int
    file_count: int
    byte_count: int
    is_new: bool
    """False if the export existed already."""
    has_objects: bool = True
    """False if nothing in the export depends on where the objects are: it has neither images nor their poses."""


def export(
    folder: Path,
    out: Path,
    *,
    to: str = "lerobot",
    options: Options | None = None,
    keep_failures: bool = False,
    with_restricted: bool = False,
    view: SignalView | None = None,
    side: tuple[str, ...] = (),
    workers: int | None = None,
    tell: Callable[[int], None] = lambda left: None,
) -> Exported:
    """Export the stored episodes of a dataset to another format.

    An interrupted export continues where it stopped. An earlier export in the output folder is replaced in one step,
    when the new one is complete.

    Args:
        folder: Folder of the dataset.
        out: Folder of the export; it must be new, empty, or an earlier export.
        to: Format, a key of :data:`~nimbus.datagen.datasets.export.formats.FORMATS`.
        options: Limits of file sizes.
        keep_failures: Include kept failed attempts after the episodes, labeled as failures.
        with_restricted: Include episodes that show assets with a license that restricts redistribution.
        view: Form of the exported states and actions; the stored form by default.
        side: Any of ``depth``, ``masks`` and ``annotations``, which are written losslessly beside a LeRobot dataset.
        workers: Number of processes; by default chosen from the amount of work and the cores.
        tell: Called with the number of remaining episodes.

    Raises:
        InputError: There is no dataset, the format does not support it, a view or side video cannot be made, or the
            output folder was not written by an export.
        StorageError: The disk is full; nothing was published.
    """
    options = options or Options()
    writer = load_writer(to)
    folder, out = folder.absolute(), out.absolute()
    if any(out.resolve().is_relative_to(folder.resolve() / name) for name in _OWN):
        raise InputError("the output is in a folder of the dataset", where=f"--out {out}", instead=OTHER_OUT)
    before, view = find_published(out), view or SignalView()
    if to == "shards" and not view.is_stored:
        what, instead = (
            "shards contain the stored files unchanged",
            "set the view in the reader (docs/training.md)",
        )
        raise InputError(what, where=_flag(view), instead=instead)
    source = with_view(open_source(folder, keep_failures=keep_failures, with_restricted=with_restricted), view)
    check_side_videos(source, side, to=to)
    origin = {
        "task": source.task,
        "robot": source.robot,
        "seeds": sorted({item.seed for item in source.items}),
        "options": asdict(options),
        "versions": versions(),
        "failures": len(source.failures),
        **({"view": view.told()} if source.views else {}),
        **({"side": side} if side else {}),
    }
    episodes = tuple((item.episode_id, item.sha256) for item in source.items)
    told = [view.told()] if source.views else []
    settings = _hash([_REVISION, versions(), source.fps, source.cameras, *told])
    proof = attach_certificates(folder, episodes[: len(source.stored)])
    key = _hash([to, settings, origin, episodes, *([proof] if proof else [])])
    manifest = Manifest(format=to, key=key, origin=origin, episodes=episodes, files={})
    if before and before.key == key and is_whole(out, before):
        remove_tree(stage_of(out))  # may be left by a process that was killed after publication
        return _exported(out, source, before, is_new=False)
    if before:
        refuse_strangers(out, before, manifest)
    with staging(out, settings) as stage:
        if writer.NEEDS_PARTS:
            prepare(source, stage / "parts", workers=workers, tell=tell)
        with disk(stage):
            writer.write(source, EpisodeParts(source, stage / "parts"), stage / "tree", options)
            write_side_videos(source, stage / "tree", side)
            if proof:
                write_new(stage / "tree" / CERTIFICATES, proof.encode())
        manifest = publish(stage, out, manifest)
    return _exported(out, source, manifest, is_new=True)


def _flag(view: SignalView) -> str:
    """Return the first flag that changes the stored signals."""
    return "--" + next(iter(view.told())).replace("_", "-")


def _exported(out: Path, source: Source, manifest: Manifest, *, is_new: bool) -> Exported:
    return Exported(
        out=out,
        format=manifest.format,
        episode_count=len(source.stored),
        failure_count=len(source.failures),
        left_out=source.left_out,
        frame_count=source.frame_count,
        file_count=len(manifest.files),
        byte_count=sum(size for size, _ in manifest.files.values()),
        is_new=is_new,
        has_objects=bool(source.cameras)
        or ENVIRONMENT_STATE in source.extra_names
        or manifest.format in _FORMATS_WITH_OBJECTS,
    )


def versions() -> dict[str, str]:
    """Return the versions of Nimbus and of the libraries that determine the bytes of an export."""
    import h5py
    import numpy as np
    import pyarrow

    from nimbus.datagen.files.av_library import av

    libraries = {"av": av, "h5py": h5py, "numpy": np, "pyarrow": pyarrow}
    return {"nimbus": nimbus_version()} | {name: library.__version__ for name, library in libraries.items()}


def _hash(value: object) -> str:
    return hashlib.sha256(to_json(value).encode()).hexdigest()
