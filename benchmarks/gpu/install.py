"""Installs the GPU bundle offline and runs the suite: ``python3 install.py [--into DIR] [--device D] [PART ...]``.

It is in the folder of ``manifest.json`` and the parts of the bundle, needs only Python 3.12 with pip, and installs into
a separate folder of this user, by default ``nimbus-gpu`` in the home folder. Parts may be missing: their files are left
out, and the checks that need them are SKIPPED.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import re
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,200}")
"""Pattern of the names of parts and files: no separators, no hidden files."""
_LARGEST_SOURCE = 64 << 20
"""Largest total size of the unpacked sources [bytes]; they have about 5 MiB."""
_PIECE = 1 << 20
"""Size of a read [bytes]."""


class BundleError(Exception):
    """Raised for a bundle that this program may not unpack, or a folder that it may not use."""


@dataclass(frozen=True, kw_only=True)
class BundlePart:
    """A part of the bundle: one file, which is transferred separately."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class BundleFile:
    """A file of the bundle: a range in the concatenation of all parts, compressed with xz."""

    name: str
    start: int
    packed: int
    """Size in the parts [bytes]."""
    size: int
    sha256: str
    packages: tuple[str, ...]
    """Packages in it; empty for the sources."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Contents of a bundle."""

    parts: tuple[BundlePart, ...]
    files: tuple[BundleFile, ...]

    def to_json(self) -> str:
        """Return the text of ``manifest.json``."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Parse the text that :meth:`to_json` returns.

        Raises:
            BundleError: It is not a manifest, or names files outside of the folder.
        """
        try:
            plain = json.loads(text)
            parts = tuple(BundlePart(**part) for part in plain["parts"])
            files = tuple(BundleFile(**{**file, "packages": tuple(file["packages"])}) for file in plain["files"])
        except (ValueError, KeyError, TypeError) as error:
            raise BundleError(f"not a manifest: {error}") from None
        for item in (*parts, *files):
            if not isinstance(item.name, str) or not _NAME.fullmatch(item.name):
                raise BundleError(f"{item.name!r} is not a file name")
            if not isinstance(item.size, int) or item.size < 0:
                raise BundleError(f"{item.name}: a size of {item.size!r}")
        if any(not isinstance(place, int) or place < 0 for file in files for place in (file.start, file.packed)):
            raise BundleError("a file begins outside the parts")
        return cls(parts=parts, files=files)

    def parts_of(self, file: BundleFile) -> list[tuple[BundlePart, int, int]]:
        """Return the parts that contain a file, with its begin and end in each [bytes]."""
        found, start = [], 0
        for part in self.parts:
            first, last = max(file.start - start, 0), min(file.start + file.packed - start, part.size)
            if first < last:
                found.append((part, first, last))
            start += part.size
        return found


def find_absent(folder: Path, manifest: Manifest) -> dict[str, str]:
    """Return the unusable parts, by name, with the reason: missing or damaged."""
    absent = {}
    for part in manifest.parts:
        path = folder / part.name
        if not path.is_file():
            absent[part.name] = f"{part.name} of the bundle did not arrive"
        elif path.stat().st_size != part.size or _hash(path) != part.sha256:
            absent[part.name] = f"{part.name} of the bundle is damaged"
    return absent


def assemble(
    folder: Path, manifest: Manifest, target: Path, *, absent: dict[str, str], known: Sequence[str] = ()
) -> tuple[dict[str, Path], dict[str, str]]:
    """Write all files whose parts are usable.

    Args:
        folder: Folder with the parts.
        manifest: Contents of the bundle.
        target: Folder for the files.
        absent: Reasons by name of the parts that cannot be used.
        known: Checksums of files that are not needed again.

    Returns:
        Paths of the written files by name, and reasons by name of those that are left out.

    Raises:
        BundleError: A file differs from the manifest although its parts are intact.
    """
    target.mkdir(parents=True, exist_ok=True)
    whole, left_out = [], {}
    for file in manifest.files:
        reasons = [absent[part.name] for part, _, _ in manifest.parts_of(file) if part.name in absent]
        if reasons:
            left_out[file.name] = ", ".join(reasons)
        elif file.sha256 not in known:
            whole.append(file)
    paths = {file.name: target / file.name for file in whole}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda file: _write(folder, manifest, file, paths[file.name]), whole))
    return paths, left_out


def _write(folder: Path, manifest: Manifest, file: BundleFile, path: Path) -> None:
    """Write one file from its parts."""
    decoder, rest = lzma.LZMADecompressor(format=lzma.FORMAT_XZ), file.size
    with path.open("wb") as out:
        for piece in _pieces(folder, manifest, file):
            try:
                content = decoder.decompress(piece, max_length=rest + 1)
            except (lzma.LZMAError, EOFError) as error:
                raise BundleError(f"{file.name} cannot be decompressed: {error}") from None
            rest -= len(content)
            if rest < 0:
                raise BundleError(f"{file.name} is larger than the manifest lists")
            out.write(content)
    if rest or _hash(path) != file.sha256:
        raise BundleError(f"{file.name} is not what the manifest lists")


