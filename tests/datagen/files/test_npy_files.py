"""NPY and NPZ files from other programs: all exceptions of the libraries become one kind of error."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.files.npy_files import read_npy_header, read_npz

WRONG = (
    *("-" * 9000 + "1", "(" * 9000, "1+" * 4000 + "1", "{'a':" * 1500, "'", "{}"),
    *(
        f"{{'descr': {kind}, 'fortran_order': False, 'shape': (1,)}}"
        for kind in ("(('u', 'v'),)", "3", "b'<f8'", "[()]", "'<U99999999999'", "()", "[('a',)]")
    ),
)


def npy(header: str, version: bytes = b"\x01\x00") -> io.BytesIO:
    text = header.encode() + b"\n"
    return io.BytesIO(b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text)


@pytest.mark.parametrize("header", WRONG, ids=lambda text: text[:40])
def test_wrong_header_is_value_error(header: str):
    with pytest.raises(ValueError):
        read_npy_header(npy(header))


@given(st.binary(max_size=40), st.sampled_from([b"", b"\x93NUMPY\x01\x00\x20\x00"]))
def test_any_bytes_are_value_error(content: bytes, before: bytes):
    with pytest.raises(ValueError):
        read_npy_header(io.BytesIO(before + content))


def test_header_is_read():
    file = io.BytesIO()
    np.save(file, np.zeros((2, 3), "<f4"))
    file.seek(0)
    assert read_npy_header(file) == ((2, 3), False, np.dtype("<f4"))


def npz(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return out.getvalue()


def test_arrays_of_archive_are_read(tmp_path: Path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["x", "yz"]), "c": np.zeros((0, 3)), "d": np.array(2)}
    arrays["e"] = np.asfortranarray(arrays["a"])
    np.savez_compressed(tmp_path / "a.npz", allow_pickle=False, **arrays)
    found = read_npz(tmp_path / "a.npz", limit=1 << 20)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array) and found[name].flags.writeable


def test_wrong_archives_are_value_errors():
    huge = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}").getvalue()
    objects = npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}").getvalue() + bytes(8)
    locked = npz(("a.npy", huge))
    locked = locked.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
    packed = npz(("a.npy", bytes(1 << 21)), compression=zipfile.ZIP_DEFLATED)
    for content in (b"", npz(("a.npy", huge)), npz(("a.npy", objects)), npz(("a.npy", b"x")), locked, packed):
        with pytest.raises(ValueError):
            read_npz(content, limit=1 << 20)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_unpacked_in_one_go_are_refused(compression: int):
    with pytest.raises(ValueError, match="not compressed by deflate"):
        read_npz(npz(("a.npy", bytes(100)), compression=compression), limit=1 << 20)


def test_members_that_grow_are_refused():
    file = io.BytesIO()
    np.savez_compressed(file, a=np.zeros(1 << 18))
    assert read_npz(file.getvalue(), limit=1 << 30)["a"].shape == (1 << 18,)
    with pytest.raises(ValueError, match="'a.npy' unpacks to"):
        read_npz(file.getvalue(), limit=1 << 30, most_growth=10)
