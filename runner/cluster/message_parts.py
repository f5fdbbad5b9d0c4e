"""Parts of requests that are larger than a message. No part delays the messages of other nodes for long."""

from __future__ import annotations

from collections.abc import Iterator

from nimbus.datagen.errors import InputError
from nimbus.runner.cluster.messages import MOST_BYTES, MessagePart, Request, encoded, to_line

MOST_PARTED = 8 << 20
"""Size limit of a request in parts [bytes]; the head keeps the parts of each node in memory."""
_PART = 15_000
"""Length of a part [characters]; quoted in JSON, each takes at most four bytes."""


def lines_of(request: Request) -> Iterator[bytes]:
    """Yield the lines in which a request is sent: a single one, unless it is larger than a message.

    Raises:
        InputError: The request is too large, even in parts.
    """
    line = encoded(request)
    if len(line) <= MOST_BYTES:
        yield line
        return
    if len(line) > MOST_PARTED:
        what = f"a message of {len(line)} bytes to the head; the limit is {MOST_PARTED}"
        raise InputError(what, where=f"node {request.node}", instead="run the task without --cluster")
    text = line.decode()
    for begin in range(0, len(text), _PART):
        part, is_last = text[begin : begin + _PART], begin + _PART >= len(text)
        yield to_line(MessagePart(node=request.node, begin=begin, text=part, is_last=is_last))


class PartBuffer:
    """Received parts of unfinished requests, by node."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, part: MessagePart) -> bytes | None:
        """Add a part; return the whole request after the last one, otherwise None.

        The first part replaces earlier ones: a node that got no answer sends its request again from the beginning.

        Raises:
            ValueError: Earlier parts are missing, or the request is too large.
        """
        text = self._texts.pop(part.node, "") if part.begin else ""
        if part.begin != len(text):
            raise ValueError(
                f"node {part.node}: a part begins at character {part.begin} of a request, not at {len(text)}"
            )
        text += part.text
        if len(text) > MOST_PARTED:
            raise ValueError(f"node {part.node}: a request of more than {MOST_PARTED} bytes")
        if part.is_last:
            return text.encode()
        self._texts[part.node] = text
        return None
