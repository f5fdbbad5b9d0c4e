"""Messages between Nimbus and cuRobo's process: a JSON header and raw arrays, over a socket.

cuRobo's interpreter may have none of Nimbus's dependencies except NumPy, so this file imports nothing else.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_LENGTH = struct.Struct("<Q")
_TYPES = ("<f8", "<f4", "<i8", "<i4", "|b1")
_MOST_BYTES = 1 << 28
"""Largest size of a message [bytes]."""


class MalformedMessageError(Exception):
    """Raised for an invalid message."""


def send(channel: socket.socket, header: dict[str, Any], arrays: Arrays | None = None) -> None:
    """Send a message.

    Args:
        channel: A stream socket.
        header: JSON values.
        arrays: Numeric arrays by name.
    """
    parts = {name: np.asarray(array, order="C") for name, array in (arrays or {}).items()}
    table = [[name, part.dtype.str, list(part.shape)] for name, part in parts.items()]
    if wrong := [name for name, kind, _ in table if kind not in _TYPES]:
        raise TypeError(f"not an array of numbers: {wrong}")
    text = json.dumps({"header": header, "arrays": table}).encode()
    channel.sendall(_LENGTH.pack(len(text)) + text + b"".join(part.tobytes() for part in parts.values()))


def receive(channel: socket.socket) -> tuple[dict[str, Any], Arrays]:
    """Wait for a message.

    Raises:
        EOFError: The peer has closed its end.
        MalformedMessageError: The message is invalid.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    try:
        message = json.loads(_exactly(channel, length))
        header, table = message["header"], message["arrays"]
        sizes = [
            (name, np.dtype(kind), shape)
            for name, kind, shape in table
            if kind in _TYPES and min(shape, default=0) >= 0
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedMessageError(str(error)) from error
    if len(sizes) != len(table) or not isinstance(header, dict):
        raise MalformedMessageError("an array of an unknown type")
    arrays = {}
    for name, kind, shape in sizes:
        data = _exactly(channel, kind.itemsize * math.prod(shape))
        arrays[name] = np.frombuffer(data, dtype=kind).reshape(shape)
    return header, arrays


def _exactly(channel: socket.socket, count: int) -> bytes:
    if not 0 <= count <= _MOST_BYTES:
        raise MalformedMessageError(f"{count} bytes at once")
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError("the peer has closed the connection")
        parts += part
    return bytes(parts)
