"""Verification of a whole dataset: agreement of ledger and files, shapes, types, finite values and content hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from heapq import merge
from itertools import groupby, islice, tee
from pathlib import Path

import numpy as np

from nimbus.datagen.errors import InputError, StoreAwayError, quote_words
from nimbus.datagen.files.folder_lock import is_locked
from nimbus.datagen.store.commit import ORPHANS
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.episode_file.content_check import LEVELS, CombinedHash, content_hash, is_whole_video
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.schema import (
    ANNOTATION_GROUPS,
    CAMERA_GROUPS,
    FIELD_SCHEMA,
    FIELDS,
    field_of,
    is_dtype,
    unify,
)
from nimbus.datagen.store.episode_file.videos import stored_video
from nimbus.datagen.store.failures import check_failures
from nimbus.datagen.store.info import DatasetInfo, read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus
from nimbus.datagen.store.remote.objects import MissingObjectError
from nimbus.datagen.store.remote.working_copy import fetched_ahead, forget_local, is_remote, local, names_in

_PAGE = 400
"""Number of files looked up in the ledger by one query."""
_REQUIRED = tuple(
    field for field in FIELDS if not (field.optional or field.path.endswith("*") or field.path.startswith("labels"))
)


def check_consistency(states: Iterable[EpisodeState], attempts: Iterable[Attempt], *, has_tasks: bool) -> Iterator[str]:
    """Check that states and attempts agree; yield one line for each contradiction.

    Args:
        states: Episode states, sorted by task, index and variant.
        attempts: Stored attempts, in the same order.
        has_tasks: True for a dataset of several tasks.
    """
    rows: tuple[Iterator[EpisodeState | Attempt], ...] = (iter(states), iter(attempts))
    for _, group in groupby(merge(*rows, key=lambda row: _place(row, has_tasks)), lambda row: _place(row, has_tasks)):
        mine = list(group)
        state = next((row for row in mine if isinstance(row, EpisodeState) and row.state is EpisodeStatus.DONE), None)
        stored = [row for row in mine if isinstance(row, Attempt)]
        if len(stored) > 1:
            yield f"ledger.sqlite: {stored[0].episode_id}: {len(stored)} stored attempts, expected one"
        if state or stored:
            yield from _check_done(state, stored)


def _place(row: EpisodeState | Attempt, has_tasks: bool) -> tuple[str, int, int]:
    return (row.task if has_tasks else "", row.idx, row.variant)


def find_unfinished(states: Iterable[EpisodeState]) -> Iterator[str]:
    """Yield a line for each commit that an ended run left unfinished."""
    for state in states:
        if state.state is EpisodeStatus.INTENT:
            yield f"ledger.sqlite: {attempt_name(state)}: its commit is unfinished; the next run completes or undoes it"


def attempt_name(state: EpisodeState) -> str:
    """Return the id of an episode, or its index and variant while it has no id."""
    return state.episode_id or f"episode {state.idx}, variant {state.variant}"


def _check_done(state: EpisodeState | None, stored: list[Attempt]) -> Iterator[str]:
    if state is None:
        yield f"ledger.sqlite: {stored[0].episode_id}: has a stored attempt, but its state is not DONE"
    elif not stored:
        yield f"ledger.sqlite: {attempt_name(state)}: its state is DONE, but it has no stored attempt"
    elif (state.sha256, state.byte_count) != (stored[0].sha256, stored[0].byte_count):
        yield f"ledger.sqlite: {attempt_name(state)}: its stored attempt and its state differ in hash or size"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Result of a verification."""

    info: DatasetInfo
    episode_count: int
    step_count: int
    byte_count: int
    failed_count: int
    """Number of failed attempts in the ledger."""
    kept_count: int
    """Number of failed attempts kept in ``failures/``."""
    problems: tuple[str, ...]
    """One line for each problem; empty for a valid dataset."""
    faults: dict[str, int] = field(default_factory=dict)
    """Number of workers that died, hung or raised, by kind; these are not problems of the dataset."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Evidence by quarantined episode; these episodes are not made again."""


