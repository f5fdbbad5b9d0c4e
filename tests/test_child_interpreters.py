"""Programs that Nimbus starts use nothing in the current folder, which may be a foreign dataset."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.datasets.export import parts
from nimbus.datagen.datasets.training import torch_dataset
from nimbus.datagen.errors import InputError
from nimbus.datagen.plan.curobo import process as curobo
from nimbus.datagen.ui.runs.launch import ProcessLauncher
from nimbus.runner.isaac import find
from tests.support.doc_blocks import PAGES, code_blocks
from tools.sources import ROOT, modules, other_sources, relative

FOREIGN = {"nimbus.datagen.plan.curobo.process", "nimbus.runner.isaac.find"}
"""Modules that start Python interpreters of other versions, which may not support ``-P``; their scripts are tested
below."""
IN_CHECKOUT = {"benchmarks/convert.py", "tools/contract/curobo_python.py"}
"""The first starts such an interpreter in the checkout, whose modules it imports; the second is one."""


def unsafe_commands(tree: ast.AST) -> Iterator[str]:
    """Yield commands with ``-m`` or ``-c`` and without ``-P``, and pools that start interpreters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            words = [str(word.value) for word in node.elts if isinstance(word, ast.Constant)]
            if {"-m", "-c"} & set(words[:2]) and "-P" not in words and "--" not in "".join(words[:1]):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("multiprocessing.get_context"):
            yield ast.unparse(node)


NEEDS_FOLDER = {
    "nimbus.datagen.ui.remote.editor_process": "it opens the paths that the user writes",
    "nimbus.datagen.ui.runs.launch": "it runs commands of the user",
    "nimbus.runner.cell.launcher": "workers run skills and policies of the user",
    "nimbus.runner.cell.worker.fork_server": "as above",
    "nimbus.runner.cluster.job_description": "it loads a task as workers do",
    "nimbus.runner.cluster.local_cluster": "agents start cells",
    "nimbus.runner.cluster.node_cell": "a cell has workers",
    "nimbus.runner.cluster.on_ray.kept_process": "agents start cells, in the folder of Ray's worker",
    "nimbus.train.ranks": "it runs the command of the user again",
}
"""Modules that start processes in the current folder, and the reasons."""
_STARTS = re.compile(r"(?:subprocess\.)?(?:Popen|run|call|check_call|check_output)|os\.(?:exec|spawn|posix_spawn)\w*")


