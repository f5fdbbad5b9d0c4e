"""Tests that a change affects, nearest first: ``python tools/affected_tests.py [--since REF] [--seconds S] [--list]``.

A change consists of the uncommitted files or, in a clean tree, of the files that the branch changes compared with
``main``. The graph of imports is read from the syntax trees of all sources and tests; a test file that imports a
changed module directly is nearer than one that imports it through others. Pyright checks the changed files. Pytest runs
the nearest test files, without tests marked as slow, until ``--seconds`` are used up by the times of earlier runs. It
prints the files that are left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"nimbus": "exts/nimbus.datagen/nimbus", "tests": "tests", "tools": "tools", "benchmarks": "benchmarks"}
"""Folders of the packages at the top, relative to the root."""
DURATIONS = ".pytest_cache/v/nimbus/seconds"
"""Wall time of each test file [s], written by ``tests/conftest.py`` at the end of every run."""
SECONDS = 40.0
"""Default limit of the tests' time [s]; with lint and start-up a typical change stays below 90 s."""
UNKNOWN_SECONDS = 3.0
"""Time assumed for a test file that has not been run yet [s]: about the mean of all files."""
ROOM_DISTANCE = 2
"""Largest distance of tests in the folder that mirrors the room of a change."""
WORKERS = 2
_IMPORT = re.compile(
    r"(?:^|[\n;\"'])\s*(?:from|import)\s+((?:nimbus|tests|tools|benchmarks)[\w.]*)(?:\s+import\s+(\w+))?"
)
"""Imports in code that a test passes to another interpreter as a string."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Test files to run and to leave out, nearest first."""

    run: tuple[Path, ...]
    left_out: tuple[Path, ...]


def find_modules(root: Path) -> dict[str, Path]:
    """Return the source file of each module by its dotted name; links are followed once."""
    modules: dict[str, Path] = {}
    for package, folder in PACKAGES.items():
        for path, _, files in os.walk(root / folder, followlinks=True):
            for name in files:
                if name.endswith(".py"):
                    file = Path(path, name)
                    parts = [package, *file.relative_to(root / folder).with_suffix("").parts]
                    modules[".".join(parts).removesuffix(".__init__")] = file.resolve()
    return modules


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a source imports: at the top, in functions, and in code within strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (".".join(filter(None, found)) for found in _IMPORT.findall(node.value))


def loaded_names(tree: ast.AST, modules: Collection[str]) -> Iterator[str]:
    """Yield the modules that a source names as strings in order to load them later; for a package, yield all of its
    modules.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in modules:
            yield node.value
            if node.value.count(".") > 1 or node.value == "nimbus.skills":
                yield from (name for name in modules if name.rpartition(".")[0] == node.value)


def nearest_module(name: str, modules: Collection[str]) -> str:
    """Return the module that holds a dotted name, or an empty string."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def find_importers(modules: Mapping[str, Path]) -> dict[Path, set[Path]]:
    """Return the files that import each source file, including ``__init__.py`` and ``conftest.py``."""
    importers: dict[Path, set[Path]] = {path: set() for path in modules.values()}
    for path in set(modules.values()):
        tree = ast.parse(path.read_text())
        for name in {*imported_names(tree), *loaded_names(tree, modules)}:
            if found := nearest_module(name, modules):
                importers[modules[found]].add(path)
        for folder in path.parents:
            for shared in (folder / "conftest.py", folder / "__init__.py"):
                if shared in importers and shared != path:
                    importers[shared].add(path)
    return importers


def mentions(change: Path, text: str) -> bool:
    """Return True if a source names a data file by its file name, or a scene's file by its quoted stem."""
    if change.name in text:
        return True
    return "scenes" in change.parts and re.search(rf"[\"']{re.escape(change.stem)}[\"']", text) is not None


def room_tests(change: Path, tests: Iterable[Path]) -> list[Path]:
    """Return the test files in the folder that mirrors the room of a changed source."""
    for package in ("exts/nimbus.datagen/nimbus", "."):
        if change.is_relative_to(ROOT / package):
            folder = ROOT / "tests" / change.relative_to(ROOT / package).parent
            return [path for path in tests if path.parent == folder]
    return []