@dataclass(kw_only=True)
class _Counts:
    """Sums over the rows of a ledger."""

    episode_count: int = 0
    step_count: int = 0
    byte_count: int = 0
    failed_count: int = 0
    kept_count: int = 0

    def add(self, attempt: Attempt) -> None:
        """Add one attempt."""
        self.failed_count += not attempt.success
        self.kept_count += attempt.failure is not None
        if attempt.path:
            self.episode_count += 1
            self.step_count += attempt.step_count
            self.byte_count += attempt.stored_bytes


def verify(folder: Path) -> Verification:
    """Check a whole dataset by reading all of it, from its store when it is in one.

    Raises:
        InputError: The folder holds no dataset.
    """
    # The files are listed first, then the ledger is read, then dataset.json. A run writes the ledger before it gives a
    # file its final name, and dataset.json last. So a run that continues meanwhile causes no false problems.
    files = names_in(folder, "episodes")
    with _reading(folder) as ledger:
        info, counts = read_info(folder), _Counts()
        for attempt in ledger.walk_attempts():
            counts.add(attempt)
        intents = ledger.episodes(EpisodeStatus.INTENT)
        under_way = [*_differences(info, counts), *find_unfinished(intents)]
        stored = ledger.walk_attempts(only_stored=True, order="place")
        problems = list(check_consistency(ledger.walk_episodes(), stored, has_tasks=ledger.has_tasks))
        problems += _strays(_unknown(files, ledger, {state.episode_id for state in intents}))
        problems += [] if under_way and is_locked(folder) else under_way
        # A run writes the file of a failure before its row, so a file without a row is normal while a run is active.
        problems += [] if is_locked(folder) else check_failures(folder, ledger.walk_attempts())
        problems += _check_files(folder, ledger.walk_attempts(only_stored=True), info)
        faults = Counter(fault.kind for fault in ledger.faults())
        quarantined = {attempt_name(state): state.detail for state in ledger.episodes(EpisodeStatus.QUARANTINED)}
    return Verification(
        info=info,
        **asdict(counts),
        problems=tuple(problems),
        faults=dict(faults.most_common()),
        quarantined=quarantined,
    )


def _check_files(folder: Path, stored: Iterable[Attempt], info: DatasetInfo) -> Iterator[str]:
    """Check every episode; files in a store are fetched ahead."""
    inside, before = DatasetPaths(folder), ""
    is_copy, names = is_remote(folder), set[str]()

    def paths(attempts: Iterable[Attempt]) -> Iterator[Path]:
        for attempt in attempts:
            for name in attempt.files if is_copy else ():  # the file in the store is to be checked, not a cached copy
                forget_local(folder / name)
            yield folder / attempt.path

    one, other = tee(stored)
    for attempt, path in zip(one, fetched_ahead(paths(other)), strict=True):
        if attempt.path == before or attempt.path in names:
            yield f"ledger.sqlite: {attempt.episode_id}: its file {attempt.path} belongs to another attempt as well"
            continue
        before = attempt.path
        if attempt.path != f"episodes/{attempt.episode_id}.hdf5":
            names.add(attempt.path)  # default paths contain the id and cannot repeat, so only other paths are kept
        yield from (f"{attempt.path}: {problem}" for problem in _outside(inside, attempt))
        yield from (f"{attempt.path}: {problem}" for problem in check_episode(path, attempt, info))


@contextmanager
def _reading(folder: Path) -> Iterator[Ledger]:
    """Yield a dataset's ledger as a consistent snapshot."""
    read_info(folder)
    ledger = Ledger(folder, read_only=True)
    try:
        with ledger.snapshot():
            yield ledger
    finally:
        ledger.close()


