from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nimbus.datagen.errors import StoreAwayError
from nimbus.runner.cell import run_loop, supervisor
from nimbus.runner.cell.supervisor import Supervisor
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import Ended, Loaded, to_bytes
from nimbus.runner.cell.transport.spec import Origin
from tests.support.cells import make_spec


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a supervisor without a fork server, and the loops that it starts."""
    before, begun = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    threshold = gc.get_threshold()
    monkeypatch.setattr(Supervisor, "_start_fork_server", lambda self: None)
    ours, theirs = pair()
    made: Any = Supervisor(make_spec(tmp_path / "data"), theirs)
    made.fork_server, made._fork_server_pid = theirs, 0
    made._fork_server_due, made._refusal, made._is_ready, made._loaded = None, None, True, SimpleNamespace()
    yield made
    signal.signal(signal.SIGTERM, before)
    signal.signal(signal.SIGINT, begun)
    signal.set_wakeup_fd(-1)
    gc.unfreeze()
    gc.set_threshold(*threshold)
    for channel in (ours, theirs):
        channel.close()


def test_a_store_that_is_away_is_asked_again(
    idle: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unreachable store once ended the run, although the files of the dataset can wait for the store."""
    answers: list[Any] = [StoreAwayError("the store does not answer", where="s3://b/x")] * 2
    ready: list[object] = []
    answers.append(
        SimpleNamespace(fork_server_ready=ready.append, go_on=lambda now, is_tick: Ended(code=0, state="done"))
    )

    def begin(*_: object, **__: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(run_loop, "RunLoop", begin)
    now = time.monotonic()
    assert idle._go_on(now, is_tick=True) is None and len(answers) == 2
    assert idle._go_on(now, is_tick=True) is None and len(answers) == 2
    assert idle._go_on(now + 2 * supervisor._AWAY, is_tick=True) is None and len(answers) == 1
    assert idle._go_on(now + 4 * supervisor._AWAY, is_tick=True) == Ended(code=0, state="done")
    assert ready == [idle.fork_server]
    assert capsys.readouterr().err.splitlines() == ["s3://b/x: the store does not answer; the run waits for it"]


def test_a_run_that_waits_for_its_store_can_be_stopped(idle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: object, **__: object) -> None:
        raise StoreAwayError("the store does not answer", where="s3://b/x")

    monkeypatch.setattr(run_loop, "RunLoop", begin)
    assert idle._go_on(time.monotonic(), is_tick=True) is None
    os.kill(os.getpid(), signal.SIGTERM)
    assert idle._go_on(time.monotonic(), is_tick=True).state == "interrupted"


def test_compilation_has_as_much_time_as_loading(idle: Any) -> None:
    """Without a cache, the kernels of a GPU or of a busy machine take minutes."""
    theirs, idle.fork_server = pair()
    idle._loaded, idle._fork_server_due = None, time.monotonic() + 1.0
    origin = Origin(task="", task_hash="", seed=0)
    theirs.send(to_bytes(Loaded(origin=origin, has_planner=True, load_time=0.0, compiles=True)))
    idle._read_fork_server()
    assert idle._fork_server_due > time.monotonic() + supervisor._LOADING / 2
    for channel in (theirs, idle.fork_server):
        channel.close()
