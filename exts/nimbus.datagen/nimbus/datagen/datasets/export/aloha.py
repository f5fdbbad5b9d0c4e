"""Writer of ALOHA's format: one numbered HDF5 file per episode."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.datasets.export.hdf5 import copy_images, new_file
from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.export.source import Source, read_signals
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.episode_file.read import EpisodeFile

NEEDS_PARTS = False
FAILURES = "failures"
_COPIED = ("action", "observations/qpos", "observations/qvel")


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write a dataset in ALOHA's format into an empty folder.

    Args:
        source: Dataset to export.
        parts: Unused: images are stored losslessly, one frame per chunk; video is decoded.
        tree: Folder of the export.
        options: Unused.
    """
    for item in source.items:
        path = tree / f"episode_{item.position}.hdf5"
        if not item.success:  # failures are in a separate folder, because readers count all files of a folder
            path = tree / FAILURES / f"episode_{item.position - len(source.stored)}.hdf5"
            path.parent.mkdir(exist_ok=True)
        with EpisodeFile(item.path) as episode, new_file(path) as (target, _):
            signals = read_signals(episode, source)
            target.attrs.update(
                sim=True,
                compress=False,
                rate=source.fps,
                success=item.success,
                seed=item.seed,
                reason=item.reason,
                phase=item.phase,
                episode_id=item.episode_id,
                instruction=signals.instruction,
            )
            made = {"action": signals.action, "observations/qpos": signals.state} if source.views else {}
            made |= {name.replace("observation.", "observations/"): rows for name, rows in signals.extra.items()}
            for name in _COPIED:
                target.require_group(name.rpartition("/")[0] or "/")
                if name not in made:
                    episode.file.copy(episode.stored(name), target, name=name)
            for name, rows in made.items():
                target[name] = rows
            if source.views:
                target.attrs["view"] = to_json(source.views.described())
            for camera in source.cameras:
                copy_images(episode, camera, target.require_group("observations/images"), camera)
