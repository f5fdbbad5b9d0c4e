from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.access_limits import landlock_version
from nimbus.runner.commands import COMMANDS
from nimbus.runner.system import file_access
from nimbus.runner.system.file_access import DATA_COMMANDS, FREE_READERS, TASK_COMMANDS, command_limits

_CURIOUS = """
import sys
from pathlib import Path
from nimbus.runner import cli
from nimbus.runner.commands import hash

def command(folder: hash.DatasetFolder) -> int:
    print((folder / "link").read_text())
    return 0

hash.command = command
sys.argv = ["nimbus", "hash", sys.argv[1]]
sys.exit(cli.main())
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.delenv(file_access.VARIABLE, raising=False)
    return tmp_path / "cache"


def test_readers_of_datasets_are_commands():
    assert set(COMMANDS) >= DATA_COMMANDS | TASK_COMMANDS | FREE_READERS


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_a_link_out_of_a_dataset_leads_nowhere(tmp_path: Path):
    data, private = tmp_path / "data", tmp_path / "private"
    data.mkdir()
    private.write_text("a private text")
    (data / "link").symlink_to(private)
    given = os.environ | {"NIMBUS_CACHE": str(tmp_path / "cache")}

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-c", _CURIOUS, str(data)]
        return subprocess.run(command, env=given | more, capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 2
    assert "a private text" not in done.stdout
    assert done.stderr.count("\n") == 1
    assert "permission denied" in done.stderr and file_access.VARIABLE in done.stderr
    assert run(**{file_access.VARIABLE: str(tmp_path)}).stdout == "a private text\n"


def test_a_command_may_read_and_write_what_it_names(cache: Path):
    limits = command_limits("filter", {"folder": Path("data"), "where": "True", "out": cache / "new" / "out"})
    assert limits is not None
    assert limits.read is not None and {Path("data"), cache / "new" / "out"} <= set(limits.read)
    assert {Path("data"), cache} <= set(limits.write)
    assert not limits.may_connect


def test_an_output_is_made_in_the_nearest_folder(cache: Path):
    limits = command_limits("convert", {"folder": cache / "data", "out": None})
    assert limits is not None and cache in limits.write
    limits = command_limits("qa", {"folder": Path("data"), "html": cache.parent / "page.html"})
    assert limits is not None and cache.parent in limits.write


def _reads(command: str, given: dict[str, Path]) -> tuple[Path, ...] | None:
    limits = command_limits(command, given)
    assert limits is not None
    return limits.read


def test_own_tasks_may_name_files_anywhere(cache: Path):
    given = {"folder": Path("data")}
    assert _reads("certify", given) == (Path("data"),)
    (cache / "own_tasks" / "0123").write_text("[]")
    assert _reads("certify", given) is None
    assert _reads("hash", given) == (Path("data"),)


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("scale", {}),
        ("run", {"sim": "isaacsim"}),
        ("run", {"task": "own/tidy.yaml"}),
        ("run", {"out": "s3://bucket/data"}),
        ("evaluate", {"policy": "mine.py:make_policy"}),
        ("robot", {"action": "fetch"}),
        ("certify", {"skills": [Path("mine")]}),
        ("rerender", {"task_name": "own/tidy.yaml"}),
        ("rerender", {"device": "cuda"}),
        ("qa", {"robot": "own/arm.yaml"}),
        ("view", {"sheet": None, "save": None}),
    ],
)
def test_own_code_and_viewers_have_no_limits(cache: Path, command: str, given: dict[str, object]):
    assert command_limits(command, {"folder": Path("data")} | given) is None


def test_an_address_needs_the_network(cache: Path):
    limits = command_limits("mirror", {"source": "data", "target": "s3://bucket/data"})
    assert limits is not None and limits.may_connect and limits.read is None


def test_a_run_of_a_shipped_task_writes_its_output(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(cache.parent)
    limits = command_limits("run", {"task": "sort_trash", "out": None, "sim": "newton", "device": "cpu"})
    assert limits is not None and cache.parent in limits.write  # "out" is made here
    (cache.parent / "out").mkdir()
    limits = command_limits("run", {"task": "sort_trash", "out": None})
    assert limits is not None and cache.parent / "out" in limits.write
    (cache.parent / "here").mkdir()
    other = command_limits("run", {"task": "sort_trash", "out": "here/new"})
    assert other is not None and cache.parent / "here" in other.write
    assert Path.cwd() not in {*limits.write, *(limits.read or ())}


def test_a_recorded_policy_is_read(cache: Path):
    given = {"task": "sort_trash", "policy": "replay:data", "out": Path("eval")}
    assert Path("data") in (_reads("evaluate", given) or ())


def test_a_slash_lifts_all_limits(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(file_access.VARIABLE, "/")
    assert command_limits("hash", {"folder": Path("data")}) is None


def test_a_relative_folder_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(file_access.VARIABLE, "scans")
    with pytest.raises(InputError, match="NIMBUS_READ_FOLDERS: 'scans' is a relative path"):
        command_limits("hash", {"folder": Path("data")})
