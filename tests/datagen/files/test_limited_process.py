"""A function in a process with limits: its result, its errors, and its end beyond the limits."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files import limited_process
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.limited_process import LimitedPool, LimitedProcessError, run_limited


def test_the_result_comes_back() -> None:
    assert run_limited("json:loads", {"s": "[1, 2]"}, where="text") == [1, 2]


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("os:abort", {}, r"model.xml: cannot be read: its reader crashed \(SIGABRT\)"),
        ("os:_exit", {"status": 0}, "its reader crashed"),
        ("re:fullmatch", {"pattern": "(a+)+b", "string": "a" * 64}, "takes more than 1 s"),
        ("signal:pause", {}, "takes more than 1 s"),
        ("builtins:bytearray", {"source": 1 << 31}, "takes more than 0.5 GB of memory"),
    ],
)
def test_beyond_a_limit_is_bad_input(function: str, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_limited(function, arguments, where="model.xml", seconds=1, memory=1 << 29)
    assert run_limited("json:loads", {"s": "3"}, where="text") == 3


def cut_short(full: str, says: bool) -> None:
    """Fail in a limited process as libraries fail on a full disk, which is that of a folder, or else of TMPDIR."""
    usage, folder = type(shutil.disk_usage("/")), Path(full or tempfile.gettempdir())
    shutil.disk_usage = lambda path: usage(1 << 40, 0, 0 if path == folder else 1 << 40)
    raise OSError(errno.ENOSPC, "No space left on device") if says else RuntimeError("possibly truncated")


def write_into_cache(folder: str) -> None:
    with writing(Path(folder)):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_that_a_writer_names_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    folder = cache_folder("meshes")
    with pytest.raises(StorageError, match=f"^{folder}: the disk of the cache folder is full"):
        run_limited(f"{__name__}:write_into_cache", {"folder": str(folder)}, where="a.stl")


@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "{temporary}: the disk of the folder of temporary files is full.*set TMPDIR"),
        ("cache/robots", "cache/robots: the disk of the cache folder is full.*set NIMBUS_CACHE"),
    ],
)
def test_a_full_disk_is_named(name: str, told: str, says: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It was called a bug in the reader, or a full disk of another folder."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    given = {"full": str(tmp_path / name) if name else "", "says": says}
    with pytest.raises(StorageError, match=told.format(temporary=tempfile.gettempdir())):
        run_limited(f"{__name__}:cut_short", given, where="a.stl", writes=[cache_folder("robots")])


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(LimitedProcessError, match="JSONDecodeError"):
        run_limited("json:loads", {"s": "{"}, where="text")


def test_bad_input_keeps_its_place() -> None:
    with pytest.raises(InputError, match="no_such_file: cannot be read"):
        run_limited("nimbus.datagen.robots.mesh_checks:write_points", {"file": "no_such_file", "target": ""}, where="")


def test_the_working_folder_is_new_empty_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The user's working folder may be a dataset of others, whose files libraries would open by relative names."""
    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(limited_process, "_known", [])
    with pytest.raises(LimitedProcessError, match="FileNotFoundError"):
        run_limited("builtins:open", {"file": "mine.txt"}, where="x")
    folders = [Path(run_limited("os:getcwd", {}, where="x")) for _ in range(2)]
    assert folders[0] != folders[1]
    assert run_limited("os:listdir", {}, where="x") == []
    assert not any(folder.exists() for folder in folders)
    limited_process._known[0].end()


def test_a_relative_path_is_found_and_stated_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.stl").write_text("no mesh")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^mine\.stl: "):
        given = {"file": Path("mine.stl"), "target": Path("out.npy")}
        run_limited("nimbus.datagen.robots.mesh_checks:write_points", given, where="")
    assert (
        run_limited("shutil:copy", {"src": Path("mine.stl"), "dst": Path("copy.stl")}, where="", writes=[Path()])
        == f"{tmp_path}/copy.stl"
    )
    assert (tmp_path / "copy.stl").read_text() == "no mesh"


def test_a_relative_folder_of_temporary_files_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", "files")
    monkeypatch.setattr(limited_process, "_known", [])
    (tmp_path / "files").mkdir()
    assert Path(run_limited("os:getenv", {"key": "TMPDIR"}, where="x")).parent == tmp_path / "files"
    limited_process._known[0].end()


def test_a_killed_caller_leaves_no_process() -> None:
    code = "from nimbus.datagen.files.limited_process import run_limited; run_limited('signal:pause', {}, where='')"
    caller = subprocess.Popen([sys.executable, "-c", code])
    left = set[int]()
    while len(left) < 2:  # the server, and the child of the call
        assert caller.poll() is None
        left = _descendants(caller.pid)
        time.sleep(0.05)
    caller.kill()
    caller.wait()
    end = time.monotonic() + 60.0
    while any(_is_running(pid) for pid in left):
        assert time.monotonic() < end
        time.sleep(0.05)


