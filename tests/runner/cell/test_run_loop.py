"""The run loop with workers that never start."""

from __future__ import annotations

import selectors
import time
from pathlib import Path

import pytest

from nimbus.runner.cell.run_loop import RunLoop
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import Loaded
from nimbus.runner.cell.transport.spec import CellSpec, Origin, Resources


def test_workers_that_start_are_not_waited_for(tmp_path: Path) -> None:
    """Starting workers have no work in progress, so a request to stop ends the run at once."""
    spec = CellSpec(folder=str(tmp_path / "data"), resources=Resources(workers=(1, 1), grace=30.0))
    loaded = Loaded(origin=Origin(task="", task_hash="", seed=0), has_planner=True, load_time=0.0)
    now = time.monotonic()
    with selectors.DefaultSelector() as selector:
        loop = RunLoop(
            spec,
            loaded,
            selector,
            fork_server_pid=0,
            drain_fork_server=lambda: None,
            started=time.time(),
            tick=0.1,
        )
        fork_server, _theirs = pair()
        loop.fork_server_ready(fork_server)
        loop.go_on(now, is_tick=True)
        assert len(loop.pool) == 2
        loop.drain(now)
        loop.go_on(now, is_tick=True)
        ended = loop.go_on(now + 5.0, is_tick=False)
        loop.close()
    assert ended and ended.state == "interrupted"


@pytest.mark.parametrize(("workers", "count"), [(2, 16), (7, 16), (8, 18), (32, 66), (64, 130)])
def test_every_worker_can_hold_a_plan_while_others_wait(workers: int, count: int) -> None:
    assert Resources().slot_count(workers) == count
    assert Resources(slots=4).slot_count(workers) == 4
