"""Cell of a node for one task. The agent passes episodes to it in a file, and reads results from its ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular, read_text
from nimbus.datagen.files.codec import parse_json
from nimbus.datagen.files.own_files import open_shared, own_path, refuse_links, remove_file
from nimbus.datagen.store.info import INFO_NAME, read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeStatus, Fault
from nimbus.datagen.store.remote.uploads import has_files
from nimbus.runner.cell.devices import select_devices, select_instances
from nimbus.runner.cell.feed import write_feed
from nimbus.runner.cell.queue.scheduler import default_split
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cluster.messages import CellTask
from nimbus.runner.cluster.outbox import CellResult
from nimbus.runner.cluster.reported_rows import check_rows
from nimbus.runner.monitor.status import FILE_NAME as STATUS_NAME
from nimbus.runner.monitor.status import Status, read_status
from nimbus.runner.system.child_module import module_command, module_environment
from nimbus.runner.system.processes import cell_tag, describe, sweep

_TYPICAL = (1.0, 4.0)
"""Assumed times for planning and for rendering an episode before measurements [s]."""
_ORIGIN = ("credits", "meanings", "inputs", "tasks")
"""Fields of ``dataset.json`` that are not sent: the head knows them from the task, and with many assets they are
large."""
_MOST_ENDS = 5
"""Number of exits without a result after which a cell is not restarted."""


class NodeCell:
    """Cell in child processes of the agent.

    Args:
        task: Task of the cell.
        folder: Folder of the node; the cell's dataset is a folder in it.
        slots: Number of workers, unless the task sets one.

    Raises:
        InputError: The cell's dataset has links, or its ledger is damaged. An earlier run left it, or another user
            made it.
    """

    def __init__(self, task: CellTask, folder: Path, *, slots: int) -> None:
        self.task, self.folder = task, folder / task.group
        refuse_links(self.folder)
        if (self.folder / LEDGER).exists():
            Ledger(self.folder, read_only=True).close()  # checks its pages, which later readers of this run do not
        self.failure = ""
        """Reason why the cell cannot work on this node; empty if it can."""
        self._feed = folder / f"{task.group}.feed.json"
        self._log = folder / f"{task.group}.log"
        spec = CellSpec.from_text(task.spec)
        workers = spec.resources.workers or default_split(slots, *_TYPICAL)
        self.slots = sum(workers)
        self.spool_bytes = spec.resources.spool_bytes
        """Limit on the size of results that wait for upload [bytes]; 0 for no limit."""
        self._spec = replace(
            spec,
            folder=str(self.folder),
            feed=str(self._feed),
            resources=replace(spec.resources, workers=workers, spool_bytes=0),
        )
        try:
            devices = select_devices(task.gpus, device=spec.device, simulator=spec.simulator, planner=spec.planner)
            instances = select_instances(task.gpus, simulator=spec.simulator, planner=spec.planner)
            self._spec = replace(self._spec, gpus=devices, instances=instances)
        except InputError as error:
            self.failure = str(error)
        self._process: subprocess.Popen[str] | None = None
        self._ledger: Ledger | None = None
        self._is_live = False
        """True if the ledger was opened while its writer was active; only then does the connection see new rows."""
        self._fed: tuple[int, ...] = ()
        self._is_closed = self._is_checked = False
        self._fault_count = self._ends = 0
        self._start_at = 0.0
        self._info_stamp = 0

    # Process

    def keep_running(self, now: float) -> None:
        """Start the cell if it is not running; repeated crashes delay the next start more and more.

        Raises:
            InputError: The log is a link, or no regular file.
        """
        if self._process and self._process.poll() is None:
            return
        if self._process:
            self._note_end(now)
        if self.failure or now < self._start_at:
            return
        self._is_closed = False
        write_feed(self._feed, self._fed)
        with os.fdopen(open_shared(self._log), "a") as log:
            check_regular(self._log)
            self._process = subprocess.Popen(
                module_command("nimbus.runner.cluster.cell_process", str(os.getpid())),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=module_environment(),
                start_new_session=True,
            )
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write(self._spec.to_text())
            self._process.stdin.close()

    def close_feed(self) -> None:
        """End the feed, so that the cell stops when it has no more work."""
        if not self._is_closed:
            self._is_closed = True
            write_feed(self._feed, self._fed, closed=True)

    def drain(self) -> None:
        """Stop the cell after its current episodes."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    @property
    def is_running(self) -> bool:
        """True if the launcher process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Id of the launcher process; 0 if it is not running."""
        return self._process.pid if self._process and self.is_running else 0

    def kill(self) -> None:
        """Kill all processes of the cell."""
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        sweep(cell_tag(self.folder))
        self._forget_process()

    # Work

    def feed(self, indices: Iterable[int]) -> None:
        """Set the indices of the episodes that the cell must produce; the caller omits settled ones."""
        wanted = tuple(indices)
        if wanted != self._fed:
            self._fed = wanted
            write_feed(self._feed, wanted, closed=self._is_closed)

    def is_fit(self) -> bool:
        """Return True if the cell has loaded the same task and inputs as the head.

        The result is False while the cell is loading. If task or inputs differ, ``failure`` is set in addition.
        """
        if self._is_checked:
            return True
        try:
            status = read_status(self.folder)
            if not self.is_running or status is None or status.state != "running" or "load" not in status.phases:
                return False
            info = read_info(self.folder)
        except InputError:
            return False
        task = self.task
        own = info.inputs_of(next(iter(info.tasks), ""))
        wanted = {name: value for name, value in task.inputs.items() if value}
        differing = sorted(name for name in own.keys() | wanted.keys() if own.get(name) != wanted.get(name))
        if info.task_hash != task.task_hash and not info.tasks:
            self.failure = f"task {task.group}: its task file differs from the head's"
        elif differing:
            self.failure = (
                f"task {task.group}: {differing[0]} differs from the head's; here: {own.get(differing[0], 'none')}"
            )
        self._is_checked = not self.failure
        return self._is_checked

    def results(self, indices: Iterable[int]) -> Iterator[CellResult]:
        """Yield the results of finished episodes, read from the cell's ledger.

        Args:
            indices: Episodes to check.

        Raises:
            InputError: The ledger has rows that no cell writes; it may come with a dataset of another user.
        """
        if (ledger := self._open_ledger()) is None:
            return
        variants = tuple(range(self._spec.variants))
        for index in indices:
            if len(ledger.finished(index, variants)) < len(variants):
                continue
            rows = tuple(ledger.attempts(index))
            states = [state for variant in variants if (state := ledger.episode(index, variant))]
            lost = [state for state in states if state.state is EpisodeStatus.QUARANTINED]
            stored = [row for row in rows if row.path]
            if not all(has_files(self.folder, row) for row in stored):
                continue  # its files were delivered and removed earlier; the cell makes the episode again
            try:
                check_rows(rows)
            except ValueError as error:
                raise InputError(str(error), where=str(self.folder), instead="remove this folder") from None
            self._ends = 0
            yield CellResult(index=index, attempts=rows, evidence=lost[0].detail if lost else "")

    def unreported(self) -> list[int]:
        """Return the settled episodes whose files exist: an earlier agent may have ended before it reported them."""
        if (ledger := self._open_ledger()) is None:
            return []
        return sorted({row.idx for row in ledger.stored() if has_files(self.folder, row)})

    def faults(self) -> list[Fault]:
        """Return the faults recorded since the last call."""
        if (ledger := self._open_ledger()) is None:
            return []
        rows = ledger.faults()
        new, self._fault_count = rows[self._fault_count :], len(rows)
        return new

    def info_text(self) -> str:
        """Return the content of ``dataset.json`` for the head; empty if it has not changed since the last call."""
        path = self.folder / INFO_NAME
        try:
            if (stamp := path.stat().st_mtime_ns) == self._info_stamp:
                return ""
            content = parse_json(read_text(path, follow=False))
            text = json.dumps({name: content[name] for name in content if name not in _ORIGIN}, separators=(",", ":"))
        except (OSError, ValueError, InputError):
            return ""
        self._info_stamp = stamp
        return text

    def forget_info(self) -> None:
        """Make the next :meth:`info_text` return the text again, because the report with it was not acknowledged."""
        self._info_stamp = 0

    def has_features(self) -> bool:
        """Return True if ``dataset.json`` describes episodes; it is written some seconds after their rows."""
        try:
            return bool(read_info(self.folder).features)
        except InputError:
            return False

    def remove_files(self, attempts: Iterable[Attempt]) -> None:
        """Remove the files of acknowledged attempts.

        Raises:
            InputError: A folder on their path is a link.
        """
        for attempt in attempts:
            for path in (*attempt.files, *((attempt.failure.path,) if attempt.failure else ())):
                if path:
                    remove_file(own_path(self.folder, path))

    def status(self) -> Status | None:
        """Return the cell's status; None if it cannot be read."""
        try:
            return read_status(self.folder)
        except InputError:
            return None

    def _open_ledger(self) -> Ledger | None:
        is_live = (self.folder / f"{LEDGER}-wal").exists()
        if self._ledger and self.is_running and not self._is_live:
            self._ledger.close()
            self._ledger = None
        if self._ledger is None and (self.folder / STATUS_NAME).exists() and (is_live or not self.is_running):
            with suppress(InputError):
                self._ledger, self._is_live = Ledger(self.folder, read_only=True, check_pages=False), is_live
        return self._ledger

    def _note_end(self, now: float) -> None:
        """Handle the end of the process: read its result, and schedule the next start or set ``failure``."""
        assert self._process and self._process.stdout
        code, lines = self._process.returncode, self._process.stdout.read().splitlines()
        ended: dict[str, object] = {}
        with suppress(ValueError, IndexError):
            ended = parse_json(lines[-1])
        sweep(cell_tag(self.folder))
        self._forget_process()
        if not (self._is_closed and ended.get("state") in ("done", "short")):  # an idle cell ends when its feed does
            self._ends += 1
        if ended.get("state") == "failed":
            self.failure = str(ended.get("line") or describe(code)).strip().splitlines()[-1]
        elif self._ends >= _MOST_ENDS:
            self.failure = f"the cell ended {self._ends} times without a result, the last time {describe(code)}"
        self._start_at = now + (min(10.0, 0.25 * 2**self._ends) if self._ends > 1 else 0.0)

    def _forget_process(self) -> None:
        if self._process and self._process.stdout:
            self._process.stdout.close()
        self._process = None
        self._is_checked = False
        if self._ledger:
            self._ledger.close()
            self._ledger = None
