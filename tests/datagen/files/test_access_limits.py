"""Limits on files and connections of a process, each set in a process of its own, because they cannot be undone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.files.access_limits import landlock_version

pytestmark = pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")

BEGIN = """
import os, socket, subprocess, sys
from pathlib import Path
from nimbus.datagen.files.access_limits import AccessLimits, limit_access
folder = Path(sys.argv[1])
read, write, private = folder / "read", folder / "write", folder / "private"
"""
LIMITED = BEGIN + "assert limit_access(AccessLimits(read=(read,), write=(write,)))\n"


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    for name in ("read", "write", "private"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "file").write_text(name)
    command = [sys.executable, "-P", "-c", code, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "code",
    [
        "(read / 'file').read_text()",
        "os.listdir(read)",
        "(write / 'new').write_text('x'); (write / 'a').mkdir(); (write / 'new').rename(write / 'a' / 'b')",
        "(write / 'file').write_text('x'); os.truncate(write / 'file', 0); (write / 'file').unlink()",
        "subprocess.run(['/bin/cat', read / 'file'], check=True)",
        "import numpy, h5py",
        "from nimbus.datagen.files.scene_files import scene_folder; os.listdir(scene_folder('tasks'))",
        "from multiprocessing.shared_memory import SharedMemory; one = SharedMemory(create=True, size=8); one.unlink()",
        "os.stat(private / 'file')",  # existence is no secret to the kernel: only contents are
    ],
)
def test_what_was_named_can_be_used(tmp_path: Path, code: str):
    done = run(tmp_path, LIMITED + code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "(private / 'file').read_text()",
        "os.listdir(private)",
        "(read / 'file').write_text('x')",
        "(read / 'file').unlink()",
        "(private / 'new').write_text('x')",
        "(private / 'file').rename(write / 'taken')",
        "os.link(private / 'file', write / 'taken'); (write / 'taken').read_text()",
        "(write / 'link').symlink_to(private / 'file'); (write / 'link').read_text()",
        "subprocess.run(['/bin/cat', private / 'file'], check=True)",
        "(write / 'file').write_text('#!/bin/sh\\n'); (write / 'file').chmod(0o755); os.execv(write / 'file', ['x'])",
    ],
)
def test_everything_else_is_refused(tmp_path: Path, code: str):
    done = run(tmp_path, LIMITED + code)
    assert done.returncode != 0
    assert "ermission denied" in done.stderr or "EXDEV" in done.stderr or "cross-device" in done.stderr, done.stderr
    assert (tmp_path / "private" / "file").read_text() == "private"


def test_the_network_is_refused_unless_it_is_needed(tmp_path: Path):
    server = socket_server()
    port = server.getsockname()[1]
    connect = f"socket.create_connection(('127.0.0.1', {port})).close()"
    assert "Permission denied" in run(tmp_path, LIMITED + connect).stderr
    open_to_network = BEGIN + "limit_access(AccessLimits(may_connect=True))\n" + connect
    assert run(tmp_path, open_to_network).returncode == 0
    server.close()


@pytest.mark.parametrize("kind", ["socket.AF_INET, socket.SOCK_DGRAM", "socket.AF_INET6, socket.SOCK_STREAM"])
def test_no_socket_of_a_network_is_created(tmp_path: Path, kind: str):
    assert "Permission denied" in run(tmp_path, f"{LIMITED}socket.socket({kind})").stderr
    assert run(tmp_path, f"{LIMITED}socket.socket(socket.AF_UNIX).close(); socket.socketpair()").returncode == 0


ISOLATED = BEGIN + "assert limit_access(AccessLimits(is_isolated=True))\n"


@pytest.mark.parametrize(
    "code",
    [
        "socket.socket(socket.AF_UNIX)",
        "open('/dev/shm/' + folder.name, 'w')",
        "os.listdir('/dev/shm')",
        "subprocess.run([sys.executable, '-c', 'import socket; socket.socket(socket.AF_UNIX)'], check=True)",
    ],
)
def test_an_isolated_process_exchanges_nothing_with_others(tmp_path: Path, code: str):
    assert "Permission denied" in run(tmp_path, ISOLATED + code).stderr
    assert (
        run(tmp_path, ISOLATED + "socket.socketpair(); os.pipe(); subprocess.run(['/bin/true'], check=True)").returncode
        == 0
    )


@pytest.mark.parametrize(
    "code",
    [
        "os.chmod(private / 'file', 0o666); os.chmod(private, 0o777)",
        "os.utime(private / 'file', (0, 0))",
        "os.setxattr(private / 'file', 'user.name', b'value')",
        "shutil.copytree(read, write / 'copy')",  # which copies modes and times, and fails if it cannot
    ],
)
def test_an_isolated_process_changes_no_modes_and_times(tmp_path: Path, code: str):
    run(tmp_path, "")
    file = tmp_path / "private" / "file"
    file.chmod(0o600)
    file.parent.chmod(0o700)
    before = [(path.stat().st_mode, path.stat().st_mtime_ns, os.listxattr(path)) for path in (file, file.parent)]
    limited = "import shutil\nassert limit_access(AccessLimits((read,), (write,), is_isolated=True))\n"
    done = subprocess.run([sys.executable, "-P", "-c", BEGIN + limited + code, str(tmp_path)], check=False)
    assert done.returncode == 0
    assert before == [
        (path.stat().st_mode, path.stat().st_mtime_ns, os.listxattr(path)) for path in (file, file.parent)
    ]


@pytest.mark.parametrize(
    "code",
    [
        "ctypes.CDLL(None, use_errno=True).shmget(0, 4096, 0o1600)",
        "ctypes.CDLL(None, use_errno=True).unshare(0x10000000)",  # a user namespace
        "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3)) and 0",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19) or 0",
    ],
)
def test_an_isolated_process_reaches_no_other(tmp_path: Path, code: str):
    code = f"import ctypes, resource\nif ({code}) < 0: raise OSError(ctypes.get_errno(), 'errno')"
    assert "Errno 1]" in run(tmp_path, ISOLATED + code).stderr
    own = "import resource, threading; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); threading.Thread().start()"
    assert run(tmp_path, ISOLATED + own).returncode == 0


HELD = """
def check():
    lines = open("/proc/self/status").read().splitlines()
    assert next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff")) < 1 << 6
