"""Access to the objects of a store by URLs that another process signs, so that this process needs no key."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.store.publish import write_object
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.objects import LARGEST_OBJECT, MissingObjectError, ObjectStat
from nimbus.datagen.store.remote.web_requests import LATER, WebAnswer, exchange_once

_LONGEST_ERROR = 4096
"""Part of an error's text that is read [bytes]."""
_SCHEMES = ("https://", "http://")
_DENIED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class SignedStore:
    """Objects below one address of S3. Thread-safe.

    Args:
        address: Address of the objects.
        sign: Returns a URL for an object's name and a method, ``PUT``, ``GET`` or ``HEAD``.

    Raises:
        InputError: The store is not S3; other stores have other conditional requests.
    """

    def __init__(self, address: StoreAddress, sign: Callable[[str, str], str]) -> None:
        if address.scheme != "s3":
            what = f"uploads with signed URLs are for s3://, not {address.scheme}://"
            raise InputError(what, where=str(address), instead="give each node a role or a profile")
        self.address, self._sign = address, sign

    def create(self, name: str, content: Path | bytes) -> bool:
        """Create an object atomically in one request; False if the name is taken.

        Args:
            name: Path below the address.
            content: Bytes, or a file of at most 5 GB.

        Raises:
            InputError: There is no bucket, or no permission.
            StoreAwayError: The store does not answer; either nothing or the whole object is visible.
        """
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        headers = {
            "Content-Length": str(size),
            "Content-MD5": base64.b64encode(_digest(content)).decode(),
            "Content-Type": "application/octet-stream",
            "If-None-Match": "*",
        }
        try:
            with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
                with self._asked("PUT", name, headers=headers, content=file):
                    return True
        except _TakenError:
            return False
        except StoreAwayError:
            # A store that refuses may close the connection before it has read the file, and its answer is then lost.
            if self._exists(name):
                return False
            raise

    def download(self, name: str, path: Path) -> ObjectStat:
        """Write an object to a new file, replacing an existing one; see :meth:`ObjectStore.download`."""
        with self._asked("GET", name) as answer:
            size = answer.response.length
            if size is None or size > LARGEST_OBJECT:  # an answer without a size could be endless
                what = f"declares {'no size' if size is None else f'{size} bytes'}; the limit is {LARGEST_OBJECT}"
                raise InputError(what, where=answer.where, instead="check the address of the store")
            write_object(path, answer.blocks(size), size, where=answer.where)
            return ObjectStat(byte_count=size, etag=answer.headers.get("ETag", ""))

    def place(self, name: str) -> str:
        """Return the full address of an object, for messages."""
        return f"{self.address}/{name}"

    def _exists(self, name: str) -> bool:
        try:
            with self._asked("HEAD", name):
                return True
        except InputError:  # including denied access and outages, for which the caller raises its own error
            return False

    @contextmanager
    def _asked(
        self, method: str, name: str, *, headers: dict[str, str] | None = None, content: BinaryIO | None = None
    ) -> Iterator[WebAnswer]:
        """Send a request, and yield the successful answer."""
        url, where = self._sign(name, method), self.place(name)
        if not url.startswith(_SCHEMES):
            what = "the URL from the head does not lead to a store"
            raise InputError(what, where=where, instead="check the head of the cluster")
        with exchange_once(method, url, where=where, headers=headers, content=content) as answer:
            if answer.status // 100 != HTTPStatus.OK // 100:
                raise self._refusal(name, answer.status, _error_text(answer))
            yield answer

    def _refusal(self, name: str, code: int, text: str) -> InputError:
        """Convert an answer of the store to one line."""
        where = self.place(name)
        if code == HTTPStatus.PRECONDITION_FAILED:
            return _TakenError("the name is taken", where=where, instead="choose another --out")
        if code == HTTPStatus.NOT_FOUND:
            if "NoSuchBucket" in text:
                what = f"there is no bucket '{self.address.bucket}'"
                return InputError(what, where=str(self.address), instead="create the bucket first")
            return MissingObjectError("no such object", where=where, instead="restore it from a copy")
        if code in _DENIED and "expired" not in text.lower():
            instead = "grant the head's user access (docs/object-store.md), and compare the clocks of head and node"
            return InputError("the store denies access to a signed URL", where=where, instead=instead)
        return StoreAwayError(f"the store answers {code}", where=where, instead=LATER)


class _TakenError(InputError):
    """Raised when another object has the name."""


def _error_text(answer: WebAnswer) -> str:
    """Return the start of an error's text; it often has no declared size."""
    text = b""
    while (left := _LONGEST_ERROR - len(text)) and (part := answer.read(left)):
        text += part
    return text.decode(errors="replace")


def _digest(content: Path | bytes) -> bytes:
    """Return the MD5 with which S3 checks the received data; it does not protect against tampering."""
    if isinstance(content, bytes):
        return hashlib.md5(content, usedforsecurity=False).digest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).digest()
