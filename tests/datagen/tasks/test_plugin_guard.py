"""Skill files whose import ends the process, or never ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks import plugin_guard
from nimbus.datagen.tasks.plugins import import_folders


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\nos._exit(0)", "2: .*calls os._exit"),
        ("import os\nos.execv('/bin/true', ['true'])", "2: .*calls os.execv"),
        ("while True: pass", "1: .*does not end after"),
        ("import time\ntime.sleep(60)", "2: .*does not end after 5 s"),
        ("while True:\n    try:\n        1 / 0\n    except Exception:\n        pass", ".*does not end"),
    ],
)
def test_an_import_that_never_returns_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr(plugin_guard, "IMPORT_SECONDS", (0.5, 5.0))
    (tmp_path / "tap.py").write_text(text)
    with pytest.raises(InputError, match=f"tap.py:{message}"):
        import_folders([tmp_path])


def test_nothing_of_the_guard_stays_behind(tmp_path: Path) -> None:
    before = os._exit, signal.getsignal(signal.SIGALRM)
    with plugin_guard.guarded_import():
        assert os._exit is not before[0]
    assert (os._exit, signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_signals_while_the_guard_ends_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer fires again while the interruption propagates; afterwards, the guard must be removed completely."""
    before = signal.getsignal(signal.SIGPROF), signal.getsignal(signal.SIGALRM)
    set_timer = signal.setitimer

    def late(timer: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        if (timer, seconds) == (signal.ITIMER_PROF, 0.0):
            signal.raise_signal(signal.SIGPROF)
        return set_timer(timer, seconds, interval)

    with plugin_guard.guarded_import():
        monkeypatch.setattr(signal, "setitimer", late)
    monkeypatch.undo()
    assert (signal.getsignal(signal.SIGPROF), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == signal.getitimer(signal.ITIMER_PROF)[0] == 0.0


def test_an_endless_thread_of_an_import_ends(tmp_path: Path) -> None:
    """Python waits at its exit for all threads that are not daemons."""
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
    (tmp_path / "tap.py").write_text(text)
    code = "import sys\nfrom pathlib import Path\nfrom nimbus.datagen.errors import InputError\n"
    code += "from nimbus.datagen.tasks.plugins import import_folders\n"
    code += "try:\n    import_folders([Path(sys.argv[1])])\nexcept InputError as error:\n    print(error)\n"
    ended = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=120)
    assert "registers nothing" in ended.stdout
