"""The cell needs Linux, but its modules can be imported on any system, for runs in one process."""

from __future__ import annotations

import os
import subprocess
import sys

MODULES = (
    "cell.incidents",
    "cell.transport.channel",
    "cell.transport.memfd",
    "cell.transport.plan_codec",
    "cell.transport.shared_slots",
    "cell.worker.heartbeat",
    "system.processes",
)

ELSEWHERE = """
import importlib, os, select, signal, socket, sys, threading
for name in ("fcntl", "resource", "grp", "pwd"):
    sys.modules[name] = None
for module, names in {
    os: "memfd_create MFD_CLOEXEC pidfd_open posix_fallocate fork killpg getuid getpgrp sched_getaffinity waitpid",
    signal: "SIGKILL pidfd_send_signal",
    select: "poll epoll",
    socket: "AF_UNIX SOCK_SEQPACKET SCM_RIGHTS MSG_DONTWAIT MSG_NOSIGNAL MSG_CMSG_CLOEXEC CMSG_SPACE socketpair",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in sys.argv[1:]:
    importlib.import_module(f"nimbus.runner.{name}")
assert threading.active_count() == 1
"""


def test_the_modules_can_be_imported_where_there_is_no_linux() -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    # Their own imports work on every system, but not with this pretended one.
    script = f"import nimbus.datagen.stages, logging, numpy, subprocess\n{ELSEWHERE}"
    done = subprocess.run(
        [sys.executable, "-c", script, *MODULES], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
