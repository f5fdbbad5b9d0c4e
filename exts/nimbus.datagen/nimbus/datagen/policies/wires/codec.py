"""Frames of the wires: msgpack with arrays of numbers, at most 64 MiB each; no content of a frame is executed."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgpack
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.files.npy_files import read_npy_header
from nimbus.datagen.policies.wires.frame_structure import FrameError, check_structure

LARGEST = 64 * 2**20
"""Largest frame in either direction [bytes], enough for forty images of 640 x 480."""
_MOST_ENTRIES = 1_000_000
"""Largest total number of entries of a frame's lists and maps, because an empty map takes one byte in a frame and 64 in
memory. Actions are arrays and do not count."""
_MOST_LEVELS = 32
"""Largest nesting depth of lists and maps."""
_MOST_AXES = 8
_NUMBERS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
"""Types that arrays may have: plain numbers, but no objects, structures, texts, times or complex numbers."""

Array: TypeAlias = NDArray[np.generic]
Value: TypeAlias = object
"""None, booleans, numbers, texts, bytes and arrays, in tuples and in maps with text keys."""


@dataclass(frozen=True)
class Marking:
    """Encoding of an array as a map."""

    encode: Callable[[Array], dict[str | bytes, object]]
    decode: Callable[[Mapping[object, object]], object]
    """Function that returns the array that a map represents; it returns any other map unchanged."""

    def pack(self, value: Value) -> bytes:
        """Encode plain values and arrays.

        Raises:
            FrameError: The frame would be too large, or a value is neither plain nor an array.
        """
        try:
            frame = bytes(msgpack.Packer(default=self._default).pack(value))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise FrameError(f"cannot be sent: {error}") from None
        if len(frame) > LARGEST:
            raise FrameError(f"{len(frame) / 2**20:.0f} MiB, a frame has at most {LARGEST // 2**20}")
        return frame

    def unpack(self, frame: bytes) -> Value:
        """Decode a frame.

        Raises:
            FrameError: The frame is damaged or too large, or contains an array that does not hold numbers.
        """
        if len(frame) > LARGEST:
            raise FrameError(f"{len(frame) / 2**20:.0f} MiB, a frame has at most {LARGEST // 2**20}")
        check_structure(frame, most_entries=_MOST_ENTRIES, most_levels=_MOST_LEVELS)
        try:
            return msgpack.unpackb(frame, object_hook=self.decode, use_list=False, max_ext_len=0)
        except FrameError:
            raise
        except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
            raise FrameError(f"invalid msgpack: {str(error) or type(error).__name__}") from None

    def _default(self, value: object) -> object:
        if isinstance(value, np.ndarray):
            if not _NUMBERS.fullmatch(value.dtype.str):
                raise FrameError(f"an array of type {value.dtype} is not supported, only arrays of numbers")
            return self.encode(value)
        if isinstance(value, np.generic):
            return value.item()
        raise FrameError(f"a {type(value).__name__} is not a plain value")


def _array(data: object, kind: object, shape: object, *, columns_first: bool = False) -> Array:
    """View bytes as an array, after checking that type and shape fit the number of bytes."""
    if not isinstance(kind, str) or not _NUMBERS.fullmatch(kind):
        raise FrameError(f"an array of type {ascii(kind)[:60]} is not supported, only arrays of numbers")
    sizes = shape if isinstance(shape, tuple) and len(shape) <= _MOST_AXES else (-1,)
    if any(type(size) is not int or not 0 <= size <= LARGEST for size in sizes):
        raise FrameError(f"an array of the invalid shape {ascii(shape)[:60]}")
    dtype = np.dtype(kind)
    if not isinstance(data, bytes) or len(data) != math.prod(sizes) * dtype.itemsize:
        raise FrameError(f"an array whose bytes do not match its shape {sizes} and type {kind}")
    return np.frombuffer(data, dtype).reshape(sizes, order="F" if columns_first else "C")


def _write_openpi(array: Array) -> dict[str | bytes, object]:
    return {b"__ndarray__": True, b"data": array.tobytes(), b"dtype": array.dtype.str, b"shape": array.shape}


def _read_openpi(held: Mapping[object, object]) -> object:
    if b"__ndarray__" in held:
        return _array(held.get(b"data"), held.get(b"dtype"), held.get(b"shape"))
    if b"__npgeneric__" in held:
        return _number(held.get(b"data"))
    return held


def _number(value: object) -> object:
    if not isinstance(value, bool | int | float):
        raise FrameError(f"a number encoded as {type(value).__name__}")
    return value


def _write_vla_eval(array: Array) -> dict[str | bytes, object]:
    return {"__ndarray__": True, "data": array.tobytes(), "dtype": array.dtype.str, "shape": list(array.shape)}


def _read_vla_eval(held: Mapping[object, object]) -> object:
    return _array(held.get("data"), held.get("dtype"), held.get("shape")) if "__ndarray__" in held else held


def _write_npy(array: Array) -> dict[str | bytes, object]:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return {"__ndarray_class__": True, "as_npy": out.getvalue()}


def _write_nd(array: Array) -> dict[str | bytes, object]:
    described = {b"nd": True, b"type": array.dtype.str, b"kind": b"", b"shape": array.shape}
    return {**described, b"data": array.tobytes()}


def _read_groot(held: Mapping[object, object]) -> object:
    if "__ModalityConfig_class__" in held or "__ModalityConfig__" in held:
        return held.get("as_json")
    if b"nd" in held:
        shape = held.get(b"shape") if held[b"nd"] else ()
        found = _array(held.get(b"data"), held.get(b"type"), shape)
        return found if held[b"nd"] else found.item()
    if "__ndarray_class__" not in held:
        return held
    if not isinstance(data := held.get("as_npy"), bytes):
        raise FrameError("an array without bytes")
    file = io.BytesIO(data)
    try:
        shape, columns_first, dtype = read_npy_header(file)
    except ValueError as error:
        raise FrameError(f"an array that is not valid npy: {error}") from None
    return _array(data[file.tell() :], dtype.str, shape, columns_first=columns_first)


OPENPI = Marking(_write_openpi, _read_openpi)
"""openpi's ``msgpack_numpy``."""
GROOT = Marking(_write_npy, _read_groot)
"""GR00T's ``MsgSerializer`` up to N1.6; it also reads frames of N1.7."""
GROOT_N17 = Marking(_write_nd, _read_groot)
"""GR00T's ``MsgSerializer`` of N1.7: the format of msgpack-numpy, without pickle."""
VLA_EVAL = Marking(_write_vla_eval, _read_vla_eval)
"""vla-eval's ``numpy_codec``; images are sent as arrays, without loss."""
