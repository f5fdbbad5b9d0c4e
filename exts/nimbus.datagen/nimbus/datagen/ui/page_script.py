"""Script that the studio adds to the page of the web library, and the address that the script sends reports to."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from nimbus.datagen.errors import InputError

_LONGEST = 4000
"""Longest query of a report [characters]."""


@dataclass(frozen=True, kw_only=True)
class PageScript:
    """Script that is added to the page, and its reports.

    All requests pass the gate first, which checks the secret in the path, the host and the origin.

    Args:
        name: Name of the script; its address is ``/TOKEN/NAME.js``, and its reports go to ``/TOKEN/NAME?REPORT``.
        source: File of the script.
        answer: Called in a thread of the server with the text of a report; returns JSON.
    """

    name: str
    source: Path
    answer: Callable[[str], str]

    def respond(self, path: str) -> tuple[int, str, bytes] | None:
        """Answer a request, whose path no longer contains the token.

        Returns:
            Status, media type and content; None for a path of the web library.
        """
        place, _, query = path.partition("?")
        if place == f"/{self.name}.js":
            return 200, "text/javascript; charset=utf-8", self.source.read_bytes()
        if place != f"/{self.name}":
            return None
        try:
            if len(query) > _LONGEST:
                raise InputError("too long", where="report", instead="reload the page")
            return 200, "application/json", self.answer(unquote(query)).encode()
        except InputError as error:
            return 400, "text/plain; charset=utf-8", f"{error}\n".encode()

    def insert(self, response: Any, token: str) -> None:
        """Add the script to a page of the web library, which may be compressed."""
        headers = response.headers
        if not headers.get("Content-Type", "").startswith("text/html"):
            return
        body = response.body
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        tag = f'<script defer src="/{token}/{self.name}.js"></script>'.encode()
        head, end, tail = body.rpartition(b"</body>")
        response.body = head + tag + end + tail if end else body + tag
        for name, value in (("Content-Encoding", "identity"), ("Content-Length", str(len(response.body)))):
            if name in headers:
                del headers[name]
            headers[name] = value
