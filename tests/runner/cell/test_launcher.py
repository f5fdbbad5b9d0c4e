from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nimbus.runner.cell import launcher
from nimbus.runner.cell.launcher import _Supervisor, run_cell
from nimbus.runner.cell.start_run import opening_seconds
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import Alive, to_bytes
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.system import processes


def test_a_supervisor_that_asks_for_patience_is_not_taken_for_hung() -> None:
    supervisor = object.__new__(_Supervisor)
    supervisor.channel, theirs = pair()
    theirs.send(to_bytes(Alive()))
    supervisor.listen()
    assert abs(supervisor.last_beat - time.monotonic()) < 5
    theirs.send(to_bytes(Alive(patience=900.0)))
    supervisor.listen()
    assert supervisor.last_beat > time.monotonic() + 890


@pytest.mark.parametrize(
    ("state", "silence", "is_hung"), [("S", 7, False), ("S", 9, True), ("D", 11, False), ("D", 121, True)]
)
def test_a_silent_supervisor_is_hung_unless_its_disk_is(
    monkeypatch: pytest.MonkeyPatch, state: str, silence: float, is_hung: bool
) -> None:
    supervisor = object.__new__(_Supervisor)
    supervisor.last_beat, supervisor.process = 0.0, SimpleNamespace(pid=1)  # type: ignore[assignment]
    monkeypatch.setattr(processes, "_stat", lambda pid: [state, "0"])
    assert supervisor.is_hung(silence) is is_hung


def test_the_last_hung_supervisor_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"_SILENCE": 0.0, "_STARTING": 0.0, "_MOST_ENDS": 2}.items():
        monkeypatch.setattr(launcher, name, value)
    ended = run_cell(CellSpec(folder=str(tmp_path)), watch=lambda: 0)
    assert (ended.state, ended.line) == ("failed", "the supervisor died 2 times in a row (killed by SIGKILL)")
    assert capsys.readouterr().err == "the supervisor sent nothing for 0 s; it was killed and restarted\n"


def test_a_large_ledger_may_take_long_to_open(tmp_path: Path) -> None:
    assert opening_seconds(str(tmp_path)) == 0.0, "there is none yet"
    with (tmp_path / "ledger.sqlite").open("wb") as ledger:
        ledger.truncate(2_000_000_000)
    assert opening_seconds(str(tmp_path)) > 600
