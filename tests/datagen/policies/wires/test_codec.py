"""Frames are decoded as they were encoded; other values than arrays of numbers are refused, and nothing is executed."""

from __future__ import annotations

import io
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nimbus.datagen.policies.wires.codec import GROOT, GROOT_N17, LARGEST, OPENPI, VLA_EVAL, Marking
from nimbus.datagen.policies.wires.frame_structure import FrameError, check_structure

MARKINGS = pytest.mark.parametrize(
    "marking", [OPENPI, GROOT, GROOT_N17, VLA_EVAL], ids=["openpi", "groot", "groot_n17", "vla_eval"]
)
TYPES = st.sampled_from(["?", "u1", "<i2", ">i4", "<i8", "<f2", "<f4", ">f8"])


ANY = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
ANY |= st.binary(min_size=300, max_size=300)


def entry_count(value: object) -> int:
    """Return the number of lists and maps in a value, and of their entries."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + len(parts) + sum(map(entry_count, parts))


def packed(value: object) -> bytes:
    return bytes(msgpack.Packer().pack(value))


def openpi(**changes: object) -> bytes:
    held = {"__ndarray__": True, "data": bytes(16), "dtype": "<f4", "shape": [2, 2]} | changes
    return packed({"actions": {name.encode(): value for name, value in held.items()}})


def vla_eval(**changes: object) -> bytes:
    return packed({"actions": {"__ndarray__": True, "data": bytes(16), "dtype": "<f4", "shape": [2, 2]} | changes})


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.ljust(117).encode() + b"\n"
    file = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data
    return packed({"a": {"__ndarray_class__": True, "as_npy": file}})


def saved(array: np.ndarray, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return packed({"a": {"__ndarray_class__": True, "as_npy": out.getvalue()}})


@MARKINGS
@given(array=arrays(TYPES, array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)))
def test_arrays_come_back_bit_equal(marking: Marking, array: np.ndarray):
    value: Any = marking.unpack(marking.pack({"deep": [{"a": array}], "text": "ü", "n": 1.5, "none": None}))
    found = value["deep"][0]["a"]
    assert (found.dtype.str, found.shape, found.tobytes()) == (array.dtype.str, array.shape, array.tobytes())
    assert (value["text"], value["n"], value["none"]) == ("ü", 1.5, None)


@MARKINGS
@pytest.mark.parametrize(
    "value", [np.array([object()]), np.zeros(2, "c16"), np.zeros(2, "V4"), np.array(["a"]), {1, 2}]
)
def test_what_is_no_number_is_not_sent(marking: Marking, value: object):
    with pytest.raises(FrameError):
        marking.pack({"a": value})


@pytest.mark.parametrize("make", [openpi, vla_eval])
@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "|O"},
        {"dtype": "<c8", "shape": [2]},
        {"dtype": "|V4"},
        {"dtype": "<U4", "shape": [1]},
        {"dtype": "<M8[s]", "shape": [2]},
        {"dtype": [["a", "<f4"]]},
        {"dtype": 4},
        {"dtype": "<f4,<f4"},
        {"shape": [3, 2]},
        {"shape": [-2, -2]},
        {"shape": [2**40, 0]},
        {"shape": [True, 4]},
        {"shape": [1] * 40},
        {"shape": None},
        {"data": None},
        {"data": "text"},
    ],
    ids=str,
)
def test_arrays_of_anything_else_are_refused(make: Any, changes: dict[str, object]):
    marking = OPENPI if make is openpi else VLA_EVAL
    assert marking.unpack(make())["actions"].shape == (2, 2)  # type: ignore[index]
    with pytest.raises(FrameError):
        marking.unpack(make(**changes))


@pytest.mark.parametrize(
    "frame",
    [
        saved(np.array([{"a": 1}], object), allow_pickle=True),
        saved(np.zeros(2, "c16")),
        saved(np.zeros(2, [("a", "f4")])),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", bytes(4)),
        npy("{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (2,)}", bytes(8)),
        npy("nothing"),
        npy("{'descr': '<f4', 'shape': (3,"),
        npy("-" * 9000 + "1"),
        packed({"__ndarray_class__": True, "as_npy": "x"}),
        packed({"__ndarray_class__": True}),
    ],
)
def test_npy_of_anything_else_is_refused(frame: bytes):
    with pytest.raises(FrameError):
        GROOT.unpack(frame)


def test_npy_in_columns_is_read():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(GROOT.unpack(saved(array))["a"], array)  # type: ignore[index]


@pytest.mark.parametrize("entry", [b"\x80", b"\x90", b"\x91\xc0"], ids=["maps", "lists", "lists of one"])
def test_many_small_entries_are_refused(entry: bytes):
    """An empty map takes 1 byte in a frame and 64 bytes as an object, so a frame of 64 MiB took 4 GB."""
    part = b"\xdd" + (500_000).to_bytes(4, "big") + entry * 500_000
    with pytest.raises(FrameError, match="more than 1000000 entries"):
        OPENPI.unpack(b"\x93" + part * 3)


@pytest.mark.parametrize("head", [b"\xdd\x00\x0f\x42\x40", b"\xdf\x00\x0f\x42\x40", b"\xdd\xff\xff\xff\xff"])
def test_declared_lists_are_counted_before_decoding(head: bytes, monkeypatch: pytest.MonkeyPatch):
    """Most versions of msgpack reserve each list at once: 300 nested ones, 1,500 bytes, took 2.4 GB."""
    monkeypatch.setattr(msgpack, "unpackb", None)
    with pytest.raises(FrameError, match="more than 1000000 entries"):
        OPENPI.unpack(head * 300)


@given(
    value=st.recursive(ANY, lambda part: st.lists(part, max_size=40) | st.dictionaries(st.text(), part, max_size=20))
)
def test_structure_is_that_of_the_decoded_value(value: object):
    frame, count = packed(value), entry_count(value)
    check_structure(frame, most_entries=count, most_levels=32)
    with pytest.raises(FrameError, match="cut off"):
        check_structure(frame[:-1], most_entries=count, most_levels=32)
    if count:
        with pytest.raises(FrameError, match=f"more than {count - 1} entries"):
            check_structure(frame, most_entries=count - 1, most_levels=32)


@MARKINGS
def test_deep_frames_are_refused(marking: Marking):
    """Metadata are sorted and hashed, which fails beyond Python's recursion limit."""
    with pytest.raises(FrameError, match="more than 32 levels"):
        marking.unpack(b"\x91" * 900 + b"\xc0")


@MARKINGS
@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s.",  # the pickle of {"a": 1}
        b"\x81" * 5000,
        b"\xdd\xff\xff\xff\xff",
        b"\xc7\x01\x05\x00",
        b"\x81\x01\x02",
    ],
)
def test_damaged_frames_are_refused(marking: Marking, frame: bytes):
    with pytest.raises(FrameError, match="invalid msgpack|more than"):
        marking.unpack(frame)


@MARKINGS
@given(frame=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(marking: Marking, frame: bytes):
    try:
        marking.unpack(frame)
    except FrameError:
        return


def test_frames_are_bounded_in_both_directions():
    with pytest.raises(FrameError, match="64 MiB, a frame has at most 64"):
        OPENPI.pack({"a": np.zeros(LARGEST, np.uint8)})
    with pytest.raises(FrameError, match="a frame has at most 64"):
        OPENPI.unpack(bytes(LARGEST + 1))
