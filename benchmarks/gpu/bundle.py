"""Packs the files that a bare GPU machine needs: ``python -m benchmarks.gpu.bundle``, as ``make gpu-bundle`` does.

The machine has Linux on x86-64, Python 3.12 with pip, and no network. The bundle holds Warp, MuJoCo, MuJoCo-Warp,
NumPy, msgspec and the packages of the default planner as wheels, this project's sources, the recorded render inputs and
the arm of the motion problems; with ``--curobo`` also the sources of cuRobo. All of them are concatenated and cut into
parts. The same files give the same bundle, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.gpu.curobo_wheel import COMPANIONS, pack_curobo
from benchmarks.gpu.install import BundleFile, BundlePart, Manifest
from nimbus.datagen.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "build/gpu-bundle"
PART_SIZE = 48 << 20
"""Largest part [bytes]; the limit of a transfer is 60 MiB, including its overhead."""
_PACKAGES = ("warp-lang", "mujoco", "mujoco-warp", "numpy", "msgspec")
_PLANNER = ("mink", "ompl", "pydantic", "pyyaml", "ruckig", "scipy", "toppra")
"""Packages of the default planner, which plans the motion problems."""
_ARM = "robots/panda_description"
"""Folder of the arm of the motion problems in the package example-robot-data, under the Apache license 2.0."""
_ARM_FILES = ("LICENSE", "urdf/panda.urdf", "meshes/collision/*.stl")
"""Files of this folder that planning needs: 0.2 of 11 MB."""
_PROBLEMS = ("benchmarks/motion_plan.py", "tests/__init__.py", "tests/support/__init__.py")
_PROBLEMS += ("tests/support/panda_table.py", "tests/support/batch_planners/reference.py")
"""Sources of the motion problems."""
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_DAY_ONE = (1980, 1, 1, 0, 0, 0)
"""Earliest date that a zip archive can store."""
_SOURCES = "sources.zip"


def main() -> int:
    """Download the wheels, pack them with the sources, and write the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curobo", type=Path, metavar="DIR", help="checkout of cuRobo V2, which is packed too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder)
        if options.curobo:
            try:
                pack_curobo(options.curobo, wheels)
            except InputError as error:
                sys.stderr.write(f"{error}\n")
                return 2
            download(wheels, COMPANIONS, "--no-deps")
        download(wheels, (*_PACKAGES, *_PLANNER))
        sources = pack_sources(wheels / _SOURCES)
        shutil.rmtree(BUNDLE, ignore_errors=True)
        # Large files are last, so a missing part affects few other files.
        found = sorted(wheels.glob("*.whl"), key=lambda path: (path.stat().st_size, path.name))
        manifest = pack([sources, *found], BUNDLE)
    shutil.copyfile(Path(__file__).with_name("install.py"), BUNDLE / "install.py")
    for part in manifest.parts:
        sys.stdout.write(f"{BUNDLE / part.name}  {part.size / (1 << 20):.1f} MiB\n")
    sys.stdout.write("carry them with install.py and manifest.json, then run: python3 install.py\n")
    return 0


def download(folder: Path, packages: Sequence[str], *flags: str) -> None:
    """Download wheels in the versions of ``constraints.txt``.

    Args:
        folder: Folder of the wheels.
        packages: Names of the packages.
        flags: Further options of pip.
    """
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--implementation", "cp"]
    line += ["--python-version", "3.12", "--constraint", str(ROOT / "constraints.txt"), "--dest", str(folder)]
    line += [word for platform in _PLATFORMS for word in ("--platform", platform)]
    subprocess.run([*line, *flags, *packages], check=True)


def pack_sources(path: Path) -> Path:
    """Write this project's sources, with recorded inputs, as one archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, place in _sources():
            entry = zipfile.ZipInfo(place, _DAY_ONE)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read_bytes())
    return path


def pack(files: Sequence[Path], folder: Path, *, part_size: int = PART_SIZE) -> Manifest:
    """Write files as parts, and the manifest.

    Args:
        files: Wheels, and archives of sources.
        folder: New folder for the parts.
        part_size: Largest part [bytes].
    """
    folder.mkdir(parents=True)
    listed, parts, start = [], [], 0
    rest = b""
    for path in files:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        listed.append(
            BundleFile(name=path.name, start=start, size=len(content), sha256=digest, packages=find_packages(path))
        )
        start += len(content)
        rest += content
        while len(rest) >= part_size:
            parts.append(_write_part(folder, len(parts), rest[:part_size]))
            rest = rest[part_size:]
    if rest:
        parts.append(_write_part(folder, len(parts), rest))
    manifest = Manifest(parts=tuple(parts), files=tuple(listed))
    (folder / "manifest.json").write_text(manifest.to_json(), encoding="utf-8")
    return manifest


def find_packages(path: Path) -> tuple[str, ...]:
    """Return the package names in a wheel; none for other archives."""
    if path.suffix != ".whl":
        return ()
    with zipfile.ZipFile(path) as wheel:
        tops = {name.split("/")[0] for name in wheel.namelist()}
    folders = {top for top in tops if not top.endswith((".dist-info", ".data", ".libs"))}
    return tuple(sorted(top.partition(".")[0] for top in folders))


def _sources() -> Iterator[tuple[Path, str]]:
    """Yield the files of the package and of this suite, with their paths for the import."""
    package = ROOT / "exts/nimbus.datagen/nimbus"
    for folder, folders, names in os.walk(package, followlinks=True):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in sorted(names):
            path = Path(folder, name)
            yield path, f"nimbus/{path.relative_to(package).as_posix()}"
    for place in ("benchmarks/__init__.py", *_PROBLEMS):
        yield ROOT / place, place
    yield from _arm_files()
    for path in sorted(Path(__file__).parent.glob("*")):
        if path.is_file():
            yield path, f"benchmarks/gpu/{path.name}"


def _arm_files() -> Iterator[tuple[Path, str]]:
    """Files of the arm, each with its path in the package; empty if the package is not installed."""
    package = importlib.util.find_spec("cmeel")
    if package is None or not package.submodule_search_locations:
        return
    around = Path(package.submodule_search_locations[0])
    share = "cmeel.prefix/share/example-robot-data"
    # The planner looks for the arm beside the package cmeel, so that package must exist; one file in its folder is
    # enough.
    yield around.parent / share / _ARM / "LICENSE", "cmeel/LICENSE"
    for pattern in _ARM_FILES:
        for path in sorted((around.parent / share / _ARM).glob(pattern)):
            yield path, f"{share}/{_ARM}/{path.relative_to(around.parent / share / _ARM).as_posix()}"


def _write_part(folder: Path, place: int, content: bytes) -> BundlePart:
    name = f"part-{place + 1}.bin"
    (folder / name).write_bytes(content)
    return BundlePart(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


if __name__ == "__main__":
    sys.exit(main())
