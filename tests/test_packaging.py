"""The built wheel as a user gets it: in a separate folder, without the checkout on the path."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from nimbus.datagen.files.cache import cache_folder
from tests.support import ROOT
from tests.support.runs import TINY, sound

DATAGEN = ROOT / "exts/nimbus.datagen/nimbus/datagen"
ROOMS = {"datagen", "gym", "runner", "skills", "scenes", "train"}


def pip(*words: str) -> None:
    line = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    left_out = (".git", ".venv*", "out", "build", "dist", "__pycache__", ".*_cache", "tests", "tools", "benchmarks")
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(*left_out))
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """Install the wheel's files, with the dependencies of this environment."""
    target = wheel.parent / "installed"
    pip("install", "--no-deps", "--no-compile", "--target", str(target), str(wheel))
    return target


def nimbus(installed: Path, *words: str, cwd: Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the installed command; an editable install of the checkout would be later on the path."""
    env = os.environ | {"PYTHONPATH": str(installed), "NIMBUS_CACHE": str(cwd / "cache")}
    line = [*before, sys.executable, "-P", str(installed / "bin" / "nimbus"), *words]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, env=env)


def test_the_wheel_holds_one_package_with_all_rooms_and_nothing_else(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"nimbus", f"nimbus_datagen-{version()}.dist-info"}
    assert {name.split("/")[1] for name in names if name.count("/") > 1 and name.startswith("nimbus/")} == ROOMS
    assert not [name for name in names if "__pycache__" in name]
    for room in ("runner", "skills", "scenes"):
        tracked = {path.relative_to(ROOT).as_posix() for path in (ROOT / room).rglob("*") if path.is_file()}
        shipped = {name.removeprefix("nimbus/") for name in names if name.startswith(f"nimbus/{room}/")}
        assert shipped == {path for path in tracked if "__pycache__" not in path}
    assert "nimbus/py.typed" in names
    templates = {path.relative_to(DATAGEN).as_posix() for path in DATAGEN.glob("**/templates/*")}
    assert templates and {f"nimbus/datagen/{path}" for path in templates} <= set(names)


def version() -> str:
    return tomllib.loads((ROOT / "exts/nimbus.datagen/config/extension.toml").read_text())["package"]["version"]


def test_the_version_is_the_extensions(wheel: Path, installed: Path, tmp_path: Path):
    assert wheel.name.split("-")[1] == version()
    assert nimbus(installed, "--version", cwd=tmp_path).stdout == f"nimbus {version()}\n"


def test_the_installed_command_knows_its_tasks_skills_and_schema(installed: Path, tmp_path: Path):
    assert "\nsort_trash  " in f"\n{nimbus(installed, 'tasks', cwd=tmp_path).stdout}"
    assert "  pick: {" in nimbus(installed, "skills", cwd=tmp_path).stdout
    assert '"$schema"' in nimbus(installed, "schema", cwd=tmp_path).stdout


@pytest.mark.slow
@pytest.mark.long  # the wheel has all files of the checkout, as a faster test finds
def test_an_installed_nimbus_makes_a_dataset_without_a_network(installed: Path, tmp_path: Path):
    """The cache is empty except for compiled kernels, which would take a minute."""
    if (kernels := cache_folder("warp")).is_dir():
        shutil.copytree(kernels, tmp_path / "cache" / "warp")
    task = str(shutil.copy(TINY, tmp_path))
    cut = ("unshare", "--map-root-user", "--net")
    if not shutil.which("unshare") or subprocess.run([*cut, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody cut the network for one process")
    done = nimbus(installed, "run", "--task", task, "--episodes", "1", "--out", "data", cwd=tmp_path, before=cut)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 episodes stored of 1 asked" in done.stdout
    sound(tmp_path / "data")


def test_every_dependency_is_pinned_and_those_for_development_are_installed():
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")
    )
    pinned = {normal(name): version for name, version in pins.items()}
    needed = closure("dev")
    assert {name: importlib.metadata.version(name) for name in needed} == {name: pinned.get(name) for name in needed}
    beyond = set(pinned) - needed
    assert "viser" in beyond
    if importlib.util.find_spec("viser"):
        assert beyond == closure("studio") - needed


def closure(extra: str) -> set[str]:
    """Return every distribution of an installation with an extra on this platform, by its normalized name."""
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"][extra]]
    found: dict[str, set[str]] = {}
    while waiting:
        requirement = waiting.pop()
        name = normal(requirement.name)
        if name in found and requirement.extras <= found[name]:
            continue
        found[name] = found.get(name, set()) | requirement.extras
        for line in importlib.metadata.requires(name) or ():
            below = Requirement(line)
            if any(not below.marker or below.marker.evaluate({"extra": part}) for part in ("", *found[name])):
                waiting.append(below)
    return set(found)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_one_provider_of_pxr_is_installed():
    folder = Path(sysconfig.get_paths()["purelib"])
    providers = [
        item.metadata["Name"]
        for item in importlib.metadata.distributions(path=[str(folder)])
        if any(str(file).endswith("pxr/Usd/__init__.py") for file in item.files or ())
    ]
    assert providers == ["usd-exchange"]
