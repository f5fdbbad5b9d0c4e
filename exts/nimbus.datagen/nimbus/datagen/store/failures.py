"""Failed attempts that are kept: labeled files in ``failures/``, separate from episodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import sync_folder
from nimbus.datagen.files.own_files import check_own, make_subfolder, move, remove_file, remove_tree
from nimbus.datagen.stages import Rendered, TimedObservations
from nimbus.datagen.store.episode_file.content_check import content_hash
from nimbus.datagen.store.episode_file.encode import EpisodeEncoder
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.attempt import Attempt, KeptFailure, has_size
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import disk
from nimbus.datagen.store.remote.objects import MissingObjectError
from nimbus.datagen.store.remote.working_copy import local

FOLDER = "failures"


def sentence(outcome: Outcome, layout: Layout) -> str:
    """Describe a failure in one sentence: instruction, step, reason, and kinds of the objects involved."""
    kinds = {item.name: item.kind.replace("_", " ") for item in layout.physical.objects}
    things = [f"{name} is a {kind}" for name, kind in kinds.items() if name in f"{outcome.phase} {outcome.detail}"]
    said = layout.visual.instruction.rstrip(".! ")
    told = f'With the instruction "{said}", the robot' if said else "The robot"
    where = f" in '{outcome.phase}'" if outcome.phase else " at the start"
    detail = f": {outcome.detail}" if outcome.detail else ""
    about = f" ({', '.join(things)})" if things else ""
    return f"{told} failed{where}: {outcome.reason.replace('_', ' ')}{detail}{about}."


def keep_failure(item: Rendered, shown: TimedObservations, *, stage: Path, compression: int = 1) -> KeptFailure:
    """Write a failed attempt with lossless images to ``failures/<episode id>.a<attempt>.hdf5``.

    Repeating the same attempt produces the same file and replaces it.

    Args:
        item: The attempt.
        shown: Its images.
        stage: The dataset's folder for files in progress.
        compression: Level of gzip.

    Raises:
        StorageError: The disk is full; the unfinished file is removed.
    """
    name = f"{item.layout.key.id}.a{item.attempt}"
    staged, folder = stage / f"{name}.{os.getpid()}.failure.tmp", stage.parent / FOLDER
    with disk(staged):
        remove_file(staged)
        encoder = EpisodeEncoder(staged, compression=compression)
    try:
        encoder.episode(item.layout, item.trajectory, item.labels, item.scene.provenance)
        encoder.attribute("failure", sentence(item.trajectory.outcome, item.layout))
        encoder.attribute("attempt", item.attempt)
        for observation in shown:
            encoder.observation(observation, step_count=item.trajectory.step_count)
            encoder.check()
        encoder.finish(step_count=item.trajectory.step_count)
        encoder.close()
        encoder.check()
    except BaseException:
        encoder.discard()
        raise
    kept = KeptFailure(path=f"{FOLDER}/{name}.hdf5", byte_count=staged.stat().st_size, sha256=encoder.hash.hexdigest())
    with disk(folder):
        make_subfolder(folder)
        # A rename replaces the file of an equal earlier attempt in one step. The ledger's row is written afterwards; a
        # file without a row is removed when the dataset is next opened.
        move(staged, folder / f"{name}.hdf5")
        sync_folder(folder)
    return kept


def clear_failures(folder: Path, ledger: Ledger) -> None:
    """Remove failure files without a row in the ledger; the dataset's writer calls this.

    Raises:
        StorageError: A file cannot be removed.
    """
    if (folder / FOLDER).is_dir():
        check_own(folder / FOLDER)
        with disk(folder):
            for path in _strays(folder, ledger.walk_attempts()):
                remove_tree(path)


def _strays(folder: Path, attempts: Iterable[Attempt]) -> list[Path]:
    """Return files without a ledger row, left by a run that was killed after it wrote the file."""
    known = {attempt.failure.path for attempt in attempts if attempt.failure}
    here = sorted((folder / FOLDER).glob("*"))
    return [path for path in here if f"{FOLDER}/{path.name}" not in known]


def check_failures(folder: Path, attempts: Iterable[Attempt]) -> Iterator[str]:
    """Yield one line for each problem of the kept failures."""
    attempts = [attempt for attempt in attempts if attempt.failure]
    if (folder / FOLDER).is_symlink():
        yield f"{FOLDER}: this is a link and not a folder of the dataset; the next run refuses it"
        return
    for path in _strays(folder, attempts):
        yield f"{FOLDER}/{path.name}: not in the ledger; the next run removes it"
    for attempt in attempts:
        if kept := attempt.failure:
            yield from (f"{kept.path}: {problem}" for problem in _problems(folder / kept.path, attempt, kept))


def _problems(path: Path, attempt: Attempt, kept: KeptFailure) -> Iterator[str]:
    try:
        path = local(path)
    except MissingObjectError:
        yield "missing"
        return
    if not path.is_file():
        yield "missing"
        return
    if not has_size(path, kept.byte_count):
        yield f"{path.stat().st_size} bytes, expected {kept.byte_count}"
    try:
        with EpisodeFile(path) as episode:
            if episode.outcome.success or episode.episode_id != attempt.episode_id:
                yield "is not a failed attempt at that episode"
            if content_hash(episode).hexdigest() != kept.sha256:
                yield "the content differs from what was written (sha256)"
    except InputError as error:
        yield error.what
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        yield f"cannot be read: {error}".splitlines()[0]