def _pieces(folder: Path, manifest: Manifest, file: BundleFile) -> Iterator[bytes]:
    """Yield the compressed content of a file."""
    for part, first, last in manifest.parts_of(file):
        with (folder / part.name).open("rb") as source:
            source.seek(first)
            while first < last:
                if not (piece := source.read(min(_PIECE, last - first))):
                    raise BundleError(f"{part.name} ended early")
                first += len(piece)
                yield piece


def unpack(archive: Path, target: Path) -> None:
    """Unpack sources: plain files below ``target``, of bounded size.

    Raises:
        BundleError: An entry is a link or is outside of ``target``, or the total size is too large.
    """
    with zipfile.ZipFile(archive) as file:
        entries = file.infolist()
        if sum(entry.file_size for entry in entries) > _LARGEST_SOURCE:
            raise BundleError(f"{archive.name} is larger than {_LARGEST_SOURCE >> 20} MiB")
        for entry in entries:
            place = PurePosixPath(entry.filename)
            plain = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
            if (
                not plain
                or place.is_absolute()
                or {"..", ""} & set(entry.filename.split("/"))
                or "\\" in entry.filename
            ):
                raise BundleError(f"{archive.name}: {entry.filename!r} is not a plain file inside the folder")
        for entry in entries:
            path = target / entry.filename
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read(entry))


def make_private(folder: Path) -> None:
    """Make the folder to install into, unless it exists; its code is executed.

    An existing folder may have been made by another user of the machine, who can also have put a folder such as
    ``site`` or ``warp`` into a folder that all may write.

    Raises:
        BundleError: It, its parent or an entry of it belongs to another user, or others can write there.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    above, user = folder.parent.stat(), os.getuid()
    is_sticky = bool(above.st_mode & stat.S_ISVTX)  # as /tmp: others can add entries there, but replace none
    if above.st_uid not in (user, 0) or (above.st_mode & stat.S_IWOTH and not is_sticky):
        raise _not_own(folder.parent)
    for place in (folder, *sorted(folder.iterdir())):
        state = place.stat()
        if user != state.st_uid or user != place.lstat().st_uid or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _not_own(place)


def _not_own(place: Path) -> BundleError:
    why = "it belongs to another user, or others can write there, and their code would run"
    return BundleError(f"{place}: {why}; write --into with a new folder in your home folder")


def install(wheels: Sequence[Path], target: Path) -> None:
    """Install wheels into a folder, without a network and without their dependencies."""
    line = [sys.executable, "-P", "-m", "pip", "--isolated", "install", "--quiet", "--no-index", "--no-deps"]
    line += ["--no-compile", "--disable-pip-version-check", "--no-cache-dir", "--upgrade", "--target", str(target)]
    subprocess.run([*line, *map(str, wheels)], check=True, cwd=target.parent)


def main() -> int:
    """Install the transferred files and run the suite; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts of the suite (default: all)")
    parser.add_argument("--into", type=Path, help="folder to install into (default: nimbus-gpu in the home folder)")
    parser.add_argument("--device", default="cuda", help="cuda (default) or cpu")
    options = parser.parse_args()
    here, begin = Path(__file__).resolve().parent, time.perf_counter()
    os.umask(0o077)  # with another one, members of a group could change the code
    try:
        into = (options.into or Path.home() / "nimbus-gpu").resolve()
        make_private(into)
        record = into / "installed.json"
        manifest = Manifest.from_json((here / "manifest.json").read_text(encoding="utf-8"))
        absent = find_absent(here, manifest)
        known = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else []
        paths, left_out = assemble(here, manifest, into / "files", absent=absent, known=known)
        files = [file for file in manifest.files if file.name in paths]
        for file in files:
            if not file.packages:
                unpack(paths[file.name], into / "source")
    except (BundleError, OSError, RuntimeError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _say("".join(f"left out: {name}: {reason}\n" for name, reason in left_out.items()))
    if any(not file.packages and file.name in left_out for file in manifest.files):
        _say("every check SKIPPED: the sources are not here\n")
        return 0
    unpacked = time.perf_counter()
    if wheels := [paths[file.name] for file in files if file.packages]:
        install(wheels, into / "site")
    for path in paths.values():
        path.unlink()
    record.write_text(json.dumps([*known, *(file.sha256 for file in files)]), encoding="utf-8")
    _say(f"unpacked {len(files)} files in {unpacked - begin:.1f} s")
    _say(f", installed {len(wheels)} packages in {time.perf_counter() - unpacked:.1f} s\n")
    reasons = {
        package: left_out[file.name] for file in manifest.files if file.name in left_out for package in file.packages
    }
    (into / "absent.json").write_text(json.dumps(reasons), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(into / "site"), str(into / "source")])}
    env["PYTHONDONTWRITEBYTECODE"] = ""  # where it is set, every worker would compile all packages again
    env |= {"PYTHONUNBUFFERED": "1", "WARP_CACHE_PATH": str(into / "warp"), "NIMBUS_CACHE": str(into / "cache")}
    words = ["--device", options.device, "--json", str(into / "gpu.json"), "--absent", str(into / "absent.json")]
    line = [sys.executable, "-P", "-m", "benchmarks.gpu", *words, *options.parts]
    return subprocess.run(line, cwd=into, env=env).returncode


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