def dataset_hashes(folder: Path, *, fields: int | None = None) -> dict[str, str]:
    """Return the hash of a dataset at each level of determinism; all of its episodes are read.

    Args:
        folder: Folder of the dataset.
        fields: Number of the field schema to hash; the dataset's own when None.

    Raises:
        InputError: The folder holds no dataset, there is no such field schema, or an episode cannot be read.
    """
    schema = _field_schema(read_info(folder), fields)
    hashes = {level: CombinedHash() for level in LEVELS}
    with _reading(folder) as ledger:
        one, other = tee(ledger.walk_attempts(only_stored=True, order="id"))
        for attempt, path in zip(one, fetched_ahead(folder / row.path for row in other), strict=True):
            with EpisodeFile(path) as episode:
                content = content_hash(episode)
                if problem := next(_videos(episode, attempt), ""):
                    raise InputError(
                        problem,
                        where=str(episode.path),
                        instead=f"for a list of all problems, run {quote_words('nimbus', 'verify', folder)}",
                    )
            for level, combined in hashes.items():
                combined.add(attempt.episode_id, content.hexdigest(level, fields=schema))
    return {level: combined.hexdigest() for level, combined in hashes.items()}


def _field_schema(info: DatasetInfo, wanted: int | None) -> int:
    newest = min(info.field_schema, FIELD_SCHEMA)
    if wanted is None and info.field_schema > FIELD_SCHEMA:
        what = f"its field schema is {info.field_schema}; this version of Nimbus reads 1 to {FIELD_SCHEMA}"
        raise InputError(
            what, where="--fields", instead=f"write {quote_words('--fields', newest)}, or use the Nimbus that wrote it"
        )
    if wanted is not None and not 1 <= wanted <= newest:
        known = "1" if newest == 1 else f"1 to {newest}"
        what = f"the dataset has no field schema {wanted}"
        raise InputError(what, where=f"--fields {wanted}", instead=f"write {known}")
    return wanted or newest


def check_episode(path: Path, attempt: Attempt, info: DatasetInfo) -> list[str]:
    """Return the problems of one stored episode, one line each."""
    try:
        episode = EpisodeFile(path)
    except StoreAwayError:
        raise
    except InputError as error:
        return [error.what]
    with episode:
        try:
            problems = [*_identity(episode, attempt), *_rate(episode, info), *_structure(episode, info)]
            if not problems:
                problems += _numbers(episode)
                _ = episode.segments, episode.scene_graph  # reading them checks that they lie within the steps
            problems += _videos(episode, attempt)
            if content_hash(episode).hexdigest() != attempt.sha256:
                problems.append("the content differs from what was written (sha256)")
        except StoreAwayError:
            raise
        except InputError as error:
            return [error.what]
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            return [f"cannot be read: {error}".splitlines()[0]]
    if (size := episode.path.stat().st_size) != attempt.byte_count:
        problems.append(f"{size} bytes, expected {attempt.byte_count}")
    return problems


def _outside(inside: DatasetPaths, attempt: Attempt) -> Iterator[str]:
    """Yield a line for each file that is a link out of the dataset, which a copy would miss."""
    for path in attempt.files:
        try:
            inside.path(path)
        except InputError as error:
            yield error.what


def _differences(info: DatasetInfo, counts: _Counts) -> Iterator[str]:
    for name in ("episode_count", "step_count", "byte_count"):
        if getattr(info, name) != (count := getattr(counts, name)):
            yield f"dataset.json: {name} {getattr(info, name)}, but {count} in the ledger; the next run corrects this"
    for name in ("rate", "features"):
        if counts.episode_count and not getattr(info, name):
            yield f"dataset.json: no {name}; the next run corrects this"


def _strays(files: list[str]) -> Iterator[str]:
    for path in files:
        fate = f"the next run moves it to {ORPHANS}/" if path.endswith((".hdf5", ".mp4")) else "not a file of Nimbus"
        yield f"{path}: not in the ledger; {fate}"


def _unknown(files: Iterable[str], ledger: Ledger, under_commit: set[str]) -> list[str]:
    """Return files that belong to no stored episode and to no commit in progress."""
    rest, others = iter(files), list[str]()
    while page := list(islice(rest, _PAGE)):
        ids = {file.removeprefix("episodes/").removesuffix(".hdf5").removesuffix(".mp4") for file in page}
        ids |= {name.rpartition(".")[0] for name in ids}  # a video's name ends with its camera
        known = ledger.stored_paths(sorted(ids))
        others += [file for file in page if file not in known]
    begun = tuple(f"episodes/{episode}." for episode in under_commit)
    return [path for path in others if not path.startswith(begun)] if begun else others