def starts_in_current_folder(tree: ast.AST) -> Iterator[str]:
    """Yield calls that start a program in the current folder."""
    moves = "os.chdir" in {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _STARTS.fullmatch(name := ast.unparse(node.func)):
            is_own = name.isidentifier() and name != "Popen"  # such as a function "run"
            has_folder = any(keyword.arg == "cwd" for keyword in node.keywords) or (moves and name.startswith("os."))
            if not is_own and not has_folder:
                yield ast.unparse(node)


def test_programs_start_in_another_folder():
    """Libraries and programs open files of the current folder, which may be a dataset of others."""
    shipped = {name: path for name, path in modules().items() if not name.startswith(("tools.", "benchmarks."))}
    found = {name for name, path in shipped.items() if list(starts_in_current_folder(ast.parse(path.read_text())))}
    assert found == set(NEEDS_FOLDER)


def test_programs_in_the_current_folder_are_found():
    lines = ("subprocess.run(['a'], text=True)", "subprocess.Popen(['a'])", "Popen(['a'])", "os.execv('a', ['a'])")
    assert [line for line in lines if not list(starts_in_current_folder(ast.parse(line)))] == []
    assert not list(starts_in_current_folder(ast.parse("subprocess.run(['a'], cwd='/'); app.run(1); run(2)")))


def test_curobo_starts_elsewhere(tmp_path, monkeypatch):
    """Its interpreter, or a library in it, may open files of the current folder."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\npwd > {tmp_path}/folder\n")
    python.chmod(0o755)
    monkeypatch.setenv(curobo.PYTHON, str(python))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        curobo.CuroboProcess()
    assert (tmp_path / "folder").read_text() == "/\n"


def unsafe_files(files: dict[str, Path]) -> set[str]:
    """Return the names of files with unsafe commands."""
    texts = {name: path.read_text() for name, path in files.items()}
    likely = [name for name, text in texts.items() if any(word in text for word in ('"-m"', '"-c"', "multiprocessing"))]
    return {name for name in likely if list(unsafe_commands(ast.parse(texts[name])))}


def test_commands_leave_out_current_folder():
    assert unsafe_files(modules()) == FOREIGN | {"nimbus.datagen.datasets.export.parts"}


def test_commands_of_benchmarks_and_tools_leave_out_current_folder():
    """The installer of the GPU suite runs on machines of several users, in a folder that it is given."""
    places = [*other_sources(), *(ROOT / "docs").glob("*.py")]
    names = {relative(path): path for path in places}
    files = {name: path for name, path in names.items() if name.startswith(("benchmarks/", "tools/", "docs/"))}
    assert len(files) > 100 and unsafe_files(files) == IN_CHECKOUT


def test_no_page_or_script_names_a_folder_that_all_users_may_make():
    """Another user can make a folder of a known name in ``/tmp`` first, and keeps it."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *(ROOT / "docs").glob("*.md")]
    texts = [*pages, *(ROOT / "docs").glob("*.py"), *(path for path in other_sources() if "tests" not in path.parts)]
    named = re.compile(r"(?<![\w.])/(?:var/)?tmp/\w")
    assert [relative(path) for path in texts if named.search(path.read_text())] == []


OF_CHECKOUT = {"benchmarks": "its modules are in the current folder, the root of the checkout"}
"""Packages that shell blocks of the documentation run with ``-m`` and without ``-P``, and the reasons."""
_PYTHON = re.compile(
    r"python[\d.]*\}?[\"']?((?: +-[XW] +\S+| +-\S+)*?) +-(\w*[mc])(?: +|(?=[\"']))(\w*)", re.IGNORECASE
)
_CURRENT = re.compile(r"\bPWD\b|\bpwd\b|(?<![\w.~/$}-])(?!\.venv/)(?:[\w.-]+/)+bin/")
_RAY = re.compile(r"(?<![\w./-])ray [a-z]")


def unsafe_lines(shell: str) -> Iterator[str]:
    """Yield lines of a shell block that let the current folder decide which code runs.

    These are Python with ``-m`` or ``-c`` and without ``-P``, names of the current folder, programs in folders of it,
    and commands of Ray before ``PYTHONSAFEPATH=1``. Ray that starts before ``RAY_AUTH_MODE=token`` runs anyone's code.
    """
    is_safe = has_token = False
    for line in re.sub(r"(^|\s)#.*$", "", shell.replace("\\\n", " "), flags=re.MULTILINE).splitlines():
        is_safe |= re.search(r"\bPYTHONSAFEPATH=1\b", line) is not None
        has_token |= re.search(r"\bRAY_AUTH_MODE=token\b", line) is not None
        imports = any(
            not re.search(r" -\w*[PI]", options) and not set("PI") & set(last) and name not in OF_CHECKOUT
            for options, last, name in _PYTHON.findall(line)
        )
        if imports or _CURRENT.search(line) or (_RAY.search(line) and not is_safe):
            yield line.strip()
        elif re.search(r"\bray (start|up|symmetric-run)\b", line) and not has_token:
            yield line.strip()


def test_commands_of_the_documentation_leave_out_current_folder():
    """Users type them in folders that may be datasets of others, with a ``venv.py`` or an environment."""
    pages = [*PAGES, "benchmarks/README.md", "exts/nimbus.datagen/docs/Overview.md"]
    shells = [block for page in pages for block in code_blocks(page) if block.language in ("bash", "sh", "console")]
    assert len(shells) > 80
    assert [(block.page, line) for block in shells for line in unsafe_lines(block.code)] == []
    assert all(f" -m {name}." in "".join(block.code for block in shells) for name in OF_CHECKOUT), "no longer needed"


def test_unsafe_lines_of_the_documentation_are_found():
    python = ("python3.11 -m venv a", "~/a/bin/python -u -c 'x'", '"$PYTHON" -um a', "python -X dev \\\n -m pip")
    folders = (
        "export A=$PWD/a",
        "export A=${PWD}/a",
        "A=$(pwd)",
        "lr/bin/pip list",
        "A=lr/bin/python make",
        "./a/bin/b",
    )
    ray = ("ray start --head", "export PYTHONSAFEPATH=1\nray up x.yaml", "(umask 077; ray get-auth-token)")
    lines = (*python, *folders, *ray)
    assert [line for line in lines if not list(unsafe_lines(line))] == []
    safe = ("python3.11 -P -m venv ~/a", "python -Pc 'x'", "~/a/bin/pip list", ".venv/bin/python -m benchmarks.gpu")
    ray = "export PYTHONSAFEPATH=1 RAY_AUTH_MODE=token\nray start --head"
    others = ("python a.py -m x", ray, "make  # in $PWD", "/path/to/bin/python")
    assert [line for line in (*safe, *others) if list(unsafe_lines(line))] == []


def test_unsafe_commands_are_found():
    commands = ("[sys.executable, '-m', 'pip']", "[python, '-c', code]", "(python, '-u', '-m', 'x')")
    lines = (*commands, "multiprocessing.get_context('spawn')")
    assert [line for line in lines if not list(unsafe_commands(ast.parse(line)))] == []


def test_scripts_of_foreign_interpreters_are_safe(tmp_path):
    """The current folder has a file with the name of a module that the script imports first."""
    for name in ("types", "importlib", "json"):
        (tmp_path / f"{name}.py").write_text(f"print('from the folder: {name}')")
    for script in (curobo._START, find._PROBE):
        words = [sys.executable, "-S", "-c", script, "/nowhere", "0"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert "from the folder" not in done.stdout


def test_mujoco_starts_no_interpreter_and_loads_no_library_of_windows(tmp_path):
    """Its window library searches the current folder for libraries, and checks their version in ``python -c``."""
    for name in ("ctypes", "glfw", "json", "os"):
        (tmp_path / f"{name}.py").write_text("from pathlib import Path; Path('ran').touch()")
    (tmp_path / "libglfw.so").write_bytes(b"not a library")
    code = "import sys, nimbus.datagen.geometry.mujoco_library; print('glfw' in sys.modules)"
    words = [sys.executable, "-P", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert not (tmp_path / "ran").exists()


def test_settings_of_plots_are_not_read(tmp_path):
    """TOPP-RA imports matplotlib, which reads its settings from the current folder, for example through a link."""
    (tmp_path / "matplotlibrc").write_text("a private line")
    code = "from nimbus.datagen.plan.timing import load_toppra; load_toppra()"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "private" not in done.stderr


def test_interpreters_of_libraries_start_safely(tmp_path):
    """A command sets the environment for the interpreters that libraries start."""
    code = "import os, sys; from nimbus.runner.cli import main; main(); print(os.environ['PYTHONSAFEPATH'])"
    words = [sys.executable, "-P", "-c", code, "--version"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"


def test_studio_starts_commands_safely(tmp_path, monkeypatch):
    (tmp_path / "argparse.py").write_text("raise SystemExit('from the folder')")
    (tmp_path / "errno.py").write_text("raise SystemExit('from the folder')")
    (tmp_path / "nimbus.py").write_text("raise SystemExit('from the folder')")
    monkeypatch.chdir(tmp_path)
    process = ProcessLauncher(tmp_path / "logs", interpreter=sys.executable).start(["--version"])
    process._process.wait()
    assert "from the folder" not in process.output()
    assert process.poll() == 0


def test_spawned_processes_start_safely(tmp_path, monkeypatch):
    """The standard library starts spawned processes with ``-c``, and imports ``multiprocessing`` first."""
    (tmp_path / "multiprocessing.py").write_text("raise SystemExit('from the folder')")
    monkeypatch.chdir(tmp_path)
    with parts._without_current_folder():
        process = multiprocessing.get_context("spawn").Process(target=os.mkdir, args=("made",))
        process.start()
        process.join()
    assert (tmp_path / "made").is_dir()


def test_spawned_workers_of_a_loader_start_safely(tmp_path, monkeypatch):
    monkeypatch.setattr(torch_dataset, "_kind", lambda: list)  # the workers are processes of the standard library
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    samples: Any = ()
    assert torch_dataset.torch_dataset(samples) == []
    assert os.environ["PYTHONSAFEPATH"] == "", "the user has set it"
    monkeypatch.delenv("PYTHONSAFEPATH")
    torch_dataset.torch_dataset(samples)
    (tmp_path / "multiprocessing.py").write_text("raise SystemExit('from the folder')")
    monkeypatch.chdir(tmp_path)
    process = multiprocessing.get_context("spawn").Process(target=os.mkdir, args=("made",))
    process.start()
    process.join()
    assert (tmp_path / "made").is_dir()


def test_export_starts_its_workers_safely(monkeypatch):
    seen = []

    def pool(*_: object, **__: object) -> None:
        seen.append(os.environ.get("PYTHONSAFEPATH"))
        raise KeyboardInterrupt

    monkeypatch.setattr(parts, "ProcessPoolExecutor", pool)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with pytest.raises(KeyboardInterrupt):
        parts.make_all(print, [1, 2], workers=2)
    assert seen == ["1"]
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.long
@pytest.mark.slow
def test_libraries_start_nothing(tmp_path):
    """No library that a command loads starts an interpreter, or opens a file of the current folder."""
    code = """
import os, sys
found = []
def watch(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system") and "python" in str(args[:2]):
        found.append((event, str(args)[:200]))
    elif event in ("open", "ctypes.dlopen") and isinstance(args[0], str) and not os.path.isabs(args[0] or "/"):
        found.append((event, args[0]))
sys.addaudithook(watch)
from nimbus.runner.system.threads import prepare_libraries
prepare_libraries()
assert not found, found
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
