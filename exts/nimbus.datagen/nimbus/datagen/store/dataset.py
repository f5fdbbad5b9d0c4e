"""A dataset's folder: what it is (``dataset.json``), what it holds, and who may write into it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.store.folder import OTHER_OUT, check_writable, open_folder, put_aside
from nimbus.datagen.store.json_text import from_json, to_json
from nimbus.datagen.store.learn import learned_from_file
from nimbus.datagen.store.ledger import FILE_NAME as LEDGER_NAME
from nimbus.datagen.store.ledger import Attempt, Ledger
from nimbus.datagen.store.publish import disk, replace_text, stage_text, sync_folder
from nimbus.datagen.store.schema import FORMAT_VERSION

INFO_NAME = "dataset.json"
ORPHANS = "orphans"
"""Folder of episode files that the ledger does not know."""
_RESTORE = "restore this file from a copy"


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What ``dataset.json`` says."""

    format_version: int = FORMAT_VERSION
    task: str
    task_hash: str
    seed: int
    inputs: dict[str, str] = field(default_factory=dict)
    """What else decides the content: assets, code, settings and versions by name, see ``content.content_inputs``."""
    robot: str = ""
    rate: float = 0.0
    """[Hz]; 0 until an episode is stored, like the rest below."""
    cameras: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Width and height by camera."""
    joint_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    instance_names: tuple[str, ...] = ()
    """Every instance name that occurs in an episode."""
    semantic_names: tuple[str, ...] = ()
    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By path in the file: shape (symbols where it differs between episodes), dtype, units, description."""
    episode_count: int = 0
    step_count: int = 0
    byte_count: int = 0


