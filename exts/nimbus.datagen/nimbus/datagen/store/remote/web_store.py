"""Files of a web server, read by name, with the size that the server declares and not more."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.files.bounded import TEXT_BYTES
from nimbus.datagen.store.publish import write_object
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.objects import (
    LARGEST_OBJECT,
    MissingObjectError,
    ObjectStat,
    check_size,
)
from nimbus.datagen.store.remote.web_requests import CALL_SECONDS, COPY, LATER, WebAnswer, WebRequests, urls_below

T = TypeVar("T")
_PAUSES = (0.1, 0.4, 1.6)
"""Pauses before further tries of a call [s]."""
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:\d{1,18}|\*)", re.ASCII)
_SIZE = re.compile(r"\d{1,18}", re.ASCII)
DENIED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
MISSING = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class WebStore:
    """Files below one address of a web server, read-only. Thread-safe, also in forked processes.

    Args:
        address: Address of the files.

    Raises:
        InputError: The address has no valid host or port.
    """

    def __init__(self, address: StoreAddress) -> None:
        self.address = address
        try:
            self._requests = WebRequests(urls_below(str(address)), follows=True)
        except ValueError:
            instead = f"write {address.scheme}://host/path"
            raise InputError("the address has no valid host or port", where=str(address), instead=instead) from None

    def read(self, name: str) -> bytes:
        """Read a whole file of at most 64 MiB; see :meth:`ObjectStore.read`."""

        def once(end: float) -> bytes:
            with self._asked("GET", name, end=end) as answer:
                size = _declared(answer)
                check_size(size, TEXT_BYTES, where=answer.where)
                return b"".join(answer.blocks(size))

        return self._try(once)

    def read_range(self, name: str, start: int, byte_count: int, *, least: int | None = None) -> bytes:
        """Read bytes ``[start, start + byte_count)`` of a file; see :meth:`ObjectStore.read_range`."""
        least = byte_count if least is None else least
        part = f"bytes={start}-{start + byte_count - 1}"

        def once(end: float) -> bytes:
            with self._asked("GET", name, end=end, headers={"Range": part}) as answer:
                found = b"".join(answer.blocks(_declared_part(answer, start, byte_count)))
            if len(found) < least:
                raise StoreAwayError(f"returned {len(found)} of {byte_count} bytes", where=answer.where)
            return found

        return self._try(once)

    def download(self, name: str, path: Path, *, limit: int = LARGEST_OBJECT) -> ObjectStat:
        """Write a file of the server to a new file; see :meth:`ObjectStore.download`."""

        def once(end: float) -> ObjectStat:
            with self._asked("GET", name, end=end) as answer:
                stat = _stat(answer)
                check_size(stat.byte_count, limit, where=answer.where)
                write_object(path, answer.blocks(stat.byte_count), stat.byte_count, where=answer.where)
                return stat

        return self._try(once)

    def stat(self, name: str) -> ObjectStat | None:
        """Return size and version of a file; None if it does not exist. Raises what :meth:`read` does otherwise."""

        def once(end: float) -> ObjectStat:
            with self._asked("HEAD", name, end=end) as answer:
                return _stat(answer)

        try:
            return self._try(once)
        except MissingObjectError:
            return None

    def names(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Refuse to list with an :class:`InputError`: a listing of a web server has no limit."""
        raise InputError("web servers cannot list their files", where=self.place(folder), instead=COPY)

    def place(self, name: str) -> str:
        """Return the full address of a file, for messages."""
        return f"{self.address}/{name}".rstrip("/")

    def _try(self, once: Callable[[float], T]) -> T:
        """Repeat a call while the server does not answer, until the time is over."""
        end = time.monotonic() + CALL_SECONDS
        for pause in _PAUSES:
            try:
                return once(end)
            except StoreAwayError:
                if time.monotonic() + pause >= end:
                    raise
            time.sleep(pause)
        return once(end)

    @contextmanager
    def _asked(
        self, method: str, name: str, *, end: float, headers: dict[str, str] | None = None
    ) -> Iterator[WebAnswer]:
        """Send a request, and yield the successful answer."""
        where = self.place(name)
        with self._requests.ask(method, name, end=end, where=where, headers=headers) as answer:
            self._check(answer)
            yield answer

    def _check(self, answer: WebAnswer) -> None:
        """Convert an answer that is not successful to an error."""
        if answer.status in MISSING:
            raise MissingObjectError("no such object", where=answer.where, instead="restore it from a copy")
        if answer.status in DENIED:
            instead = "grant public access, or use a store with credentials (docs/object-store.md)"
            raise InputError("the web server denies access", where=answer.where, instead=instead)
        if not answer.is_success:
            raise StoreAwayError(f"the web server answers {answer.status}", where=answer.where, instead=LATER)


def _stat(answer: WebAnswer) -> ObjectStat:
    etag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
    return ObjectStat(byte_count=_declared(answer), etag=etag)


def _declared(answer: WebAnswer) -> int:
    """Return the declared size of an answer [bytes].

    Raises:
        InputError: It has none, so it could be endless.
    """
    headers = answer.headers
    text = headers.get("Content-Length", "")
    is_plain = headers.get("Content-Encoding", "identity") == "identity" and "Transfer-Encoding" not in headers
    if not is_plain or not _SIZE.fullmatch(text):
        what = "the web server answers without Content-Length, or with a compressed or chunked content"
        raise InputError(what, where=answer.where, instead="let the server send plain files")
    return int(text)


def _declared_part(answer: WebAnswer, start: int, byte_count: int) -> int:
    """Return the size of an answer with a part of a file [bytes]; refuse another part than the requested one."""
    size = _declared(answer)
    if answer.status == HTTPStatus.OK and start == 0 and size <= byte_count:
        return size  # the whole file
    if answer.status != HTTPStatus.PARTIAL_CONTENT:
        what = "the web server answers a request for a part of a file with the whole file"
        raise InputError(what, where=answer.where, instead=f"let the server support ranges, or {COPY}")
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    first, last = map(int, found.groups()) if found else (-1, -1)
    if first != start or last - first + 1 != size or size > byte_count:
        raise StoreAwayError("returned another part of the file", where=answer.where, instead=LATER)
    return size
