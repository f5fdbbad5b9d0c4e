from __future__ import annotations

import time
from pathlib import Path

from nimbus.runner.cell.launcher import _Supervisor
from nimbus.runner.cell.start_run import opening_seconds
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import Alive, to_bytes


def test_a_supervisor_that_asks_for_patience_is_not_taken_for_hung() -> None:
    supervisor = object.__new__(_Supervisor)
    supervisor.channel, theirs = pair()
    theirs.send(to_bytes(Alive()))
    supervisor.listen()
    assert abs(supervisor.heard - time.monotonic()) < 5
    theirs.send(to_bytes(Alive(patience=900.0)))
    supervisor.listen()
    assert supervisor.heard > time.monotonic() + 890


def test_a_large_ledger_may_take_long_to_open(tmp_path: Path) -> None:
    assert opening_seconds(str(tmp_path)) == 0.0, "there is none yet"
    with (tmp_path / "ledger.sqlite").open("wb") as ledger:
        ledger.truncate(2_000_000_000)
    assert opening_seconds(str(tmp_path)) > 600