def read_info(folder: Path) -> DatasetInfo:
    """Read ``dataset.json``.

    Raises:
        InputError: The folder holds no dataset, or one of another format.
    """
    path = folder / INFO_NAME
    try:
        info = from_json(DatasetInfo, path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("there is no dataset here", where=str(folder), instead="give the folder of a run") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except ValueError as error:
        what = f"not a Nimbus dataset description: {error}"
        raise InputError(what, where=str(path), instead=_RESTORE) from None
    if info.format_version != FORMAT_VERSION:
        raise InputError(
            f"format version {info.format_version}, this Nimbus reads {FORMAT_VERSION}",
            where=str(path),
            instead="use the Nimbus that wrote it",
        )
    return info


class Dataset:
    """A dataset that this process writes into; see :meth:`create_or_open`.

    ``orphans`` are the files that the ledger did not know when the folder was opened, where they are now; ``outdated``
    the files of stored episodes that were missing or changed then: the ledger forgot them, to be made again.
    """

    def __init__(self, folder: Path, info: DatasetInfo, lock: int) -> None:
        self.folder = folder
        self.info = info
        self.episodes = folder / "episodes"
        self.stage = folder / "stage"
        self._lock = lock
        self.orphans: tuple[Path, ...] = ()
        self.outdated: tuple[Path, ...] = ()
        self.ledger = Ledger(folder)
        try:
            self._recover()
        except BaseException:
            self.ledger.close()
            raise

    @classmethod
    def create_or_open(
        cls,
        folder: Path | str,
        *,
        task: str,
        task_hash: str,
        seed: int,
        robot: str = "",
        inputs: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Make a dataset in a new or empty folder, or go on with one that was made from the same.

        Args:
            folder: Its folder.
            task: Name of the task.
            task_hash: Content hash of the task.
            seed: The run's seed.
            robot: Name of the robot.
            inputs: What else decides the content.

        Raises:
            InputError: The folder is a file, cannot be written, holds something else, was made from something else, or
                another run writes into it.
            StorageError: The disk is full.
        """
        folder = Path(folder).absolute()
        lock = open_folder(folder, probe=f"{INFO_NAME}.tmp")
        try:
            wanted = DatasetInfo(task=task, task_hash=task_hash, seed=seed, robot=robot, inputs=dict(inputs or {}))
            if (folder / INFO_NAME).exists():
                info = read_info(folder)
                _refuse_other_task(folder, info, task=task, task_hash=task_hash, seed=seed)
                _refuse_other_inputs(folder, info, wanted)
            else:
                _refuse_foreign(folder)
                info = wanted
                replace_text(folder / INFO_NAME, _text(info))
            return cls(folder, info, lock)
        except BaseException:
            os.close(lock)
            raise

    def record(self, attempt: Attempt, *, learned: DatasetInfo | None = None) -> None:
        """Enter an attempt into the ledger and, when it stored something, into ``dataset.json``: both or neither.

        Args:
            attempt: The attempt; its file is already in place.
            learned: What the episode tells about the dataset.

        Raises:
            StorageError: The disk is full.
        """
        if not attempt.path:
            self.ledger.record(attempt)
            return
        info = replace(
            merge(self.info, learned) if learned else self.info,
            episode_count=self.info.episode_count + 1,
            step_count=self.info.step_count + attempt.step_count,
            byte_count=self.info.byte_count + attempt.byte_count,
        )
        staged = stage_text(self.folder / INFO_NAME, _text(info))
        try:
            self.ledger.record(attempt)
        except StorageError:
            staged.unlink()
            raise
        staged.replace(self.folder / INFO_NAME)
        self.info = info

    def close(self) -> None:
        """Close the ledger and let others write."""
        if self._lock >= 0:
            self.ledger.close()
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self) -> None:
        """Clear what an interrupted run left: staged files go, files without a ledger row are put aside.

        Rows without their file go too.
        """
        stored = self._stored()
        with disk(self.folder):
            for subfolder in (self.stage, self.episodes):
                subfolder.mkdir(exist_ok=True)
            for staged in self.stage.iterdir():
                staged.unlink()
            known = {attempt.path for attempt in stored}
            strays = [path for path in self.episodes.glob("*.hdf5") if f"episodes/{path.name}" not in known]
            self.orphans = tuple(put_aside(path, self.folder / ORPHANS) for path in sorted(strays))
            sync_folder(self.folder)
        self._recount(stored)

    def _stored(self) -> list[Attempt]:
        """The ledger's stored episodes whose files are in place; the others are forgotten."""
        found = self.ledger.stored()
        # Of the two, the ledger is written first: it is never behind.
        if len(found) < self.info.episode_count:
            what = f"knows {len(found)} episodes, {INFO_NAME} counts {self.info.episode_count}"
            raise InputError(what, where=str(self.ledger.path), instead=_RESTORE)
        outdated = [attempt for attempt in found if not attempt.is_in(self.folder)]
        stored = [attempt for attempt in found if attempt not in outdated] if outdated else found
        if outdated:
            self._recount(stored)
            self.ledger.forget(outdated)
            self.outdated = tuple(self.folder / attempt.path for attempt in outdated)
        return stored

    def _recount(self, stored: list[Attempt]) -> None:
        """Follow the ledger: a run that was killed may have left ``dataset.json`` one episode behind."""
        info = self.info
        behind = len(stored) - info.episode_count if info.features and info.rate else len(stored)
        for attempt in sorted(stored, key=lambda attempt: -attempt.ended)[: max(0, behind)]:
            with suppress(InputError):  # a file that cannot be read is for `nimbus verify` to tell
                info = merge(info, learned_from_file(info, self.folder / attempt.path))
        info = replace(
            info,
            episode_count=len(stored),
            step_count=sum(attempt.step_count for attempt in stored),
            byte_count=sum(attempt.byte_count for attempt in stored),
        )
        if info != self.info:
            replace_text(self.folder / INFO_NAME, _text(info))
            self.info = info


def merge(info: DatasetInfo, learned: DatasetInfo) -> DatasetInfo:
    """What is known of a dataset after one more episode."""
    return replace(
        learned,
        robot=info.robot,
        cameras=info.cameras | learned.cameras,
        features=info.features | learned.features,
        instance_names=tuple(sorted({*info.instance_names, *learned.instance_names})),
        semantic_names=tuple(sorted({*info.semantic_names, *learned.semantic_names})),
    )


def _text(info: DatasetInfo) -> str:
    return to_json(asdict(info), indent=2) + "\n"


def check_folder(folder: Path, *, task: str, task_hash: str, seed: int) -> None:
    """Refuse early, and without making anything, what :meth:`Dataset.create_or_open` would refuse.

    Raises:
        InputError: The folder is a file, cannot be written, holds something else, or was made from something else.
    """
    folder = folder.absolute()
    check_writable(folder)
    if (folder / INFO_NAME).exists():
        _refuse_other_task(folder, read_info(folder), task=task, task_hash=task_hash, seed=seed)
    elif folder.exists():
        _refuse_foreign(folder)


def _refuse_other_task(folder: Path, found: DatasetInfo, *, task: str, task_hash: str, seed: int) -> None:
    if found.task != task:
        raise InputError(f"holds a dataset of task '{found.task}'", where=str(folder), instead=OTHER_OUT)
    if found.task_hash != task_hash:
        what = f"holds a dataset of another version of task '{found.task}'"
        raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, or restore the task file")
    if found.seed != seed:
        what = f"holds a dataset of seed {found.seed}, not {seed}"
        raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, or --seed {found.seed}")
    ledger = folder / LEDGER_NAME
    if found.episode_count and not (ledger.exists() and ledger.stat().st_size):
        state = "empty" if ledger.exists() else "missing"
        what = f"holds {found.episode_count} episodes but its {LEDGER_NAME} is {state}"
        raise InputError(what, where=str(folder), instead=f"restore it from a copy, or {OTHER_OUT}")


def _refuse_other_inputs(folder: Path, found: DatasetInfo, wanted: DatasetInfo) -> None:
    for name in sorted({*found.inputs, *wanted.inputs}):
        then, now = (inputs.get(name) or "none" for inputs in (found.inputs, wanted.inputs))
        if then != now:
            what = f"holds a dataset made with another {name} ({then[:16]}, now {now[:16]})"
            raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, or restore what it was made with")


def _refuse_foreign(folder: Path) -> None:
    strangers = sorted(path.name for path in folder.iterdir())
    if strangers:
        what = f"holds '{strangers[0]}' and no {INFO_NAME}: not a dataset"
        raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, new or empty")