def _descendants(pid: int) -> set[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child) for child in children}.union(*(_descendants(int(child)) for child in children))


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_functions_of_an_extended_search_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "only_on_this_path.py").write_text("def answer():\n    return 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(limited_process, "_known", [])
    assert run_limited("only_on_this_path:answer", {}, where="x") == 42
    limited_process._known[0].end()


def test_tokens_are_not_handed_over(monkeypatch: pytest.MonkeyPatch):
    for name in ("NIMBUS_POLICY_TOKEN", "AWS_SECRET_ACCESS_KEY", "openai_apikey", "NIMBUS_NOTE"):
        monkeypatch.setenv(name, "a value")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:word@proxy")
    pool = LimitedPool(1)
    try:
        text = pool.run("subprocess:getoutput", {"cmd": "env"}, where="a", seconds=5)
    finally:
        pool.close()
    assert "NIMBUS_NOTE" in text and not {"TOKEN", "SECRET", "apikey", "word"} & set(re.split(r"\W|_", text))


@pytest.mark.parametrize(
    "name",
    [
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_SAS",
        "GITHUB_PAT",
        "MYSQL_PWD",
        "SLURM_JWT",
        "OSS_ACCESSKEY",
        "IDENTITY_HEADER",
        "JUPYTERHUB_COOKIE",
        "SENTRY_DSN",
        "SSH_AUTH_SOCK",
        "openai_api_keys",
    ],
)
def test_names_of_secrets_are_known(name: str):
    assert limited_process._is_secret(name, "a value")


@pytest.mark.parametrize(
    "name",
    ["PATH", "PXR_PLUGINPATH_NAME", "LD_LIBRARY_PATH", "NIMBUS_CACHE", "CUDA_PATH", "XDG_CACHE_HOME", "PWD", "TMPDIR"],
)
def test_variables_that_parsers_need_are_handed_over(name: str):
    assert not limited_process._is_secret(name, "/some/folder")


def test_a_link_among_the_results_is_refused(tmp_path: Path):
    """The caller would follow it, and may open more than the process that left it."""
    given = {"src": "/etc/passwd", "dst": str(tmp_path / "points.npy")}
    with pytest.raises(InputError, match="a.stl: its reader left a link"):
        run_limited("os:symlink", given, where="a.stl", writes=[tmp_path])


def test_a_closed_pool_leaves_no_process():
    """A killed server would leave the process of its call, which then computes up to its limit."""
    pool, words = LimitedPool(1), ["sleep", "31.4159"]

    def call() -> None:
        with suppress(LimitedProcessError, InputError):
            pool.run("subprocess:check_call", {"args": words}, where="a", seconds=60)

    def is_there() -> bool:
        return any(b"31.4159" in read(path) for path in Path("/proc").glob("[0-9]*/cmdline"))

    def read(path: Path) -> bytes:
        with suppress(OSError):
            return path.read_bytes()
        return b""

    def wait(is_wanted: bool) -> bool:
        end = time.monotonic() + 20.0
        while is_there() != is_wanted and time.monotonic() < end:
            time.sleep(0.02)
        return is_there() == is_wanted

    thread = threading.Thread(target=call)
    thread.start()
    assert wait(True)
    pool.close()
    assert wait(False)
    thread.join()


def answer(text: str, count: int) -> None:
    """Answer in place of the process, as a parser that a file has taken over can."""
    pipe = next(one for one in range(3, 64) if Path(f"/proc/self/fd/{one}").is_fifo())
    with os.fdopen(pipe, "wb") as file:
        for _ in range(count):
            file.write(text.encode())
    os._exit(0)


def test_an_answer_of_any_depth_is_one_line() -> None:
    """It ended the server."""
    with pytest.raises(InputError, match=r"^a\.stl: cannot be read: its reader crashed"):
        run_limited(f"{__name__}:answer", {"text": "[", "count": 5000}, where="a.stl")


def test_an_answer_has_a_limit() -> None:
    """The process that collects it would otherwise use up the memory of the machine."""
    told = r"^a\.stl: cannot be read: its reader returns more than 512 MB; make it smaller or simpler"
    with pytest.raises(InputError, match=told):
        run_limited(f"{__name__}:answer", {"text": "x" * (1 << 20), "count": 600}, where="a.stl")
    assert run_limited("json:loads", {"s": "3"}, where="text") == 3


def test_a_call_cannot_answer_in_place_of_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that a file has taken over could otherwise decide what is said about other files."""
    (tmp_path / "takeover.py").write_text(
        "import os\n"
        "def lie():\n"
        "    for one in range(3, 64):\n"
        '        try: os.write(one, b\'{"result": "forged"}\\n\')\n'
        "        except OSError: pass\n"
        "    os._exit(1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(limited_process, "_known", [])
    try:
        with suppress(InputError):  # its own answer is its own affair
            run_limited("takeover:lie", {}, where="x")
        assert run_limited("json:loads", {"s": "3"}, where="text") == 3
    finally:
        limited_process._known[0].end()
