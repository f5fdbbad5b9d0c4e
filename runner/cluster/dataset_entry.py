"""Commit of node results to a task's dataset; the first result of an episode is kept, with its rows and files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.info import DatasetInfo, merge
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import Fault, Run
from nimbus.datagen.store.remote.cache_root import address_of
from nimbus.runner.cell.missing_work import missing_of
from nimbus.runner.cell.start_run import dataset_of
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.delivery import UploadedEpisode, attempt_key, info_of
from nimbus.runner.cluster.job import JobTask
from nimbus.runner.cluster.messages import EpisodeReport
from nimbus.runner.cluster.pending_work import ItemState
from nimbus.runner.cluster.store_delivery import open_entry, upload_place
from nimbus.runner.monitor.progress import Progress, line, stored_of


class DatasetEntry:
    """Dataset of one task, to which the head commits the results of nodes.

    Args:
        task: The task.

    Raises:
        InputError: The folder cannot be used, another run writes into it, or this machine is not the head of the
        cluster.
    """

    def __init__(self, task: JobTask) -> None:
        if task.address and address_of(Path(task.spec.folder)) != task.address:
            what = f"the run is not on the head's machine; the head writes to {task.address}"
            instead = "run the same command on the head of the cluster, or give --cluster http://HOST:8265"
            raise InputError(what, where="--cluster", instead=instead)
        self.task = task
        self.missing: set[tuple[str, int]] = set()
        """Groups and indices of the episodes of the last commit whose files were missing."""
        self.doubled = 0
        """Number of results that arrived for settled episodes."""
        self.progress: tuple[Progress, ...] = ()
        self.dataset: Dataset = dataset_of(task.origin, task.spec.folder)
        self.run: Run = self.dataset.ledger.start_run(
            mode="cluster", settings={"seed": task.spec.seed, "reach": task.origin.reach}
        )
        self._started = time.monotonic()
        self._closing = ExitStack()
        self._entry = open_entry(self.dataset, self._closing)
        self._known_faults = {
            (*row.worker.split("/", 1), row.time, row.kind, row.idx)
            for row in self.dataset.ledger.faults()
            if "/" in row.worker
        }
        """Node, worker, time, kind and episode of each fault, also of those from before this head was restarted."""
        self._learned: DatasetInfo | None = None
        """Description of the episodes, merged from those of all nodes; None until a node sends one."""

    @property
    def upload_place(self) -> str:
        """Destination of the nodes' uploads."""
        return upload_place(self.dataset.folder)

    def sign(self, name: str, method: str) -> str:
        """Return a URL that gives a node access to an object of the dataset; empty for a dataset in a folder.

        Raises:
            InputError: The credentials of the head do not suffice.
        """
        return self._entry.sign(name, method)

    def states(self) -> bytearray:
        """Return the state of each episode after earlier runs, by index."""
        spec, ledger = self.task.spec, self.dataset.ledger
        states = bytearray(spec.episodes)
        for index in ledger.touched(episodes=spec.episodes):
            if missing_of(ledger, spec, index) is None:
                states[index] = ItemState.SETTLED
        return states

    def enter(
        self,
        reports: Sequence[tuple[str, EpisodeReport]],
        infos: Sequence[tuple[str, str]],
        balance: Balance,
        now: float,
    ) -> None:
        """Commit the reports of episodes that are not settled yet, and settle those that are durable.

        Rows without a file and episodes are separate transactions. After an error, a second call with the same reports
        completes the rest.

        Args:
            reports: Name of the node and report, for each report.
            infos: Name of the node and content of its ``dataset.json``, for each report that contains it.
            balance: Balance in which the episodes are settled.
            now: Time of the monotonic clock [s].

        Raises:
            StorageError: The disk is full; the same reports may be sent again.
        """
        self._learn(infos)
        waiting = list(reports)
        while waiting:
            waiting = self._enter_once(waiting, balance, now)

    def describe(self, node: str, text: str) -> None:
        """Merge a node's ``dataset.json`` into that of the dataset, without an episode.

        Args:
            node: Name of the node.
            text: Content of the file.
        """
        self._learn([(node, text)])
        if self._learned:
            self.dataset.learn(self._learned)

    def record_faults(self, node: str, rows: Sequence[Fault]) -> list[Fault]:
        """Record faults of a node's cell, and return those not recorded before.

        A restarted agent reports all faults in the ledger of its cell again.
        """
        new: list[Fault] = []
        for row in rows:
            if (key := (node, row.worker, row.time, row.kind, row.idx)) not in self._known_faults:
                self._known_faults.add(key)
                new.append(row)
        self.dataset.fault(*(replace(row, worker=f"{node}/{row.worker}", run=self.run.id) for row in new))
        return new

    def open_count(self, index: int) -> int:
        """Return the number of variants of an episode that no node has settled."""
        missing = missing_of(self.dataset.ledger, self.task.spec, index)
        return len(missing.variants) if missing else 0

    def quarantine(self, index: int, evidence: dict[str, Any]) -> None:
        """Record that an episode is given up, with the evidence against it."""
        self.dataset.quarantine(index, range(self.task.spec.variants), evidence=evidence)

    def flush(self) -> None:
        """Write deferred rows; they stay deferred while the disk is full."""
        try:
            self.dataset.flush()
        except StorageError:
            return  # the next commit reports the full disk

    def close(self, state: str, *, startup_seconds: float = 0.0, cores: int = 0) -> None:
        """Record the end of the run, and close the dataset.

        Args:
            state: State of the run at its end.
            startup_seconds: Time until the first lease [s].
            cores: Largest number of cores that worked at a time.
        """
        wall = time.monotonic() - self._started
        try:
            run = replace(self.run, cores=cores)
            self.dataset.ledger.end_run(run, state=state, wall_seconds=wall, startup_seconds=startup_seconds)
        finally:
            self._closing.close()
            self.dataset.close()

    def _enter_once(
        self, reports: Sequence[tuple[str, EpisodeReport]], balance: Balance, now: float
    ) -> list[tuple[str, EpisodeReport]]:
        """Commit the first report of each episode; return the others.

        The others wait for this commit: only a settled episode makes them duplicates.
        """
        fresh: dict[int, tuple[str, EpisodeReport]] = {}
        later: list[tuple[str, EpisodeReport]] = []
        doubles: list[tuple[str, EpisodeReport]] = []
        for node, report in reports:
            if balance.is_settled(self.task.name, report.index):
                doubles.append((node, report))
            elif report.index in fresh:
                later.append((node, report))
            elif report.is_partial:
                self._enter_part(report)
            else:
                fresh[report.index] = (node, report)
        for index in self._keep_failures([report for _, report in fresh.values()]):
            del fresh[index]
        taken = self._enter_rows([report for _, report in fresh.values()])
        for index, (node, report) in fresh.items():
            wanted = {attempt.episode_id for attempt in report.attempts if attempt.path}
            if wanted - taken and missing_of(self.dataset.ledger, self.task.spec, index) is not None:
                self.missing.add((self.task.name, index))
                continue
            self.missing.discard((self.task.name, index))  # the files of an earlier report were missing
            balance.settled(node, report.lease, self.task.name, index, now, seconds=report.seconds)
        for node, report in doubles:
            self._note_double(node, report)
            balance.settled(node, report.lease, self.task.name, report.index, now)
        self._entry.discard([each for _, report in doubles for each in _uploaded(report, None)])
        return later

    def _enter_part(self, report: EpisodeReport) -> None:
        """Commit some of the rows of an episode."""
        if self._keep_failures([report]):
            return
        taken = self._enter_rows([report])
        if {attempt.episode_id for attempt in report.attempts if attempt.path} - taken:
            known = {attempt.episode_id for attempt in self.dataset.ledger.stored(report.index)}
            if {attempt.episode_id for attempt in report.attempts if attempt.path} - known:
                self.missing.add((self.task.name, report.index))

    def _enter_rows(self, reports: Sequence[EpisodeReport]) -> set[str]:
        """Commit rows, and count the new ones once they are durable; return the ids of the stored episodes."""
        rows = [attempt for report in reports for attempt in report.attempts if not attempt.path]
        if rows:
            indices = {row.idx for row in rows}
            known = {(row.episode_id, row.attempt) for index in indices for row in self.dataset.ledger.attempts(index)}
            self.dataset.record(rows)
            self._count([row for row in rows if (row.episode_id, row.attempt) not in known])
        stored = [each for report in reports for each in _uploaded(report, self._learned)]
        taken = self._entry.enter(stored) if stored else set()
        self._count([each.attempt for each in stored if each.attempt.path and each.attempt.episode_id in taken])
        return taken

    def _keep_failures(self, reports: Sequence[EpisodeReport]) -> set[int]:
        """Publish the kept failures of reports before their rows; return the indices of those with a missing file."""
        lost = self._entry.keep_failures([each for report in reports for each in _uploaded(report, None)])
        missing = {each.index for each in reports if lost & {attempt_key(attempt) for attempt in each.attempts}}
        self.missing.update((self.task.name, index) for index in missing)
        return missing

    def _note_double(self, node: str, report: EpisodeReport) -> None:
        """Compare a second result with the first, and record a fault if they differ: content must be deterministic."""
        self.doubled += 1
        first = {attempt.episode_id: attempt.sha256 for attempt in self.dataset.ledger.stored(report.index)}
        for attempt in report.attempts:
            if attempt.path and first.get(attempt.episode_id, attempt.sha256) != attempt.sha256:
                what = f"{attempt.episode_id} of node {node} differs from the stored one: not deterministic"
                values = {"time": time.time(), "run": self.run.id, "worker": node, "kind": "differs"}
                self.dataset.fault(Fault(**values, idx=report.index, detail=what))
                for progress in self.progress:
                    progress.tell(what, kind="fault")

    def _learn(self, infos: Sequence[tuple[str, str]]) -> None:
        """Merge the descriptions of nodes: each node describes only the episodes that it has made."""
        for node, text in infos:
            try:
                if info := info_of(text):
                    self._learned = merge(self._learned, info) if self._learned else info
            except (ValueError, InputError) as error:
                for progress in self.progress:
                    progress.tell(f"node {node}: {Path('dataset.json')}: {error}", kind="files")

    def _count(self, attempts: Sequence[Attempt]) -> None:
        for progress in self.progress:
            for attempt in attempts:
                stored = stored_of(attempt)
                progress.add(stored)
                progress.tell(line(stored, progress.status))


def _uploaded(report: EpisodeReport, learned: DatasetInfo | None) -> list[UploadedEpisode]:
    return [
        UploadedEpisode(
            attempt=attempt,
            staged=report.staged.get(attempt_key(attempt), ""),
            objects={name: report.objects[name] for name in _names(attempt) if name in report.objects},
            lease=report.lease,
            learned=learned,
        )
        for attempt in report.attempts
        if attempt.path or attempt.failure
    ]


def _names(attempt: Attempt) -> tuple[str, ...]:
    return (attempt.failure.path,) if attempt.failure else tuple(attempt.files)
