"""Access to the objects of a store by URLs that another process signs, so that this process needs no key."""

from __future__ import annotations

import base64
import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.files.own_files import create_file, remove_file
from nimbus.datagen.store.publish import disk
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.objects import LARGEST_OBJECT, MissingObjectError, ObjectStat

_PATIENCE = 60.0
"""Time without progress after which a connection is abandoned [s]."""
_BLOCK = 1 << 20
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
            if isinstance(content, bytes):
                self._request("PUT", name, headers=headers, data=content).close()
            else:
                with content.open("rb") as file:
                    self._request("PUT", name, headers=headers, data=file).close()
        except _TakenError:
            return False
        except StoreAwayError:
            # A store that refuses may close the connection before it has read the file, and its answer is then lost.
            if self._exists(name):
                return False
            raise
        return True

    def download(self, name: str, path: Path) -> ObjectStat:
        """Write an object to a new file, replacing an existing one; see :meth:`ObjectStore.download`."""
        written = 0
        with disk(path), closing(self._request("GET", name)) as answer:
            expected = answer.length
            if expected is None or expected > LARGEST_OBJECT:  # an answer without a size could be endless
                what = (
                    f"declares {'no size' if expected is None else f'{expected} bytes'}; the limit is {LARGEST_OBJECT}"
                )
                raise InputError(what, where=self.place(name), instead="check the address of the store")
            remove_file(path)
            with os.fdopen(create_file(path), "wb") as file:
                while block := self._read(answer, name):
                    written += file.write(block)
        if written != expected:
            raise StoreAwayError(f"returned {written} of {expected} bytes", where=self.place(name))
        return ObjectStat(byte_count=written, etag=answer.headers.get("ETag", ""))

    def place(self, name: str) -> str:
        """Return the full address of an object, for messages."""
        return f"{self.address}/{name}"

    def _exists(self, name: str) -> bool:
        try:
            self._request("HEAD", name).close()
        except InputError:  # including denied access and outages, for which the caller raises its own error
            return False
        return True

    def _read(self, answer: HTTPResponse, name: str) -> bytes:
        try:
            return answer.read(_BLOCK)
        except (OSError, HTTPException) as error:
            raise self._away(name, error) from None

    def _request(self, method: str, name: str, *, headers: dict[str, str] | None = None, data: object = None):  # noqa: ANN202
        url = self._sign(name, method)
        if not url.startswith(_SCHEMES):  # urllib would also open file: and ftp:
            what = "the URL from the head does not lead to a store"
            raise InputError(what, where=self.place(name), instead="check the head of the cluster")
        request = urllib.request.Request(
            url,
            data=data,  # pyright: ignore[reportArgumentType]
            headers=headers or {},
            method=method,
        )
        try:
            return urllib.request.urlopen(request, timeout=_PATIENCE)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(4096).decode(errors="replace")
            raise self._refusal(name, error.code, text) from None
        except (OSError, HTTPException) as error:
            raise self._away(name, error) from None

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
        return StoreAwayError(f"the store answers {code}", where=where, instead="run the same command again later")

    def _away(self, name: str, error: Exception) -> StoreAwayError:
        reason = getattr(error, "reason", None) or type(error).__name__
        what = f"the store does not answer: {str(reason)[:160]}"
        return StoreAwayError(what, where=self.place(name), instead="run the same command again later")


class _TakenError(InputError):
    """Raised when another object has the name."""


def _digest(content: Path | bytes) -> bytes:
    """Return the MD5 with which S3 checks the received data; it does not protect against tampering."""
    if isinstance(content, bytes):
        return hashlib.md5(content, usedforsecurity=False).digest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).digest()
