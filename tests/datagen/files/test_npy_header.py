"""Headers of NPY files from other programs: whatever NumPy's parser raises is one kind of error."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.files.npy_header import read_npy_header

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