def distances(changes: Iterable[Path], importers: Mapping[Path, set[Path]]) -> dict[Path, int]:
    """Return the number of imports between each affected file and the nearest change; 0 for a changed file."""
    found = {path: 0 for path in changes if path in importers}
    found |= {path: 1 for change in changes if change not in importers for path in _readers(change, importers)}
    waiting = deque(sorted(found, key=lambda path: found[path]))
    while waiting:
        path = waiting.popleft()
        for importer in importers[path]:
            if importer not in found:
                found[importer] = found[path] + 1
                waiting.append(importer)
    return found


def _readers(change: Path, importers: Mapping[Path, set[Path]]) -> list[Path]:
    if change.suffix == ".py" or not change.is_file():
        return []
    return [path for path in importers if mentions(change, path.read_text())]


def choose(tests: Mapping[Path, int], *, seconds: Callable[[Path], float], limit: float) -> Choice:
    """Choose the nearest test files until the time is used up; if two files are equally near, the faster one comes
    first.

    Args:
        tests: Distance of each affected test file.
        seconds: Time of a test file [s].
        limit: Time of all files together [s]; the nearest file is always chosen.
    """
    run: list[Path] = []
    left_out: list[Path] = []
    used = 0.0
    for path in sorted(tests, key=lambda path: (tests[path], seconds(path), path)):
        if not run or used + seconds(path) <= limit:
            run.append(path)
            used += seconds(path)
        else:
            left_out.append(path)
    return Choice(run=tuple(run), left_out=tuple(left_out))


def changed_files(root: Path, since: str) -> list[Path]:
    """Return the files that differ from a commit, including untracked ones; if ``since`` is empty, return the files of
    the change that the module describes.
    """

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
        return done.stdout.splitlines() if done.returncode == 0 else []

    new = git("ls-files", "--others", "--exclude-standard")
    if since:
        names = git("diff", "--name-only", "--diff-filter=d", since) + new
    elif not (names := git("diff", "--name-only", "--diff-filter=d", "HEAD") + new):
        base = git("merge-base", "HEAD", "main") or git("merge-base", "HEAD", "origin/main")
        names = git("diff", "--name-only", "--diff-filter=d", *base, "HEAD") if base else []
    return [(root / name).resolve() for name in dict.fromkeys(names)]


def _known_seconds(root: Path) -> dict[str, float]:
    path = root / DURATIONS
    return json.loads(path.read_text()) if path.is_file() else {}


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") and path.is_relative_to(ROOT / "tests")


def _names(paths: Iterable[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def main() -> int:
    """Check the changed files and run the nearest tests; the exit code is 1 if either fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="", help="commit to compare with")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"limit of the tests' time [s] ({SECONDS:g})")
    parser.add_argument("--list", action="store_true", help="print the test files instead of running them")
    args = parser.parse_args()
    changes = changed_files(ROOT, args.since)
    found = distances(changes, find_importers(find_modules(ROOT)))
    known = _known_seconds(ROOT)

    def seconds(path: Path) -> float:
        return known.get(str(path.relative_to(ROOT)), UNKNOWN_SECONDS)

    tests = {path: distance for path, distance in found.items() if _is_test(path)}
    for change in changes:
        tests |= {path: min(tests[path], ROOM_DISTANCE) for path in room_tests(change, tests)}
    choice = choose(tests, seconds=seconds, limit=args.seconds * WORKERS)
    if args.list:
        sys.stdout.writelines(f"{tests[path]} {path.relative_to(ROOT)}\n" for path in choice.run)
        return 0
    sources = [path for path in changes if path.suffix == ".py" and found.get(path) == 0]
    failed = bool(sources) and _call("pyright", "--pythonpath", sys.executable, *_names(sources))
    if choice.run:
        words = ("-P", "-m", "pytest", "-q", "-n", str(WORKERS), "--dist", "worksteal", "-m", "not slow")
        failed |= _call("python", *words, *_names(choice.run))
    names = _names(choice.left_out)
    sys.stdout.write(f"{len(changes)} changed files, {len(choice.run)} test files run, {len(names)} left out\n")
    sys.stdout.writelines(f"  left out: {name} (distance {tests[ROOT / name]})\n" for name in names)
    return int(failed)


def _call(program: str, *words: str) -> bool:
    """Run a program of this environment; return True if it failed.

    A run in which no test is selected counts as successful.
    """
    sys.stdout.flush()
    return subprocess.run([str(Path(sys.executable).with_name(program)), *words], cwd=ROOT).returncode not in (0, 5)


if __name__ == "__main__":
    sys.exit(main())