def _videos(episode: EpisodeFile, attempt: Attempt) -> Iterator[str]:
    """Yield a line for each video that differs from the one written, byte for byte."""
    told = [stored_video(record, episode=attempt.episode_id, camera=name) for name, record in episode.videos.items()]
    if sorted(told, key=lambda video: video.path) != sorted(attempt.videos, key=lambda video: video.path):
        yield "its list of videos differs from the ledger's"
    for video in attempt.videos:
        path = episode.path.with_name(video.path.rpartition("/")[2])
        try:
            path = local(path)
        except MissingObjectError:
            pass
        if not path.is_file():
            yield f"its video {path.name} is missing"
        elif not is_whole_video(path, video):
            yield f"its video {path.name} differs from what was written (sha256)"


def _identity(episode: EpisodeFile, attempt: Attempt) -> Iterator[str]:
    if episode.episode_id != attempt.episode_id or episode.layout().key.id != attempt.episode_id:
        yield f"holds episode {episode.episode_id}, expected {attempt.episode_id}"
    if episode.step_count != attempt.step_count:
        yield f"{episode.step_count} steps, expected {attempt.step_count}"
    if not episode.outcome.success:
        yield "holds a failed attempt"


def _rate(episode: EpisodeFile, info: DatasetInfo) -> Iterator[str]:
    """Yield a line if an episode's rate differs from the dataset's or is invalid."""
    if info.rate and episode.rate != info.rate:
        yield f"{episode.rate:g} Hz, but {info.rate:g} in dataset.json"


def _structure(episode: EpisodeFile, info: DatasetInfo) -> Iterator[str]:
    sizes: dict[str, int] = {}
    found = set(episode.paths())
    images = "video" if episode.videos else "images"
    stored = {camera.name: camera.modalities for camera in episode.layout().visual.cameras}
    groups = CAMERA_GROUPS | {"rgb": images}
    cameras = {
        f"observations/{group}/{name}"
        for name in info.cameras
        for modality in stored.get(name, ("rgb", "depth", "instance"))
        for group in (ANNOTATION_GROUPS.get(modality) or (groups[modality],))
    }
    if any("keypoints" in modalities for modalities in stored.values()):
        cameras |= {field.path for field in FIELDS if field.path.startswith("labels/keypoint")}
    required = {field.path for field in _REQUIRED if field.since <= info.field_schema}
    for path in sorted({*required, *(cameras if episode.labels else ())} - found):
        yield f"{path}: missing"
    for path in sorted(found):
        field, dataset = field_of(path), episode.stored(path)
        if field is None:
            yield f"{path}: unknown dataset"
        elif not is_dtype(field, dataset.dtype):
            yield f"{path}: type {dataset.dtype}, expected {field.dtype}"
        elif not unify(field, dataset.shape, sizes, scope=path.rpartition("/")[2]):
            yield f"{path}: shape {dataset.shape}, expected ({', '.join(map(str, field.dims))}) with {sizes}"
        elif (known := info.features.get(path)) and not _same_sizes(known["shape"], dataset.shape):
            yield f"{path}: shape {dataset.shape}, but {known['shape']} in dataset.json"


def _same_sizes(known: list[int | str], shape: tuple[int, ...]) -> bool:
    return len(known) == len(shape) and all(isinstance(a, str) or a == b for a, b in zip(known, shape, strict=True))


def _numbers(episode: EpisodeFile) -> Iterator[str]:
    time = episode.array("time")
    if np.any(np.diff(time) <= 0):
        yield f"time: does not grow at step {int(np.argmax(np.diff(time) <= 0)) + 1}"
    for path in episode.paths():
        field = field_of(path)
        if field is None or not field.dtype.startswith("float"):
            continue
        values = episode.array(path)
        if not (np.isfinite(values) | (np.isnan(values) & field.partial)).all():
            yield f"{path}: holds numbers that are not finite"
    length = np.linalg.norm(episode.array("observations/body_wxyz"), axis=-1)
    if np.any(np.abs(length - 1) > 1e-6):
        yield "observations/body_wxyz: holds quaternions that are not of unit length"
