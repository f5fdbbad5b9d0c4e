import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.tasks.plugin_origin import user_frame_line
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cli import main, parse_command
from nimbus.runner.commands import COMMANDS, PANELS, tasks
from nimbus.runner.commands.options import WorkerSplit
from tests.support import ROOT
from tests.support.runs import RUNNER

PACKAGE = ROOT / "exts" / "nimbus.datagen"
HEAVY = {"numpy", "pydantic", "yaml", "rich", "warp", "mujoco", "newton", "pxr", "h5py", "pyarrow"}


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUNNER), *words], capture_output=True, text=True, timeout=120, **options)


def parse(*words: str) -> dict[str, Any]:
    """Return the values of a command's flags."""
    context = parse_command(words)
    assert context
    return context.params


def test_help_takes_next_to_no_time(tmp_path):
    before = os.times()
    done = run("--help", cwd=tmp_path, env={"PATH": ""})
    after = os.times()
    assert done.returncode == 0
    assert "make a dataset" in done.stdout
    used = after.children_user - before.children_user + after.children_system - before.children_system
    assert used < 0.3


def modules_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has imported after running the code."""
    line = [sys.executable, "-c", f"{code}; import sys; sys.stderr.write(' '.join(sys.modules))"]
    done = subprocess.run(line, capture_output=True, text=True, env={"PYTHONPATH": str(PACKAGE)}, check=True)
    return set(done.stderr.split())


def test_help_imports_neither_typer_nor_commands():
    loaded = modules_after("from nimbus.runner.cli import main; main(['--help'])")
    assert not {"typer", "rich", "pydantic", "numpy", "nimbus.runner.commands.run"} & loaded


def test_help_of_commands_imports_nothing_heavy():
    loaded = modules_after(f"from nimbus.runner.cli import main; [main([name, '-h']) for name in {[*COMMANDS]}]")
    assert not HEAVY & loaded


def test_only_the_given_command_is_imported():
    loaded = modules_after("from nimbus.runner.cli import main; main(['tasks', '-h'])")
    assert {name for name in loaded if name.startswith("nimbus.runner.commands.")} == {
        f"nimbus.runner.commands.{name}" for name in ("options", "parser", "table", "tasks")
    }


def test_flags_are_checked_before_heavy_imports():
    loaded = modules_after("from nimbus.runner.cli import main; main(['--task', 'x', '--episodes', '0'])")
    assert not HEAVY & loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help(name: str, capsys):
    assert main([name, "--help"]) == 0
    out, error = capsys.readouterr()
    assert error == "" and out.startswith(f"Usage: nimbus {name} ")
    assert COMMANDS[name][1:] in " ".join(out.split())
    assert main([name, "-h"]) == 0
    assert capsys.readouterr().out == out


def test_every_command_has_a_module_and_a_panel():
    folder = RUNNER.parent / "commands"
    shared = {"__init__", "options", "parser", "statement_text", "table", "worker_split"}
    assert {path.stem for path in folder.glob("*.py")} - shared == {name.replace("-", "_") for name in COMMANDS}
    assert sum(map(len, PANELS.values())) == len(COMMANDS)


def test_help_groups_commands_in_panels(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    panels = [part for part in out.split("\n\n") if part.split(":")[0] in PANELS]
    assert [panel.split(":")[0] for panel in panels] == ["make", "check", "inspect", "share", "author", "machine"]
    made = [line.split()[0] for line in panels[0].splitlines()[1:]]
    kept = ["close-the-loop", "evaluate", "serve-policy", "improve", "rerender", "reword"]
    assert made == ["run", "demonstrate", "scale", "multiply", *kept]
    assert "  2    invalid input" in out


def test_a_line_that_begins_with_a_flag_is_a_run():
    values = parse("--task", "sort_trash")
    assert values == parse("run", "--task", "sort_trash")
    names = ("task", "episodes", "seed", "variants", "out", "sim", "planner", "device", "stack", "workers")
    expected = ["sort_trash", 10, 0, 1, None, "newton", "ompl", "cpu", None, None]
    assert [values[name] for name in names] == expected


@pytest.mark.parametrize(
    ("words", "folder"),
    [("--task ../mine/stack_cups.yaml", "out/stack_cups"), ("--task sort_trash --out here", "here")],
)
def test_a_task_names_its_folder(words: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    specs: list[CellSpec] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nimbus.datagen.tasks.task.check_form", lambda _: None)  # the file does not exist
    monkeypatch.setattr("nimbus.runner.cell.run.run_spec", lambda spec, **_: specs.append(spec) or 70)
    assert main(words.split()) == 70
    assert specs[0].folder == str(tmp_path / folder)


def test_flags_have_types():
    words = "run --task t --episodes 3 --seed 7 --variants 2 --stack 16 --workers 1x1 --skills a --skills b --serial"
    values = parse(*words.split())
    names = ("episodes", "seed", "variants", "stack", "workers", "serial")
    assert [values[name] for name in names] == [3, 7, 2, 16, WorkerSplit((1, 1)), True]
    assert list(values["skills"]) == [Path("a"), Path("b")]
    values = parse("replay", "out/x", "a", "b", "--json")
    assert (values["folder"], list(values["ids"]), values["as_json"]) == (Path("out/x"), ["a", "b"], True)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("scale d auto", "split", WorkerSplit(None)),
        ("certify d --sample all", "count", None),
        ("run --task t --certify all", "certify", None),
        ("run --task t --stack auto", "stack", None),
        ("export d --out o --shard-size 256MB", "shard_size", 256_000_000),
        ("export-usd --episode d id", "episode", ("d", "id")),
        ("filter d --out o --where=-x", "where", "-x"),
    ],
)
def test_values_are_parsed(words: str, name: str, value: object):
    assert parse(*words.split())[name] == value


BAD = [
    ("--episodes 3", "the following arguments are required: --task"),
    ("--task t --episodes 0", "--episodes: expected a whole number from 1 to 10000000, found '0'"),
    ("--task t --episodes -4", "--episodes: expected a whole number from 1 to 10000000, found '-4'"),
    ("--task t --episodes 3.5", "--episodes: expected a whole number from 1 to 10000000, found '3.5'"),
    ("--task t --episodes 99999999999", "--episodes: expected a whole number"),
    ("--task t --episodes", "--episodes: expected one argument"),
    ("--task t --seed -1", "--seed: expected a whole number from 0 to"),
    ("--task t --variants 0", "--variants: expected a whole number from 1 to 1000, found '0'"),
    ("--task t --stack 0", "--stack: expected a whole number from 1 to 4096, found '0'"),
    ("--task t --workers 0x2", "--workers: expected 'auto' or planners x renderers such as 2x1, found '0x2'"),
    ("--task t --workers 0x1", "--workers: expected 'auto' or planners x renderers such as 2x1, found '0x1'"),
    ("--task t --workers 1000x1", "--workers: 1000x1 means 1001 workers; the limit is 64"),
    ("--task t --workers 1x1x1", "--workers: expected 'auto' or planners x renderers such as 2x1, found '1x1x1'"),
    ("--task t --workers 2", "--workers: expected 'auto' or planners x renderers"),
    ("--task t --workers 40x40", "--workers: 40x40 means 80 workers; the limit is 64"),
    ("--task t --sim newtn", "--sim: unknown 'newtn'; did you mean 'newton'? known: isaacsim, newton"),
    ("--task t --planner omp", "--planner: unknown 'omp'; did you mean 'ompl'? known: curobo, ompl"),
    ("--task t --device gpu", "--device: unknown 'gpu'; did you mean 'cpu'? known: cpu, cuda"),
    ("--task t --episods 3", "--episods: unknown flag; did you mean '--episodes'? known: --"),
    ("--task t --ep 3", "--ep: unknown flag; "),
    ("--task sort_trash --sim isaacsim", "--sim isaacsim: Isaac Sim was not found; install Isaac Sim 6.0"),
    ("--task t more", "unexpected 'more'"),
    ("taks", "unknown command 'taks'; did you mean 'tasks'? known: "),
    ("report", "the following arguments are required: DIR"),
    ("hash out --jsn", "--jsn: unknown flag; did you mean '--json'?"),
    ("-x", "-x: unknown flag; known: --help, --version"),
    ("filter d", "the following arguments are required: --where, --out; see nimbus filter --help"),
    ("scale d 3x", "PxR: expected 'auto' or planners x renderers such as 2x1, found '3x'; see nimbus scale --help"),
    ("--task t --out --serial", "--out: expected one argument; see nimbus run --help"),
    ("export-usd --episode d", "--episode: expected 2 arguments; see nimbus export-usd --help"),
    ("hash d --json=yes", "--json: takes no value, found 'yes'; write --json alone"),
    ("qa d --no-json", "--no-json: unknown flag; did you mean '--json'?"),
    ("qa d --html=", "--html: expected a path, found ''; see nimbus qa --help"),
    ("export d --out=", "--out: expected a path, found ''; see nimbus export --help"),
    ("filter d --where success --out a\udcff", r"--out: expected a path in UTF-8, found 'a\udcff'; see nimbus filter"),
]


@pytest.mark.parametrize(("line", "expected"), BAD)
def test_a_wrong_flag_is_one_line_and_exit_code_two(line: str, expected: str, capsys):
    assert main(line.split()) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(expected)
    assert error.count("\n") == 1


def test_bad_input_is_one_line_without_a_traceback_in_a_real_process(tmp_path):
    done = run("schema", "--skills", str(tmp_path / "none"), cwd=tmp_path)
    assert done.returncode == 2
    fix = "give the folder of your skills: --skills FOLDER"
    assert done.stderr == f"--skills {tmp_path}/none: no such folder; {fix}\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("is a file", where="--out x"), 2, "--out x: is a file\n"),
        (StorageError("the disk is full"), 1, "the disk is full\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (
            PermissionError(13, "Permission denied", "a\x1b"),
            2,
            "a\\x1b: permission denied; give a path that you are permitted to use\n",
        ),
        (OSError(36, "File name too long", "a" * 5000), 2, f"{'a' * 200}…: file name too long; give a shorter path\n"),
        (OSError(40, "Too many links", b"l"), 2, "l: too many links; remove the link that leads back to itself\n"),
    ],
)
def test_exit_codes_say_whose_turn_it_is(error: BaseException, code: int, said: str, capsys, monkeypatch):
    def command() -> int:
        raise error

    monkeypatch.setattr(tasks, "command", command)
    assert main(["tasks"]) == code
    assert capsys.readouterr().err == said


def test_a_bug_shows_its_traceback(capsys, monkeypatch):
    monkeypatch.setattr(tasks, "write_out", None)
    assert main(["tasks"]) == 70
    error = capsys.readouterr().err
    assert error.startswith("Traceback") and error.endswith("'NoneType' object is not callable\n")


def test_a_bug_in_somebody_s_own_code_is_one_line_with_its_place(capsys, monkeypatch):
    monkeypatch.setattr(tasks, "command", lambda: 1 // 0)
    assert main(["tasks"]) == 1
    error = capsys.readouterr().err
    assert re.fullmatch(r"\S+test_cli\.py:\d+: ZeroDivisionError: integer division or modulo by zero\n", error)


def test_code_of_compiled_libraries_is_not_the_user_s():
    """Stack frames of compiled libraries name sources that do not exist, without a folder."""
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", "pyarrow/compat.pxi", "exec"), {})
    assert "compat.pxi" not in user_frame_line(caught.value)


def test_tasks_are_listed_with_one_line_each(tmp_path):
    done = run("tasks", cwd=tmp_path)
    assert done.returncode == 0
    assert "sort_trash sorting panda Sort the trash into the bins." in lines_of(done.stdout)


def lines_of(table: str) -> list[str]:
    return [" ".join(line.split()) for line in table.splitlines()]


def test_skills_are_listed_with_their_parameters(capsys):
    assert main(["skills"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "skills, for steps:"
    pick = next(index for index, line in enumerate(lines) if line.startswith("  pick: {object, lift?"))
    assert lines[pick + 1] == "      Grasp an object and lift it."
    assert "  home" in lines
    assert any(line.startswith("  inside: {object, container, cavity?}") for line in lines)


def test_everything_about_a_skill_is_told_with_units_defaults_and_reasons(capsys):
    assert main(["skills", "move", "on"]) == 0
    said = "\n".join(lines_of(capsys.readouterr().out))
    assert "move: {to, yaw?, straight?}" in said and "fails with: no_ik, no_path" in said
    assert (
        "yaw [rad, deg] - Rotation of the hand" in said
        and "straight true|false false Move along a straight line." in said
    )
    assert "support object|fixture|region needed The object" in said
    assert main(["skills", "push"]) == 0
    said = "\n".join(lines_of(capsys.readouterr().out))
    assert "speed number 0.12 Speed of the fingers [m/s]." in said and "by [m, cm, mm] - Distance" in said
    assert "every skill may also fail with: collision_at_start, plan_rejected, tracking_error" in said
    assert main(["skills", "mov"]) == 2
    assert "no skill and no condition 'mov'; did you mean 'move'?" in capsys.readouterr().err


def test_the_schema_is_printed_as_json(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "pick" in schema["$defs"]["skill"]["anyOf"][1]["properties"]


def test_a_reader_that_goes_away_is_no_error_of_ours():
    line = f"'{sys.executable}' '{RUNNER}' schema | head -c 10"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.stdout == '{\n  "$sche'
    assert done.stderr == ""


@pytest.mark.parametrize("buffering", ["", "-u"])
@pytest.mark.parametrize("words", ["--version", "tasks", "doctor --machine"])
def test_an_output_that_takes_no_more_is_one_line(words: str, buffering: str):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    line = ["sh", "-c", f'exec "$@" {words} >/dev/full', "sh", sys.executable, *buffering.split(), str(RUNNER)]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    said = "standard output: no space left on device; write it where there is room\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_the_version_is_the_extensions(capsys):
    assert main(["--version"]) == 0
    manifest = ROOT / "exts/nimbus.datagen/config/extension.toml"
    name, version = capsys.readouterr().out.split()
    assert name == "nimbus"
    assert f'version = "{version}"' in manifest.read_text()


def test_no_arguments_show_the_help(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: nimbus COMMAND")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_are_no_error(closed: str):
    line = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, str(RUNNER)]
    assert subprocess.run([*line, "tasks"], check=False).returncode == 0
    assert subprocess.run([*line, "task"], check=False).returncode == 2


def test_letters_unknown_to_the_terminal_are_escaped():
    code = "from nimbus.runner.cli import open_closed_streams; open_closed_streams(); print('ü')"
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": f"{PACKAGE}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "\\xfc")


def test_a_current_folder_that_was_removed_is_one_line(tmp_path: Path):
    line = ["sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh", sys.executable, str(RUNNER), "tasks"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it may be relative
    done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    said = "the current folder: cannot be used: No such file or directory; change to an existing folder\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(said) and "Traceback" not in done.stderr


def test_what_a_message_quotes_cannot_command_the_terminal(tmp_path: Path, capsys):
    assert main(["schema", "--skills", f"{tmp_path}/\x1b[31m\ud800\r\nred"]) == 2
    assert capsys.readouterr().err.startswith(f"--skills {tmp_path}/\\x1b[31m\\ud800\\r red: no such folder; ")


def test_a_skill_that_ends_the_program_is_named(tmp_path: Path, capsys):
    (tmp_path / "mine.py").write_text("raise SystemExit(3)\n")
    assert main(["skills", "--skills", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"{tmp_path}/mine.py:1: cannot be imported: SystemExit: 3; fix the error that the import raises\n"
    )
