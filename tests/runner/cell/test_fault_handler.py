"""Results of a worker's end: charged episodes, and faults in the ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cell.fault_handler import FaultHandler
from nimbus.runner.cell.queue.restart_backoff import Circuit
from nimbus.runner.cell.transport.messages import Idle, WorkerError
from nimbus.runner.cell.worker_pool import WorkerHandle
from tests.support.played_cell import Cell, open_cell


def make_handler(cell: Cell) -> FaultHandler:
    dispatcher = cell.dispatcher
    return FaultHandler(
        dispatcher, cell.pool, evidence=dispatcher.evidence, circuit=Circuit(same_limit=6), task_text="", run=1
    )


def end(cell: Cell, handler: FaultHandler, handle: WorkerHandle) -> None:
    """Let a worker end."""
    cell.pool.forget(handle)
    handler.handle_exit(handle, "killed by SIGKILL")


def die_of_bug(cell: Cell, handler: FaultHandler) -> None:
    """Start a worker that ends at its first episode, with the same exception as all other workers."""
    handle = cell.employ()
    (lease,) = cell.dispatcher.work.held_by(handle.number)
    cell.pool.heartbeats.writer(handle.row).phase("plan", index=lease.index, lease=lease.number)
    handle.trouble = WorkerError(sort="exception", line="hover.py:29: AttributeError: pse", same="a")
    end(cell, handler, handle)


def test_poison_stays_known_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_cell(tmp_path, episodes=1, variants=1) as cell:
        handler = make_handler(cell)
        for _ in range(2):
            die_of_bug(cell, handler)
        with monkeypatch.context() as patch, pytest.raises(StorageError):
            patch.setattr(cell.dataset, "quarantine", refuse)
            die_of_bug(cell, handler)
        assert cell.dispatcher.evidence.deaths(0) == 3 and cell.dispatcher.work.isolated_roles
        die_of_bug(cell, handler)
        assert cell.dispatcher.is_done and cell.dispatcher.progress.status.quarantined == 1


def refuse(*_: object, **__: object) -> None:
    raise StorageError("no space left")


def test_an_order_that_was_never_read_charges_no_episode(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=1) as cell:
        handler, handle = make_handler(cell), cell.employ()
        cell.pool.heartbeats.writer(handle.row).phase("wait", index=-1, lease=0)
        end(cell, handler, handle)
        assert cell.dispatcher.evidence.deaths(0) == 0 and handler.counts == {"sigkill": 1}
        assert cell.employ().orders == 1, "the episode is there for the next one"


def test_an_episode_without_a_result_is_charged(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=1) as cell:
        handler, handle = make_handler(cell), cell.employ()
        cell.pool.heartbeats.writer(handle.row).phase("wait", index=-1, lease=0)
        cell.dispatcher.take(handle, Idle(done=1))
        end(cell, handler, handle)
        assert cell.dispatcher.evidence.deaths(0) == 1 and handler.counts == {"no_result": 1}


def test_an_incident_names_the_row_as_the_ledger_does(tmp_path: Path) -> None:
    """Workers are numbered over the whole run; their rows are reused."""
    with open_cell(tmp_path, episodes=2, variants=1) as cell:
        handler = make_handler(cell)
        die_of_bug(cell, handler)
        die_of_bug(cell, handler)
    ledger = Ledger(tmp_path / "data", read_only=True)
    faults = ledger.faults()
    ledger.close()
    told = [json.loads((tmp_path / "data" / one.incident / "incident.json").read_text()) for one in faults]
    assert [str(one["worker"]) for one in told] == [one.worker for one in faults] == ["0", "0"]


def test_a_fault_says_that_the_episode_is_repeated(tmp_path: Path) -> None:
    """The third equal exception gives the episode up, so that this line makes no such promise."""
    with open_cell(tmp_path, episodes=1, variants=1) as cell:
        handler = make_handler(cell)
        for _ in range(3):
            die_of_bug(cell, handler)
        lines = [
            event.text for event in cell.dispatcher.progress.status.events if event.kind in ("fault", "quarantine")
        ]
    fault = "exception in plan of episode 0: hover.py:29: AttributeError: pse"
    assert [line.partition(": ")[2] for line in lines[:2]] == [f"{fault}; the episode is repeated"] * 2
    assert lines[2].endswith(fault) and lines[3].startswith("episode 0 given up")


def test_work_that_was_never_begun_is_repeated(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=1) as cell:
        handler, handle = make_handler(cell), cell.employ()
        cell.pool.heartbeats.writer(handle.row).phase("wait", index=-1, lease=0)
        end(cell, handler, handle)
        assert cell.dispatcher.progress.status.events[-1].text.endswith("; its work is repeated")
