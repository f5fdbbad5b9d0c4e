from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import pytest

from nimbus.datagen.datasets.export.parts import make_all
from nimbus.datagen.errors import InputError, StorageError

SCRIPT = """
import os, time
from pathlib import Path
from nimbus.datagen.datasets.export.parts import make_all

def make(name):
    Path(name).write_text(str(os.getpid()))
    time.sleep(60)

if __name__ == "__main__":
    make_all(make, ["one", "two"], workers=2)
"""


def write(folder: Path, name: str) -> None:
    (folder / name).write_text(str(os.getpid()))


def fail(name: str) -> None:
    if name == "bad":
        raise StorageError("x" * 600, where="here", instead="make room")
    time.sleep(0.0 if name == "good" else 600.0)


def die(name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_item_is_made_and_counted(tmp_path: Path, workers: int) -> None:
    left: list[int] = []
    make_all(partial(write, tmp_path), ["a", "b", "c"], workers=workers, tell=left.append)
    assert left == [2, 1, 0] and sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]
    assert (str(os.getpid()) in {path.read_text() for path in tmp_path.iterdir()}) == (workers == 1)


def test_error_keeps_its_type_and_line_and_ends_the_others() -> None:
    begin = time.monotonic()
    with pytest.raises(StorageError) as caught:
        make_all(fail, ["good", "bad", "slow"], workers=2)
    assert str(caught.value) == str(StorageError("x" * 600, where="here", instead="make room"))
    assert (caught.value.where, caught.value.instead, caught.value.exit_code) == ("here", "make room", 1)
    assert time.monotonic() - begin < 500.0


def test_a_dead_process_is_an_error() -> None:
    with pytest.raises(BrokenProcessPool):
        make_all(die, ["a", "b"], workers=2)


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, env=env) as process:
        names = [tmp_path / "one", tmp_path / "two"]
        wait_until(lambda: all(path.exists() and path.read_text() for path in names))
        pids = [int(path.read_text()) for path in names]
        process.kill()
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def wait_until(condition) -> None:  # noqa: ANN001
    deadline = time.monotonic() + 300.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_input_error_survives_another_process() -> None:
    error = InputError("bad value 3", where="task.yaml:1", instead="write 4")
    again = copy.copy(error)  # by the same protocol
    assert (type(again), str(again), again.where, again.instead) == (InputError, str(error), "task.yaml:1", "write 4")
