"""Packs the files that a bare GPU machine needs: ``python -m benchmarks.gpu.bundle``, as ``make gpu-bundle`` does.

The machine has Linux on x86-64, Python 3.12 with pip, and no network. The bundle holds this project's sources, all
packages of ``nimbus run`` as wheels, the arm of ``sort_trash``, MuJoCo-Warp and the recorded render inputs; with
``--curobo`` also the sources of cuRobo. All of them are compressed, concatenated and cut into parts. The same files
give the same bundle, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.gpu.curobo_wheel import COMPANIONS, pack_curobo
from benchmarks.gpu.install import BundleFile, BundlePart, Manifest
from benchmarks.gpu.wheels import keep_files, store_uncompressed
from nimbus.datagen.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "build/gpu-bundle"
PART_SIZE = 40 << 20
"""Largest part [bytes]; with the 15 MiB of a checkout beside it, it fits into a transfer of 64 MiB."""
FIRST = ("msgspec", "warp_lang")
"""Packages of ``equality`` and ``views``, which come first, besides NumPy."""
COMMON = ("contourpy", "cycler", "fonttools", "fsspec", "h5py", "jinja2", "kiwisolver", "markupsafe", "matplotlib")
COMMON += ("numpy", "packaging", "pillow", "pyarrow", "pygments", "pyparsing", "python_dateutil", "pyyaml", "rich")
COMMON += ("scipy", "six", "typing_extensions")
"""Packages that machines with PyTorch often have. They come last: without them, the machine's own ones are used."""
LEFT_OUT = ("glfw", "jrl_cmakemodules", "pyopengl")
"""Packages that others require but that no part of the suite imports: windows, and files of a build system."""
_ARM = "cmeel.prefix/share/example-robot-data/robots/panda_description"
KEPT = {"example_robot_data": (f"{_ARM}/LICENSE", f"{_ARM}/urdf/panda.urdf", f"{_ARM}/meshes/*/*")}
"""Files of a wheel that are packed, by package: the arm of ``sort_trash`` and of the motion problems, 10 of 170 MB."""
_PROBLEMS = ("benchmarks/motion_plan.py", "tests/__init__.py", "tests/support/__init__.py")
_PROBLEMS += ("tests/support/panda_table.py", "tests/support/batch_planners/reference.py")
"""Sources of the motion problems."""
_PLATFORMS = ("2_34", "2_28", "2_27", "2_24", "2_17")
"""Versions of the C library of the wheels; usd-exchange needs the first one."""
_PRESET = 2
"""Effort of the compression; 6 takes three times as long for a tenth less."""
_WINDOW = 32 << 20
"""Distance at which repetitions are found [bytes]."""
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
        download(wheels, [*dependencies(), "mujoco-warp"])
        for wheel in wheels.glob("*.whl"):
            if patterns := KEPT.get(package_of(wheel)):
                keep_files(wheel, patterns)
        sources = pack_sources(wheels / _SOURCES)
        shutil.rmtree(BUNDLE, ignore_errors=True)
        manifest = pack([sources, *ordered(wheels.glob("*.whl"))], BUNDLE)
    shutil.copyfile(Path(__file__).with_name("install.py"), BUNDLE / "install.py")
    for part in manifest.parts:
        sys.stdout.write(f"{BUNDLE / part.name}  {part.size / (1 << 20):.1f} MiB\n")
    sys.stdout.write("carry them with install.py and manifest.json, then run: python3 install.py\n")
    return 0


def dependencies() -> list[str]:
    """Return the requirements of ``nimbus run``: those of this project without its extras."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]


def download(folder: Path, packages: Sequence[str], *flags: str) -> None:
    """Download wheels in the versions of ``constraints.txt``.

    Args:
        folder: Folder of the wheels.
        packages: Requirements.
        flags: Further options of pip.
    """
    line = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--implementation", "cp"]
    line += ["--python-version", "3.12", "--constraint", str(ROOT / "constraints.txt"), "--dest", str(folder)]
    line += [word for version in _PLATFORMS for word in ("--platform", f"manylinux_{version}_x86_64")]
    line += ["--platform", "manylinux2014_x86_64"]
    subprocess.run([*line, *flags, *packages], check=True)


def package_of(wheel: Path) -> str:
    """Return the name of a wheel's package, in lower case and with underscores."""
    return wheel.name.split("-")[0].lower()


def ordered(wheels: Iterable[Path]) -> list[Path]:
    """Return the packed wheels in their order in the bundle; large ones come late in their group."""

    def place(wheel: Path) -> tuple[int, int, str]:
        name = package_of(wheel)
        return 0 if name in FIRST else 2 if name in COMMON else 1, wheel.stat().st_size, wheel.name

    return sorted((wheel for wheel in wheels if package_of(wheel) not in LEFT_OUT), key=place)


def pack_sources(path: Path) -> Path:
    """Write this project's sources, with recorded inputs, as one archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for source, place in _sources():
            entry = zipfile.ZipInfo(place, _DAY_ONE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, source.read_bytes())
    return path


def pack(files: Sequence[Path], folder: Path, *, part_size: int = PART_SIZE) -> Manifest:
    """Write files as parts, and the manifest.

    Args:
        files: Wheels, which are replaced by uncompressed ones, and archives of sources.
        folder: New folder for the parts.
        part_size: Largest part [bytes].
    """
    folder.mkdir(parents=True)
    listed, parts, start = [], [], 0
    rest = b""
    with ThreadPoolExecutor(2) as pool:  # each compresses a file, which needs its content a few times in memory
        for path, (packed, size, digest) in zip(files, pool.map(_compress, files), strict=True):
            packages = find_packages(path)
            listed.append(
                BundleFile(name=path.name, start=start, packed=len(packed), size=size, sha256=digest, packages=packages)
            )
            start += len(packed)
            rest += packed
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
    for path in sorted(Path(__file__).parent.glob("*")):
        if path.is_file():
            yield path, f"benchmarks/gpu/{path.name}"


def _compress(path: Path) -> tuple[bytes, int, str]:
    """Return a file compressed, with its size [bytes] and its checksum."""
    if path.suffix == ".whl":
        store_uncompressed(path)
    content = path.read_bytes()
    window = min(max(len(content), 1 << 12), _WINDOW)
    # Most of the content is machine code for x86.
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": _PRESET, "dict_size": window}]
    packed = lzma.compress(content, format=lzma.FORMAT_XZ, filters=filters)
    return packed, len(content), hashlib.sha256(content).hexdigest()


def _write_part(folder: Path, place: int, content: bytes) -> BundlePart:
    name = f"part-{place + 1}.bin"
    (folder / name).write_bytes(content)
    return BundlePart(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


if __name__ == "__main__":
    sys.exit(main())
