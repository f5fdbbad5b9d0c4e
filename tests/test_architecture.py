"""Imports run downwards: a table of floors, no cycles, few imports inside functions, and no effects of importing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nimbus.datagen.episode.trajectory import Reason
from tests.support import ROOT
from tools.sources import ROOTS, Import, imports, modules, parse

DATAGEN = ROOTS["nimbus.datagen"]
FLOORS = (
    "datagen.arrays datagen.errors datagen.local_server datagen.machine datagen.progress datagen.random_streams "
    "datagen.version",
    "datagen.episode datagen.files datagen.media datagen.registry",
    "datagen.geometry datagen.language_model datagen.meshes datagen.stages datagen.textures",
    "datagen.objects datagen.plan datagen.rooms datagen.splats",
    "datagen.navigate datagen.robots",
    "datagen.usd",
    "datagen.simulate datagen.tasks",
    "datagen.pipeline datagen.plugin",
    "datagen.execute datagen.randomize datagen.render datagen.store",
    "datagen.analysis datagen.load datagen.policies datagen.success skills runner.system runner.cell.transport",
    "datagen.datasets datagen.teleoperate",
    "datagen.assets datagen.doctor runner.cell.queue runner.media runner.monitor",
    "datagen.propose datagen.ui runner.cell.worker runner.report",
    "datagen.kit runner.checks runner.isaac",
    "runner.cell",
    "runner.cluster runner.evaluation",
    "runner.improvement",
    "runner.commands gym train",
    "runner.cli",
    "runner.runner",
)
"""Rooms from the lowest floor to the highest. A room only imports rooms of lower floors."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms.split()}
HEAVY = {
    *("PIL", "av", "carb", "coacd", "h5py", "isaacsim", "jinja2", "mink", "mujoco", "newton", "omni", "ompl", "pxr"),
    *(
        "pyarrow",
        "pydantic",
        "rerun",
        "rich",
        "ruckig",
        "scipy",
        "toppra",
        "torch",
        "trimesh",
        "typer",
        "viser",
        "warp",
    ),
}
"""Packages that are slow to import. A module that imports one of them may itself be imported inside functions."""
LAZY = ("nimbus.runner.cli", "nimbus.runner.commands", "nimbus.runner.system.output", "nimbus.runner.system.threads")
LAZY += ("nimbus.runner.checks", "nimbus.runner.cell.transport.spec", "nimbus.datagen.plan.curobo.server")
"""Modules that may import anything inside functions: help and tables start fast, and an instance adds its libraries
first."""
LOOSE_FILES = {"nimbus.datagen": 12, "nimbus.runner": 3}
"""Largest number of modules directly in the folder, outside of its packages."""
TORCH = "nimbus.datagen.geometry.torch_library"
"""Module that imports PyTorch for all others."""
TORCH_IN_ROOT = {modules()[TORCH], modules()["nimbus.datagen.plan.curobo.server"]}
"""Files that import PyTorch themselves: that module, and the program that starts in the root folder."""
NEED_TORCH = ("torch.", "torchao.", "torchvision.", "safetensors.torch.", "gsplat.", "lightning.")
"""PyTorch and packages that import it."""
LONGEST_CHAIN = 20
"""Number of modules in the longest chain of imports, without imports for types."""


def room(name: str) -> str:
    """Return a module's room: its folder below the library or the runner, or the loose file itself."""
    parts = name.split(".")[1:]
    if (
        parts[:2] == ["runner", "cell"]
        and (ROOTS["nimbus.runner"] / "cell" / "/".join(parts[2:3])).is_dir()
        and parts[2:]
    ):
        return ".".join(parts[:3])
    return parts[0] if parts[0] in ("skills", "gym", "train") else ".".join(parts[:2])


@cache
def arrows() -> tuple[Import, ...]:
    """Return all imports between modules of the project."""
    return tuple(arrow for name in modules() for arrow in imports(name))


def test_imports_run_downwards():
    upward = [
        f"{arrow.importer}:{arrow.line} imports {arrow.imported}"
        for arrow in arrows()
        if room(arrow.importer) != room(arrow.imported) and "." in room(arrow.imported)
        if FLOOR[room(arrow.imported)] >= FLOOR[room(arrow.importer)]
    ]
    assert not upward


def test_training_reader_loads_no_physics():
    """The simulator took 3 CPU-seconds per opening, and is only needed for views of actions."""
    loaded: dict[str, set[str]] = {name: set() for name in modules()}
    for arrow in arrows():
        if not arrow.in_function and not arrow.for_types:
            loaded[arrow.importer].add(arrow.imported)
    found = waiting = {name for name in modules() if name.startswith("nimbus.datagen.datasets.training")}
    while waiting:
        waiting = set().union(*(loaded[name] for name in waiting)) - found
        found = found | waiting
    assert not {name for name in found if name.startswith("nimbus.datagen.simulate.newton")}


def test_every_room_has_a_floor():
    rooms = {room(name) for name in modules()} - {"datagen", "runner"}
    assert rooms == set(FLOOR)


def test_few_files_are_loose():
    for prefix, most in LOOSE_FILES.items():
        assert len(list(ROOTS[prefix].glob("*.py"))) <= most, prefix


@pytest.mark.parametrize("package", ["datagen", "runner"])
def test_folders_of_tests_mirror_rooms(package: str):
    folder, source = ROOT / "tests" / package, ROOTS[f"nimbus.{package}"]
    rooms = {path.parent.relative_to(folder) for path in folder.rglob("test_*.py")}
    assert rooms
    assert not [str(room) for room in rooms if not (source / room / "__init__.py").is_file()]