"""


def test_an_isolated_process_binds_nothing_to_a_core(tmp_path: Path):
    """Libraries bind their own threads, and end if they cannot."""
    before = os.sched_getaffinity(0)
    assert (
        run(tmp_path, ISOLATED + "os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})").returncode == 0
    )
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser has capabilities")
def test_the_superuser_loses_most_rights(tmp_path: Path):
    """With others, a process may read the environments of all processes; a program that it starts has no more."""
    (tmp_path / "read").mkdir()
    (tmp_path / "read/held.py").write_text(HELD + "check()\n")
    done = run(tmp_path, f"{LIMITED}{HELD}check(); subprocess.run([sys.executable, read / 'held.py'], check=True)")
    assert done.returncode == 0, done.stderr


def test_no_text_is_typed_into_a_terminal(tmp_path: Path):
    """The shell of the terminal would execute the text without limits."""
    terminal = "import fcntl, pty, termios; _, terminal = pty.openpty(); name = os.ttyname(terminal)\n"
    type_it = "fcntl.ioctl(terminal, termios.TIOCSTI, b'x')"
    done = run(tmp_path, f"{BEGIN}{terminal}limit_access(AccessLimits(may_connect=True))\n{type_it}")
    assert "Operation not permitted" in done.stderr
    limited = f"{BEGIN}{terminal}limit_access(AccessLimits(read=None))\n"
    assert "Permission denied" in run(tmp_path, limited + "open(name, 'w')").stderr
    assert "Permission denied" in run(tmp_path, limited + "open(name)").stderr  # in which passwords are typed
    assert run(tmp_path, limited + "os.listdir('/'); os.listdir('/dev'); open('/dev/null')").returncode == 0
    assert run(tmp_path, limited + "termios.tcgetattr(terminal); os.write(terminal, b'x')").returncode == 0


def test_folders_of_loaded_libraries_belong_to_python(tmp_path: Path):
    """An interpreter of Homebrew, Spack or EasyBuild finds its libraries outside of its own folder."""
    library = next(path for name in sys.path for path in Path(name).glob("zlib*.so"))
    code = (
        f"import shutil, ctypes; shutil.copy({str(library)!r}, private); ctypes.CDLL(str(private / {library.name!r}))\n"
    )
    limited = "limit_access(AccessLimits(write=(write,)))\n(private / 'file').read_text()"
    assert "Permission denied" in run(tmp_path, BEGIN + limited).stderr
    assert run(tmp_path, BEGIN + code + limited).returncode == 0


def test_an_old_kernel_cuts_no_closed_file(tmp_path: Path):
    """Landlock limits this since its version 3."""
    old = "import nimbus.datagen.files.access_limits as limits; limits.landlock_version = lambda: 2\n"
    limited = f"{BEGIN}{old}limit_access(AccessLimits(read=(read,), write=(write,)))\n"
    assert "Permission denied" in run(tmp_path, limited + "os.truncate(private / 'file', 0)").stderr
    assert (tmp_path / "private" / "file").read_text() == "private"
    assert run(tmp_path, limited + "(write / 'file').write_text(''); os.truncate(write / 'file', 0)").returncode != 0
    assert run(tmp_path, limited + "open(write / 'file', 'r+').truncate(0)").returncode == 0


def test_reading_can_stay_free(tmp_path: Path):
    limited = BEGIN + "limit_access(AccessLimits(read=None, write=(write,)))\n"
    assert run(tmp_path, limited + "(private / 'file').read_text()").returncode == 0
    assert "Permission denied" in run(tmp_path, limited + "(private / 'file').write_text('x')").stderr


def socket_server():
    import socket

    return socket.create_server(("127.0.0.1", 0))
