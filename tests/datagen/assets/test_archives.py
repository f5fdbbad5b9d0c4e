"""Archives with paths outside their folder, wrong sizes or unlimited content are refused in one line."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nimbus.datagen.assets.archives import unpack
from tests.support.refusals import refusal


def zipped(path: Path, name: str, content: bytes = b"solid", link: bool = False) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o120777 if link else 0o644) << 16
        archive.writestr(entry, content)


def tarred(path: Path, name: str, size: int = 5, kind: bytes = tarfile.REGTYPE) -> None:
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size, entry.type, entry.linkname = size, kind, "/etc/passwd"
        archive.addfile(entry, io.BytesIO(bytes(size)) if kind == tarfile.REGTYPE else None)


def damaged(path: Path, method: int) -> None:
    """Write an archive with noise in the middle of its only file."""
    noise = bytes((number * number * 97 + number // 7) % 251 for number in range(1 << 14))
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("mug.obj", noise)
    else:
        with tarfile.open(path, "w:xz") as archive:
            entry = tarfile.TarInfo("mug.obj")
            entry.size = len(noise)
            archive.addfile(entry, io.BytesIO(noise))
    content = bytearray(path.read_bytes())
    at = len(content) // 2 if path.suffix == ".zip" else 120
    content[at : at + 40] = bytes(range(60, 100))
    path.write_bytes(content)


def flagged(path: Path, flags: int, method: int = zipfile.ZIP_DEFLATED) -> None:
    """Write a zip file whose only member has the given flags and compression method in both of its headers."""
    zipped(path, "mug.obj")
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = content.index(mark) + place
        content[at : at + 4] = flags.to_bytes(2, "little") + method.to_bytes(2, "little")
    path.write_bytes(content)


def sparse(path: Path, **fields: str) -> None:
    """Write a tar file whose only member has a stated size and consists of holes."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("mug.obj")
        entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", **fields}
        entry.size = 512
        archive.addfile(entry, io.BytesIO(b"0\n".ljust(512, b"\0")))


def bz2_zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("mug.obj", bytes(1 << 12))


def long_named(path: Path, kind: bytes) -> None:
    """Write a tar file whose first header has a name of 1 MiB; a real bomb has a name of gigabytes."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = kind, 1 << 20
    with tarfile.open(path, "w:bz2") as archive:
        assert archive.fileobj
        archive.fileobj.write(entry.tobuf(tarfile.GNU_FORMAT) + bytes(entry.size))


def nested(path: Path) -> None:
    """Write a tar file in which every name is the header of a further name."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 5
    path.write_bytes((entry.tobuf(tarfile.GNU_FORMAT) + b"name".ljust(512, b"\0")) * 2000)


HOSTILE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "slip": ("a.zip", lambda path: zipped(path, "../../mug.obj"), "leads out of the archive"),
    "absolute": ("a.zip", lambda path: zipped(path, "/tmp/mug.obj"), "leads out of the archive"),
    "drive": ("a.zip", lambda path: zipped(path, "C:\\mug.obj"), "leads out of the archive"),
    "link": ("a.zip", lambda path: zipped(path, "mug.obj", link=True), "is a link"),
    "bomb": ("a.zip", lambda path: zipped(path, "mug.obj", bytes(1 << 22)), "unpacks to [0-9]+ times its size"),
    "no archive": ("a.whl", lambda path: path.write_bytes(b"PK\3\4 no"), "cannot be unpacked"),
    "encrypted": ("a.zip", lambda path: flagged(path, 0x1), "'mug.obj' needs a password; unpack it by hand"),
    "strongly encrypted": ("a.zip", lambda path: flagged(path, 0x41), "needs a password"),
    "unknown method": ("a.zip", lambda path: flagged(path, 0, 77), "cannot be unpacked"),
    "tar slip": ("a.tar.gz", lambda path: tarred(path, "../mug.obj"), "leads out of the archive"),
    "tar link": ("a.tgz", lambda path: tarred(path, "mug.obj", 0, tarfile.SYMTYPE), "is a link, a device"),
    "tar bomb": ("a.tar.gz", lambda path: tarred(path, "mug.obj", 1 << 24), "unpacks to more than 100 times its size"),
    "damaged deflate": ("a.zip", lambda path: damaged(path, zipfile.ZIP_DEFLATED), "cannot be unpacked"),
    "bz2": ("a.zip", bz2_zipped, "is not compressed by deflate"),
    "tar of long name": (
        "a.tar.bz2",
        lambda path: long_named(path, tarfile.GNUTYPE_LONGNAME),
        "a name of 1048576 bytes",
    ),
    "tar of attributes": ("a.tar.bz2", lambda path: long_named(path, tarfile.XHDTYPE), "a name of 1048576 bytes"),
    "tar of nested names": ("a.tar", nested, "cannot be unpacked"),
    "damaged lzma": ("a.zip", lambda path: damaged(path, zipfile.ZIP_LZMA), "cannot be unpacked"),
    "damaged xz": ("a.tar.xz", lambda path: damaged(path, 0), "cannot be unpacked"),
    "tar of holes": ("a.tar", lambda path: sparse(path, **{"GNU.sparse.realsize": "2000000000"}), "a sparse file"),
    "tar of no holes": ("a.tar", lambda path: sparse(path, **{"GNU.sparse.map": "x"}), "cannot be unpacked"),
    "tar of text": ("a.tar", lambda path: path.write_bytes(b"text"), "cannot be unpacked"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_archive_is_one_line(name: str, tmp_path: Path) -> None:
    file, make, line = HOSTILE[name]
    make(tmp_path / file)
    (tmp_path / "into").mkdir()
    assert re.search(line, refusal(unpack, tmp_path / file, tmp_path / "into"))
    assert [path.name for path in tmp_path.iterdir()] in ([file, "into"], ["into", file])


def test_what_assets_need_is_unpacked(tmp_path: Path) -> None:
    for name in ("a.zip", "a.tar.gz"):
        into = tmp_path / f"{name}.into"
        into.mkdir()
        zipped(tmp_path / name, "deep/mug.obj") if name == "a.zip" else tarred(tmp_path / name, "deep/mug.obj")
        unpack(tmp_path / name, into)
        assert [path.relative_to(into).as_posix() for path in into.rglob("*.obj")] == ["deep/mug.obj"]


def test_a_hole_is_no_archive(tmp_path: Path):
    """Lzma itself would read a terabyte of zeros as empty streams."""
    path = tmp_path / "a.tar.xz"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