def test_skills_do_not_import_each_other():
    assert not [arrow for arrow in arrows() if {room(arrow.importer), room(arrow.imported)} == {"skills"}]


def test_imports_in_functions_are_of_heavy_modules():
    direct = {name for name, path in modules().items() if HEAVY & _packages(path)}
    heavy, size = set(direct), 0
    while len(heavy) != size:
        size = len(heavy)
        heavy |= {arrow.importer for arrow in arrows() if arrow.imported in heavy}
    light = [
        f"{arrow.importer}:{arrow.line} imports {arrow.imported}"
        for arrow in arrows()
        if arrow.in_function and arrow.imported not in heavy and not arrow.importer.startswith(LAZY)
    ]
    assert not light


def test_av_is_imported_by_one_module():
    """Its libraries would read a file in ``/tmp`` that any user of the machine can put there."""
    found = [name for name, path in modules().items() if "av" in _run_time_packages(path)]
    assert found == ["nimbus.datagen.files.av_library"]


def test_mujoco_is_imported_by_one_module():
    """It would append its warnings to a file in the current folder, which may be a link in the folder of others."""
    found = [name for name, path in modules().items() if "mujoco" in _run_time_packages(path)]
    assert found == ["nimbus.datagen.geometry.mujoco_library"]


def test_torch_is_imported_by_one_module():
    """It would execute a library of the current folder. Packages that import it, in other modules, come later."""
    early = [
        f"{path.relative_to(ROOT)}:{number} imports {name}"
        for path in (*modules().values(), *sorted((ROOT / "docs" / "examples").glob("*.py")))
        if path not in TORCH_IN_ROOT
        for number, name in _too_early(parse(path))
    ]
    assert not early


@pytest.mark.parametrize(
    "text",
    (
        "import torch",
        "from torch import nn",
        "import numpy, torch.nn",
        "from safetensors.torch import load_file",
        f"import gsplat\nfrom {TORCH} import torch",
        f"def load():\n    import lightning\n    import {TORCH}",
        "from safetensors import torch",
    ),
)
def test_early_imports_of_torch_are_found(text: str):
    assert list(_too_early(ast.parse(text)))
    assert not list(_too_early(ast.parse(f"from {TORCH} import torch\n{text}")))


def test_chains_of_imports_are_short():
    names = {name: number for number, name in enumerate(modules())}
    pairs = [(names[arrow.importer], names[arrow.imported]) for arrow in arrows() if not arrow.for_types]
    graph = coo_array((np.ones(len(pairs)), np.transpose(pairs)), shape=(len(names), len(names)))
    _, group = connected_components(graph, directed=True, connection="strong")
    below: dict[int, set[int]] = {int(number): set() for number in group}
    for importer, imported in pairs:
        below[int(group[importer])] |= {int(group[imported])} - {int(group[importer])}

    @cache
    def depth(number: int) -> int:
        return 1 + max((depth(other) for other in below[number]), default=0)

    assert max(map(depth, below)) <= LONGEST_CHAIN


def _packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            names.add(str(node.module).split(".")[0])
    return names


def _run_time_packages(path: Path) -> set[str]:
    """Return the packages that a module imports, without those for types."""
    return {name.split(".")[0] for _, name in _run_time_imports(parse(path))}


def _run_time_imports(tree: ast.Module) -> list[tuple[int, str]]:
    """Return the lines and names of imported modules, also ``module.name`` of ``from module import name``."""
    for_types = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    skipped = {id(node) for block in for_types for node in ast.walk(block)}
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in skipped:
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            found += [(node.lineno, f"{module}{alias.name}") for alias in node.names]
    return sorted(found)


def _too_early(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the imports of PyTorch, or of packages that import it, before that of the module that imports PyTorch."""
    for number, name in _run_time_imports(tree):
        if name.startswith(TORCH):
            return
        if f"{name}.".startswith(NEED_TORCH):
            yield number, name


def test_importing_datagen_writes_nothing_and_starts_nothing(tmp_path: Path):
    code = """
import importlib, pathlib, sys, threading
import nimbus.runner.system.threads  # keeps the libraries from starting threads
heavy = {"omni", "carb", "isaacsim", "torch", "pyarrow"}  # newton brings pxr; pyarrow starts a thread
for name in sys.argv[1:]:
    importlib.import_module(name)
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert threading.active_count() == 1, threading.enumerate()
tasks = pathlib.Path("/proc/self/task")  # threads of libraries counted
assert not tasks.exists() or len(list(tasks.iterdir())) == 1
"""
    package = DATAGEN.parents[1]
    names = [".".join(path.relative_to(package).with_suffix("").parts) for path in sorted(DATAGEN.rglob("*.py"))]
    # Loaded by Kit, by cuRobo's process, with PyTorch, or by commands that do not fork.
    apart = (".kit", ".curobo.adapter", ".torch_library", ".datasets.")
    names = [name.removesuffix(".__init__") for name in names if not any(room in name for room in apart)]
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    env = os.environ | {"HOME": str(home), "NIMBUS_CACHE": str(cache), "PYTHONPATH": str(package)}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code, *names], env=env, cwd=home, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["home"]


def test_every_reason_is_given_somewhere():
    given = {
        node.attr
        for path in modules().values()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }
    inside_the_enum = {"NONE"}
    assert given | inside_the_enum == set(Reason.__members__)
