"""Python sources of the project by dotted module name, and the imports between them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOTS = {
    "nimbus.datagen": ROOT / "exts/nimbus.datagen/nimbus/datagen",
    "nimbus.gym": ROOT / "exts/nimbus.datagen/nimbus/gym",
    "nimbus.runner": ROOT / "runner",
    "nimbus.skills": ROOT / "skills",
    "nimbus.train": ROOT / "exts/nimbus.datagen/nimbus/train",
}


@dataclass(frozen=True)
class Import:
    """One import of a module of the project, anywhere in the file."""

    importer: str
    imported: str
    line: int
    in_function: bool
    for_types: bool
    """True below ``if TYPE_CHECKING:``."""


@cache
def modules() -> dict[str, Path]:
    """Return the files of all modules of the library, the runner and the skills, by dotted name."""
    found: dict[str, Path] = {}
    for prefix, folder in ROOTS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((prefix, *(part for part in parts if part != "__init__")))] = path
    return found


@cache
def other_sources() -> tuple[Path, ...]:
    """Return the files of tests, tools, benchmarks and integrations."""
    folders = [ROOT / name for name in ("tests", "tools", "benchmarks", "integrations")]
    return tuple(path for folder in folders for path in sorted(folder.rglob("*.py")))


@cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file; it is cached."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(name: str) -> Iterator[Import]:
    """Yield the imports of one module: at the top, in functions, and for types only."""
    path = modules()[name]
    tree = parse(path)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for_types = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and isinstance(branch.test, ast.Name) and branch.test.id == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = [_target(str(node.module), alias.name) for alias in node.names]
        else:
            continue
        for target in sorted({_known(target) for target in targets} - {"", name}):
            yield Import(name, target, node.lineno, id(node) in inside, id(node) in for_types)


def relative(path: Path) -> str:
    """Return the path relative to the checkout, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def _target(module: str, name: str) -> str:
    return f"{module}.{name}" if f"{module}.{name}" in modules() else module


def _known(target: str) -> str:
    """Return the longest prefix of a dotted name that is a module of the project; empty for other packages."""
    while target and target not in modules():
        target = target.rpartition(".")[0]
    return target
