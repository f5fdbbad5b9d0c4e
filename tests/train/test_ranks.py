"""Ranks are restarted when one dies or hangs, and end with their monitoring process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.train.ranks import Ranks
from tests.support import ROOT

RANK = """
import os, signal, sys, time
from pathlib import Path
from nimbus.train.ranks import own_rank, write_heartbeat
rank, ranks = own_rank()
folder = Path(sys.argv[1])
starts = folder / f"starts-{rank}"
starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
begin = len(starts.read_text())
for step in range(begin, 100):
    write_heartbeat(folder, rank, step)
    ACTION
"""
WATCH = """
import sys
from pathlib import Path
from nimbus.train.ranks import Ranks
sys.exit(Ranks([sys.executable, *sys.argv[1:]], count=2, folder=Path(sys.argv[2]), hang=60).run())
"""


def watched(folder: Path, action: str, *, hang: float = 60.0, count: int = 2) -> int:
    script = folder / "rank.py"
    script.write_text(RANK.replace("ACTION", action))
    return Ranks([sys.executable, str(script), str(folder)], count=count, folder=folder, hang=hang, start=120).run()


def starts(folder: Path) -> int:
    return len((folder / "starts-1").read_text())


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "exts" / "nimbus.datagen"))


def test_all_start_again_when_one_dies(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    action = "if begin < 3 and rank: os.kill(os.getpid(), 9)\n    if begin == 3: sys.exit(PLACE)\n    time.sleep(0.02)"
    place = (
        "os.environ.get('GLOO_SOCKET_IFNAME') != 'lo'" if sys.platform == "linux" else "0"
    )  # no other machine can connect
    assert watched(tmp_path, action.replace("PLACE", place)) == 0
    assert starts(tmp_path) == 3
    assert capfd.readouterr().err == "rank 1 ended with -9: all ranks restart\n" * 2


@pytest.mark.slow
def test_a_hung_rank_is_noticed(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    action = "if begin == 1 and rank: os.kill(os.getpid(), signal.SIGSTOP)\n    time.sleep(0.02)"
    assert watched(tmp_path, action, hang=5.0) == 0
    assert starts(tmp_path) == 2 and "rank 1 has been hanging since step 1: all ranks" in capfd.readouterr().err


def test_ranks_that_come_no_further_are_given_up(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert watched(tmp_path, "write_heartbeat(folder, rank, 7); sys.exit(5)", count=1) == 1
    assert len((tmp_path / "starts-0").read_text()) == 6
    assert "rank 0 ended with 5, and 5 starts in a row made no progress: giving up" in capfd.readouterr().err


def test_bad_input_starts_nothing_again(tmp_path: Path):
    assert watched(tmp_path, "sys.exit(2)") == 2
    assert {path.read_text() for path in tmp_path.glob("starts-*")} == {"x"}


def test_ranks_change_nothing_through_links(tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "heartbeat-0").write_text("7")
    (out / "lock").symlink_to(tmp_path / "made")
    with pytest.raises(InputError, match="the folder contains links, so continuing in it could change files elsewhere"):
        Ranks(["true"], count=1, folder=out).run()
    assert (out / "heartbeat-0").read_text() == "7" and not (tmp_path / "made").exists()


def test_a_stop_reaches_all_ranks_once(tmp_path: Path):
    script = tmp_path / "rank.py"
    ends = "signal.signal(15, lambda *_: ((folder / f'end-{rank}').touch(), sys.exit(0)))\n    time.sleep(0.1)"
    script.write_text(RANK.replace("ACTION", ends))
    line = [sys.executable, "-c", WATCH, str(script), str(tmp_path)]
    process = subprocess.Popen(line)
    while not ((tmp_path / "heartbeat-0").exists() and (tmp_path / "heartbeat-1").exists()):
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert len(list(tmp_path.glob("end-*"))) == 2


def test_ranks_end_with_a_killed_parent(tmp_path: Path):
    """The ranks also hold the lock of the folder, which must soon be released."""
    script = tmp_path / "rank.py"
    script.write_text(RANK.replace("ACTION", "(folder / f'pid-{rank}').write_text(str(os.getpid())); time.sleep(0.5)"))
    process = subprocess.Popen([sys.executable, "-c", WATCH, str(script), str(tmp_path)])
    while len(list(tmp_path.glob("pid-*"))) < 2:
        time.sleep(0.05)
    time.sleep(0.2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nimbus.train.ranks._EXIT_SECONDS", 0.2)
        with pytest.raises(
            InputError, match="another training run uses this folder; wait until it has finished, or give"
        ):
            Ranks(["true"], count=1, folder=tmp_path).run()
    process.kill()
    process.wait()
    pids = [int(path.read_text()) for path in tmp_path.glob("pid-*")]
    assert Ranks(["true"], count=1, folder=tmp_path).run() == 0
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")]
