import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError, StorageError
from nimbus.runner import tasks
from nimbus.runner.cli import main, parse_arguments

RUNNER = Path(__file__).resolve().parents[2] / "runner" / "runner.py"


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUNNER), *words], capture_output=True, text=True, timeout=120, **options)


def test_help_needs_no_installation_and_next_to_no_time(tmp_path):
    before = os.times()
    done = run("--help", cwd=tmp_path, env={"PATH": ""})
    after = os.times()
    assert done.returncode == 0
    assert "make a dataset" in done.stdout
    used = after.children_user - before.children_user + after.children_system - before.children_system
    assert used < 0.3


def test_flags_are_parsed_before_anything_heavy_is_imported():
    code = "import sys; from nimbus.runner import cli; cli.parse_arguments(['--task', 'x']); print(*sys.modules)"
    folder = RUNNER.parents[1] / "exts" / "nimbus.datagen"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(folder)})
    heavy = {"numpy", "pydantic", "yaml", "rich", "warp", "mujoco", "newton", "pxr", "h5py", "importlib.metadata"}
    assert done.returncode == 0, done.stderr
    assert not heavy & set(done.stdout.split())


def test_a_line_that_begins_with_a_flag_is_a_run():
    args = parse_arguments(["--task", "sort_trash"])
    assert vars(args) == vars(parse_arguments(["run", "--task", "sort_trash"])) | {"parser": args.parser}
    assert (args.command, args.task, args.episodes, args.seed, args.variants) == ("run", "sort_trash", 10, 0, 1)
    assert (args.sim, args.planner, args.device, args.stack, args.workers) == ("newton", "ompl", "cpu", None, None)
    assert args.out == Path("out/sort_trash")


def test_a_tasks_path_gives_the_folder_its_name():
    assert parse_arguments(["--task", "../mine/stack_cups.yaml"]).out == Path("out/stack_cups")
    assert parse_arguments(["--task", "sort_trash", "--out", "here"]).out == Path("here")


def test_flags_have_types():
    words = "run --task t --episodes 3 --seed 7 --variants 2 --stack 16 --workers 1x1 --skills a --skills b --serial"
    args = parse_arguments(words.split())
    assert (args.episodes, args.seed, args.variants, args.stack, args.workers) == (3, 7, 2, 16, (1, 1))
    assert args.skills == [Path("a"), Path("b")]
    assert args.serial
    args = parse_arguments(["replay", "out/x", "a", "b", "--json"])
    assert (args.folder, args.ids, args.json) == (Path("out/x"), ["a", "b"], True)


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
    ("--task t --workers 1000x1", "--workers: 1000x1 are 1001 workers, at most 64 can work"),
    ("--task t --workers 1x1x1", "--workers: expected 'auto' or planners x renderers such as 2x1, found '1x1x1'"),
    ("--task t --workers 2", "--workers: expected 'auto' or planners x renderers"),
    ("--task t --workers 40x40", "--workers: 40x40 are 80 workers, at most 64 can work"),
    ("--task t --sim newtn", "--sim: unknown 'newtn'; did you mean 'newton'? known: isaacsim, newton"),
    ("--task t --planner omp", "--planner: unknown 'omp'; did you mean 'ompl'? known: curobo, ompl"),
    ("--task t --device gpu", "--device: unknown 'gpu'; did you mean 'cpu'? known: cpu, cuda"),
    ("--task t --episods 3", "--episods: unknown flag; did you mean '--episodes'? known: --certify, --coupled, "),
    ("--task t --ep 3", "--ep: unknown flag; "),
    ("--task sort_trash --sim isaacsim", "--sim isaacsim: Isaac Sim was not found; install Isaac Sim 6.0"),
    ("--task t more", "unexpected 'more'"),
    ("taks", "unknown command 'taks'; did you mean 'tasks'? known: "),
    ("report", "the following arguments are required: DIR"),
    ("hash out --jsn", "--jsn: unknown flag; did you mean '--json'?"),
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
    assert done.stderr == f"--skills {tmp_path}/none: no such folder\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("is a file", where="--out x"), 2, "--out x: is a file\n"),
        (StorageError("the disk is full"), 1, "the disk is full\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_exit_codes_say_whose_turn_it_is(error: BaseException, code: int, said: str, capsys, monkeypatch):
    def command(args: object) -> int:
        raise error

    monkeypatch.setattr(tasks, "command", command)
    assert main(["tasks"]) == code
    assert capsys.readouterr().err == said


def test_a_bug_shows_its_traceback(capsys, monkeypatch):
    monkeypatch.setattr(tasks, "sys", None)
    assert main(["tasks"]) == 70
    error = capsys.readouterr().err
    assert error.startswith("Traceback") and error.endswith("'NoneType' object has no attribute 'stdout'\n")


def test_a_bug_in_somebody_s_own_code_is_one_line_with_its_place(capsys, monkeypatch):
    monkeypatch.setattr(tasks, "command", lambda args: 1 // 0)
    assert main(["tasks"]) == 1
    error = capsys.readouterr().err
    assert re.fullmatch(r"\S+test_cli\.py:\d+: ZeroDivisionError: integer division or modulo by zero\n", error)


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
    assert "yaw [rad, deg] - Heading" in said and "straight true|false false Along a straight line." in said
    assert "support object|fixture|region needed The object" in said
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
    manifest = RUNNER.parents[1] / "exts/nimbus.datagen/config/extension.toml"
    name, version = capsys.readouterr().out.split()
    assert name == "nimbus"
    assert f'version = "{version}"' in manifest.read_text()


def test_no_arguments_show_the_help(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: nimbus")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_are_no_error(closed: str):
    line = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, str(RUNNER)]
    assert subprocess.run([*line, "tasks"], check=False).returncode == 0
    assert subprocess.run([*line, "task"], check=False).returncode == 2


def test_a_current_folder_that_was_removed_is_one_line(tmp_path: Path):
    line = ["sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh", sys.executable, str(RUNNER), "tasks"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it may be relative
    done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    said = "the current folder: cannot be used: No such file or directory; change to one that is there\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(said) and "Traceback" not in done.stderr


def test_what_a_message_quotes_cannot_command_the_terminal(tmp_path: Path, capsys):
    assert main(["schema", "--skills", f"{tmp_path}/\x1b[31m\ud800\r\nred"]) == 2
    assert capsys.readouterr().err.endswith("/\\x1b[31m\\ud800\\r red: no such folder\n")


def test_a_skill_that_ends_the_program_is_named(tmp_path: Path, capsys):
    (tmp_path / "mine.py").write_text("raise SystemExit(3)\n")
    assert main(["skills", "--skills", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/mine.py:1: cannot be imported: SystemExit: 3\n"
