from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nimbus.datagen import machine
from nimbus.runner.system import processes
from nimbus.runner.system.processes import ALIVE, TAG

IMPORTS = """
import os, signal, subprocess, sys, time
from nimbus.runner.system import processes
"""


@contextlib.contextmanager
def python(script: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start a Python process with the cell's modules and readable output; it is ended after the test."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    line = [sys.executable, "-c", IMPORTS + script]
    with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def say(process: subprocess.Popen[str]) -> int:
    """Return the number that a process prints next."""
    assert process.stdout
    return int(process.stdout.readline())


def forked(work: Callable[[], object]) -> int:
    """Fork a child that calls a function and then sleeps."""
    pid = os.fork()
    if pid == 0:
        faulthandler.disable()
        try:
            work()
            signal.pause()
        finally:
            os._exit(99)
    return pid


def is_gone(pid: int, *, within: float = 60.0) -> bool:
    """Check that a process of any parent ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        return bool(poll.poll(within * 1000))
    finally:
        os.close(descriptor)


def tag() -> str:
    """Return a unique tag."""
    return f"/test/{uuid.uuid4()}"


@pytest.mark.parametrize(
    ("end", "how"),
    [
        (lambda: os._exit(0), "exit code 0"),
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "killed by SIGSEGV"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL"),
        (lambda: os.kill(os.getpid(), signal.SIGRTMIN + 1), "killed by signal 35"),
    ],
)
def test_reaping_says_how_a_child_ended(end: Callable[[], object], how: str) -> None:
    pid = forked(end)
    assert processes.reap(pid) == how
    assert processes.reap(pid) == "gone"


def test_reaping_a_child_that_lives_does_not_wait_for_ever() -> None:
    pid = forked(lambda: None)
    begin = time.monotonic()
    assert processes.reap(pid, patience=0.05) == ALIVE
    assert time.monotonic() - begin < 30
    processes.kill_group(pid)
    assert processes.reap(pid) == "killed by SIGKILL"
    processes.kill_group(pid)


def test_a_pidfd_becomes_readable_when_the_process_ends() -> None:
    pid = forked(lambda: None)
    descriptor = processes.open_pidfd(pid)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert not poll.poll(0)
    processes.kill_group(pid)
    assert poll.poll(60_000)
    processes.reap(pid)
    os.close(descriptor)
    with pytest.raises(ProcessLookupError):
        processes.open_pidfd(pid)


def test_killing_a_group_reaches_what_its_leader_started() -> None:
    script = "os.setsid(); print(subprocess.Popen(['sleep', '100']).pid, flush=True); signal.pause()"
    with python(script) as leader:
        child = say(leader)
        processes.kill_group(leader.pid)
        assert processes.reap(leader.pid) == "killed by SIGKILL" and is_gone(child)


@pytest.mark.parametrize("pid", [-1, 0, 1, os.getpgrp()])
def test_some_processes_are_never_killed(pid: int) -> None:
    with pytest.raises(ValueError, match="must not be killed"):
        processes.kill_group(pid)
    with pytest.raises(ValueError, match="must not be killed"):
        processes.kill_group(os.getpid())


def test_a_child_dies_with_its_parent() -> None:
    script = """
parent = os.getpid()
pid = os.fork()
if pid == 0:
    os.setsid()
    processes.die_with_parent(parent)
    print(os.getpid(), flush=True)
    while True: time.sleep(1)
signal.pause()
"""
    with python(script) as parent:
        child = say(parent)
        assert not is_gone(child, within=0)
        parent.kill()
        assert is_gone(child)


def test_a_child_whose_parent_is_already_another_dies_at_once() -> None:
    pid = forked(lambda: processes.die_with_parent(os.getppid() + 1))
    assert processes.reap(pid) == "killed by SIGKILL"


SUBREAPER = """
processes.become_subreaper()
middle = os.fork()
if middle == 0:
    os.setsid()
    {middle}
    os._exit(0)
os.waitpid(middle, 0)
"""


def test_a_worker_forked_through_a_middle_process_dies_with_the_one_that_adopted_it() -> None:
    middle = """
    between = os.getpid()
    if os.fork() == 0:
        while os.getppid() == between: time.sleep(0.001)
        processes.die_with_parent(os.getppid())
        print(os.getpid(), os.getppid(), flush=True)
        while True: time.sleep(1)
"""
    with python(SUBREAPER.format(middle=middle) + "signal.pause()") as parent:
        assert parent.stdout
        worker, adopter = map(int, parent.stdout.readline().split())
        assert adopter == parent.pid and not is_gone(worker, within=0)
        parent.kill()
        assert is_gone(worker)


def test_grandchildren_that_left_the_session_come_to_the_subreaper_and_end_there() -> None:
    middle = "subprocess.Popen(['setsid', 'sleep', '100'])"
    rest = """
known = subprocess.Popen(['sleep', '100'])
found = []
deadline = time.monotonic() + 60
while not found and time.monotonic() < deadline: found = processes.orphans({known.pid})
print(len(found), flush=True)
for pid in found:
    processes.kill_group(pid)
    print(['killed by SIGKILL'].index(processes.reap(pid)), flush=True)
print(len(processes.orphans({known.pid})), flush=True)
left = processes.orphans(set())
known.kill()
print(int(left == [known.pid]), flush=True)
"""
    with python(SUBREAPER.format(middle=middle) + rest) as parent:
        assert [say(parent) for _ in range(4)] == [1, 0, 0, 1]


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(3, 50)
        os.chdir('/')
        print(os.getpid(), flush=True)
        {then}
    os._exit(0)
signal.pause()
"""


@pytest.mark.parametrize("then", ["signal.pause()", "os.execvp('sleep', ['sleep', '100'])"], ids=["forked", "executed"])
def test_a_daemon_that_forked_twice_is_swept_and_nobody_else(then: str) -> None:
    mark, other = tag(), tag()
    script = DAEMON.format(then=then)
    with python(script, **{TAG: mark}) as first, python(script, **{TAG: other}) as second:
        daemon, stranger = say(first), say(second)
        first.kill()
        assert not is_gone(daemon, within=0.05)
        assert processes.sweep(mark) == 1
        assert is_gone(daemon) and not is_gone(stranger, within=0)
        assert processes.sweep(mark) == 0
        assert processes.sweep(other) == 2 and is_gone(stranger) and second.wait() == -signal.SIGKILL


def test_a_tag_that_only_begins_alike_is_another() -> None:
    mark = tag()
    with python("print(1, flush=True); signal.pause()", **{TAG: f"{mark}/deeper"}) as process:
        say(process)
        assert processes.sweep(mark) == processes.sweep(mark[:-1]) == 0
        assert process.poll() is None


def test_what_belongs_to_another_launcher_that_lives_is_spared() -> None:
    mark, script = tag(), "print(1, flush=True); signal.pause()"
    with (
        python(script) as launcher,
        python(script, **{TAG: mark, processes.LAUNCHER: str(launcher.pid)}) as other,
        python(script, **{TAG: mark, processes.LAUNCHER: str(os.getpid())}) as own,
    ):
        assert [say(process) for process in (launcher, other, own)] == [1, 1, 1]
        assert processes.sweep(mark) == 1
        assert own.wait() == -signal.SIGKILL and other.poll() is None
        launcher.kill()
        launcher.wait()
        assert processes.sweep(mark) == 1
        assert other.wait() == -signal.SIGKILL


def test_who_sweeps_and_its_ancestors_are_spared() -> None:
    mark = tag()
    script = f"""
child = os.fork()
if child == 0:
    print(processes.sweep({mark!r}), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(7, flush=True)
"""
    with python(script, **{TAG: mark}) as process:
        assert [say(process), say(process)] == [0, 7]


def test_processes_that_start_others_while_they_are_swept_do_not_get_away() -> None:
    mark = tag()
    script = "while True: print(subprocess.Popen(['sleep', '100']).pid, flush=True); time.sleep(0.05)"
    with python(script, **{TAG: mark}) as process:
        assert say(process) != say(process)
        assert processes.sweep(mark) >= 2
        assert process.wait() == -signal.SIGKILL
        assert processes.sweep(mark) == 0


def test_a_process_that_executes_programs_all_the_time_does_not_get_away(tmp_path: Path) -> None:
    """The environment of a process is empty while the kernel executes a program in it."""
    script, mark = tmp_path / "again.sh", tag()
    script.write_text(f"#!/bin/sh\nexec {script}\n")
    script.chmod(0o755)
    for _ in range(20):
        with subprocess.Popen([script], env={TAG: mark}) as process:
            killed = processes.sweep(mark)
            process.kill()
        assert killed == 1


def test_a_process_without_an_environment_is_spared() -> None:
    with subprocess.Popen(["sleep", "9"], env={}) as process:
        killed = processes.sweep(tag())
        process.kill()
    assert killed == 0


def test_the_tag_of_a_cell_is_the_real_path_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert processes.cell_tag(tmp_path / "link") == processes.cell_tag(f"{tmp_path}/real/") == str(tmp_path / "real")


def test_memory_of_a_process_is_what_it_touched() -> None:
    script = "a = bytearray(1); print(1, flush=True); input(); a = bytearray(b'x') * (64 << 20); print(1); input()"
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    line = [sys.executable, "-c", script]
    with subprocess.Popen(line, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        say(process)
        before = processes.resident_bytes(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        say(process)
        assert 60 << 20 < processes.resident_bytes(process.pid) - before < 80 << 20
        process.kill()
    assert processes.resident_bytes(process.pid) == 0
    assert processes.resident_bytes(os.getpid()) < machine.total_memory()


def test_threads_of_libraries_are_counted() -> None:
    with python("print(processes.thread_count())", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1") as process:
        assert say(process) == 1
    with python(
        "import threading\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
        "print(processes.thread_count(), flush=True)"
    ) as process:
        assert say(process) == 2


def test_cores_are_those_of_the_affinity() -> None:
    one = min(os.sched_getaffinity(0))
    with python(
        f"os.sched_setaffinity(0, {{{one}}}); from nimbus.datagen import machine; print(machine.usable_cores())"
    ) as process:
        assert say(process) == 1


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("150000 100000", 2), ("10000 100000", 1), ("300000 100000", 3), ("9900000 100000", 8)],
)
def test_cores_are_limited_by_the_control_group_above(
    quota: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "cpu.max").write_text(quota + "\n")
    (inner / "cpu.max").write_text("max 100000\n")
    monkeypatch.setattr(machine, "_groups", lambda controller: iter([(tmp_path, "a/b")]))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    assert machine.usable_cores() == cores


def test_limits_of_either_version_of_control_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "new": {"memory.max": "1000000", "memory.current": "300000", "memory.stat": "anon 1\ninactive_file 100000\n"},
        "old": {
            "memory.limit_in_bytes": "900000",
            "memory.usage_in_bytes": "400000",
            "memory.stat": "inactive_file 1\ntotal_inactive_file 50000\n",
            "cpu.cfs_quota_us": "250000",
            "cpu.cfs_period_us": "100000",
        },
        "free": {"memory.max": "max", "memory.current": "7", "memory.stat": ""},
    }
    for name, contents in files.items():
        (tmp_path / name).mkdir()
        for file, text in contents.items():
            (tmp_path / name / file).write_text(text)
    monkeypatch.setattr(machine, "_groups", lambda controller: iter([(tmp_path, name) for name in files]))
    assert machine.memory_limits() == [1_000_000, 900_000]
    assert machine.memory_headrooms() == [800_000, 550_000]
    assert machine.cpu_quota() == 2.5
    assert machine.total_memory() == 900_000
