"""Files with skills that end the process, or never end, when they are imported."""

from __future__ import annotations

import os
import signal
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
