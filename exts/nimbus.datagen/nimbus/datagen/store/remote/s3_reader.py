"""Reading of objects of S3 by requests that this process signs.

The library for stores would follow redirects of a hostile store to servers that only this machine reaches, and return
their answers as objects. Here, a redirect is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from nimbus.datagen.errors import StoreAwayError
from nimbus.datagen.store.remote import objects
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.objects import MissingObjectError, denied_access, missing_bucket, too_many_names
from nimbus.datagen.store.remote.s3_client import object_key, refuse_redirect, s3_calls, s3_client
from nimbus.datagen.store.remote.web_requests import LATER, WebAnswer, WebRequests
from nimbus.datagen.store.remote.web_store import DENIED, MISSING, WebStore

_VALID = 900
"""Validity of a signed URL [s]; a request is sent at once, but clocks differ."""
_ERROR_BYTES = 4096
"""Part of an error that is read [bytes]."""
_METHODS = {"GET": "get_object", "HEAD": "head_object"}


class S3Reader(WebStore):
    """Objects below one address of S3, for reading. Thread-safe, also in forked processes.

    Args:
        address: Address of the objects.
    """

    def __init__(self, address: StoreAddress) -> None:
        self.address = address
        self._turn = threading.Lock()
        self._known: Any = None
        self._requests = WebRequests(self._url)

    def names(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """List objects below a folder, with sizes [bytes]; see :meth:`ObjectStore.names`."""
        base = object_key(self.address, "")["Key"]
        prefix = f"{base}{folder.strip('/')}/" if folder.strip("/") else base
        where, count = self.place(folder), 0
        with s3_calls(where, self.address):
            pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self.address.bucket, Prefix=prefix)
            for page in pages:
                found = page.get("Contents", ())
                if (count := count + len(found)) > objects.MOST_NAMES:
                    raise too_many_names(where)
                yield from ((str(one["Key"]).removeprefix(base), int(one["Size"])) for one in found)

    def _client(self) -> Any:
        with self._turn:
            self._known = self._known or s3_client()
            return self._known

    def _url(self, method: str, name: str) -> str:
        key = object_key(self.address, name)
        with s3_calls(self.place(name), self.address):
            return self._client().generate_presigned_url(_METHODS[method], Params=key, ExpiresIn=_VALID)

    def _check(self, answer: WebAnswer) -> None:
        if answer.status in MISSING:
            if b"<Code>NoSuchBucket</Code>" in answer.read(_ERROR_BYTES):
                raise missing_bucket(self.address)
            raise MissingObjectError("no such object", where=answer.where, instead="restore it from a copy")
        if answer.status in DENIED:
            raise denied_access(answer.where)
        refuse_redirect(answer)
        if not answer.is_success:
            raise StoreAwayError(f"the store answers {answer.status}", where=answer.where, instead=LATER)
