from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.access_limits import landlock_version
from nimbus.runner.cli import parameters, parse_command
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


ROBOT = {"action": "check", "file": "panda"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)  # limits move it
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


@pytest.mark.parametrize("command", sorted(DATA_COMMANDS | TASK_COMMANDS | FREE_READERS))
def test_the_shortest_command_line_has_limits(cache: Path, command: str):
    """The values are those that the command's own parser makes."""
    words = {
        "assets": "import folder --out lib",
        "close-the-loop": "sort_trash",
        "demonstrate": "sort_trash",
        "evaluate": "sort_trash --policy replay:data --layouts train:data",
        "export-usd": "--episode data id",
        "filter": "data --where True --out new",
        "improve": "sort_trash",
        "lineage": "data id",
        "merge": "part --out new",
        "mirror": "data copy",
        "multiply": "data --task sort_trash",
        "objects": "tools",
        "rerender": "data id --out new",
        "reword": "data --out new",
        "robot": "check panda",
        "run": "--task sort_trash --out new",
        "scale": "data 1x1",
        "view": "data --sheet",
        "export": "data --out new",
    }.get(command, "data")
    context = parse_command([command, *words.split()])
    assert context is not None
    assert command_limits(command, parameters(context)) is not None


def test_a_file_in_the_current_folder_lifts_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(cache.parent)
    (cache.parent / "policy.py").touch()
    for command, given in (("hash", {"folder": Path()}), ("evaluate", {"policy": "state:."}), ("robot", ROBOT)):
        assert command_limits(command, given) is not None
    assert command_limits("evaluate", {"policy": "."}) is None


def test_a_server_may_listen(cache: Path):
    context = parse_command(["status", "data", "--serve", "0"])
    assert context is not None
    limits = command_limits("status", parameters(context))
    assert limits is not None and limits.may_connect


def test_links_in_the_current_folder_add_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch):
    """The default of ``--layouts`` is 100, which is no path."""
    monkeypatch.chdir(cache.parent)
    for name in ("100", "demonstrator", "id", "sort_trash", "out"):
        (cache.parent / name).symlink_to("/")
    for line in ("evaluate sort_trash --policy demonstrator", "lineage data id", "export-usd --episode data id"):
        context = parse_command(line.split())
        assert context is not None
        limits = command_limits(line.split()[0], parameters(context))
        assert limits is not None and limits.read is not None
        assert Path("/") not in {path.resolve() for path in (*limits.read, *limits.write)}


def test_private_folders_of_the_cache_stay_closed(cache: Path):
    limits = command_limits("hash", {"folder": Path("data")})
    assert limits is not None and limits.read is not None
    assert not {cache, cache / "servers", cache / "remote", cache / "torch"} & {*limits.read, *limits.write}
    assert cache / "own_tasks" not in limits.write


def test_a_shared_folder_of_temporary_files_is_not_opened(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(cache.parent / "shared"))
    (cache.parent / "shared").mkdir()
    (cache.parent / "shared").chmod(0o1777)
    limits = command_limits("hash", {"folder": Path("data")})
    assert limits is not None and cache.parent / "shared" not in limits.write
    assert tempfile.gettempdir() == str(cache / "temporary")


def test_a_command_may_read_and_write_what_it_names(cache: Path):
    limits = command_limits("filter", {"folder": Path("data"), "where": "True", "out": cache.parent / "new" / "out"})
    assert limits is not None
    assert limits.read is not None and {Path("data"), cache.parent / "new" / "out"} <= set(limits.read)
    assert {Path("data"), cache.parent, cache / "objects"} <= set(limits.write)
    assert not limits.may_connect


def test_an_output_is_made_in_the_nearest_folder(cache: Path):
    limits = command_limits("convert", {"folder": cache.parent / "data", "out": None})
    assert limits is not None and cache.parent in limits.write
    limits = command_limits("qa", {"folder": Path("data"), "html": cache.parent / "page.html"})
    assert limits is not None and cache.parent in limits.write


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_an_output_file_can_be_written_again(tmp_path: Path):
    given = os.environ | {"NIMBUS_CACHE": str(tmp_path / "cache")}
    (tmp_path / "out").mkdir()
    words = ["export-usd", "stack_blocks", "--out", str(tmp_path / "out/scene.usda")]
    for _ in range(2):
        command = [sys.executable, "-P", "-m", "nimbus.runner.runner", *words]
        done = subprocess.run(command, env=given, capture_output=True, text=True, cwd="/", check=False)
        assert done.returncode == 0, done.stderr


def _reads(command: str, given: dict[str, Path]) -> tuple[Path, ...] | None:
    limits = command_limits(command, given)
    assert limits is not None
    return limits.read


def test_own_tasks_may_name_files_anywhere(cache: Path):
    given = {"folder": Path("data")}
    assert Path("data") in (_reads("certify", given) or ())
    (cache / "own_tasks" / "0123").write_text("[]")
    assert _reads("certify", given) is None
    assert _reads("hash", given) is not None


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("estimate", {}),
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


def test_a_relative_folder_of_temporary_files_is_not_opened(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(cache.parent)
    monkeypatch.setenv("TMPDIR", ".")
    limits = command_limits("hash", {"folder": Path("data")})
    assert limits is not None and cache.parent not in {path.resolve() for path in limits.write}


@pytest.mark.parametrize("command", ["demonstrate", "multiply"])
def test_a_command_that_makes_an_own_task_may_record_it(cache: Path, command: str):
    limits = command_limits(command, {"task": "sort_trash", "out": Path("new")})
    assert limits is not None and cache / "own_tasks" in limits.write
