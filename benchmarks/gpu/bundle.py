"""Packs the files that a bare GPU machine needs: ``python -m benchmarks.gpu.bundle``, as ``make gpu-bundle`` does.

The machine has Linux on x86-64, Python 3.12 with pip, and no network. The bundle holds Warp, MuJoCo, MuJoCo-Warp, NumPy
and msgspec as wheels, this project's sources, and the recorded render inputs; all of them are concatenated and cut into
parts. The same files give the same bundle, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.gpu.install import BundleFile, BundlePart, Manifest

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "build/gpu-bundle"
PART_SIZE = 48 << 20
"""Largest part [bytes]; the limit of a transfer is 60 MiB, including its overhead."""
_PACKAGES = ("warp-lang", "mujoco", "mujoco-warp", "numpy", "msgspec")
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_DAY_ONE = (1980, 1, 1, 0, 0, 0)
"""Earliest date that a zip archive can store."""
_SOURCES = "sources.zip"


def main() -> None:
    """Download the wheels, pack them with the sources, and write the parts."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder)
        download(wheels)
        sources = pack_sources(wheels / _SOURCES)
        shutil.rmtree(BUNDLE, ignore_errors=True)
        # Large files are last, so a missing part affects few other files.
        found = sorted(wheels.glob("*.whl"), key=lambda path: (path.stat().st_size, path.name))
        manifest = pack([sources, *found], BUNDLE)
    shutil.copyfile(Path(__file__).with_name("install.py"), BUNDLE / "install.py")
    for part in manifest.parts:
        sys.stdout.write(f"{BUNDLE / part.name}  {part.size / (1 << 20):.1f} MiB\n")
    sys.stdout.write("carry them with install.py and manifest.json, then run: python3 install.py\n")


def download(folder: Path) -> None:
    """Download the wheels in the versions of ``constraints.txt``."""
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--implementation", "cp"]
    line += ["--python-version", "3.12", "--constraint", str(ROOT / "constraints.txt"), "--dest", str(folder)]
    line += [word for platform in _PLATFORMS for word in ("--platform", platform)]
    subprocess.run([*line, *_PACKAGES], check=True)


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
    yield ROOT / "benchmarks/__init__.py", "benchmarks/__init__.py"
    for path in sorted(Path(__file__).parent.glob("*")):
        if path.is_file():
            yield path, f"benchmarks/gpu/{path.name}"


def _write_part(folder: Path, place: int, content: bytes) -> BundlePart:
    name = f"part-{place + 1}.bin"
    (folder / name).write_bytes(content)
    return BundlePart(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


if __name__ == "__main__":
    main()
