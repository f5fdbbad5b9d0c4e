"""Multipart uploads of large objects, which continue after a crash: the id of the upload is kept beside the file."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.own_files import make_subfolder, remove_file
from nimbus.datagen.store.publish import replace_text
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.s3_client import error_code, object_key, s3_calls, s3_client

LARGE = 64 << 20
"""Size above which a file is sent in parts [bytes]; a smaller file is cheaper to send in one request."""
_MOST_PAGES = 1_000
"""Largest number of pages in a list of parts; S3 needs 10 for the 10,000 parts of the largest upload."""
_LONGEST_ETAG = 1_024
"""Longest accepted version of a part [letters]; S3's have 34."""
PART = 16 << 20
"""Size of a part [bytes]; with S3's limit of 10,000 parts, objects have up to 160 GB."""


@dataclass(frozen=True, kw_only=True)
class UploadNote:
    """Record of an upload in progress."""

    upload_id: str
    byte_count: int


def create_large(store: ObjectStore, name: str, path: Path, *, notes: Path) -> bool:
    """Create an object in parts; parts sent by an earlier call are not sent again.

    Args:
        store: An S3 store; others receive the file in one request.
        name: Path of the object.
        path: The unchanging file.
        notes: Folder for the record of the upload, created if missing.

    Returns:
        False if the name is taken, in which case nothing was changed.

    Raises:
        InputError: There is no bucket, or no permission.
        StoreAwayError: The store does not answer; the next call continues.
    """
    if store.address.scheme != "s3":
        return store.create(name, path)
    if store.stat(name):
        return False
    make_subfolder(notes)
    note_path = notes / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
    key = object_key(store.address, name)
    size = path.stat().st_size
    missing = _Answers()
    with s3_calls(store.place(name), store.address):
        client = s3_client()
        upload_id = _known(note_path, size)
        if upload_id and not missing.covers(lambda: client.list_parts(**key, UploadId=upload_id)):
            upload_id = ""
        if not upload_id:
            upload_id = client.create_multipart_upload(**key)["UploadId"]
            replace_text(note_path, to_json(UploadNote(upload_id=upload_id, byte_count=size)))
        lengths = {n + 1: min(PART, size - n * PART) for n in range(-(-size // PART))}
        sent = _sent_parts(client, key, upload_id, lengths)
        done: list[dict[str, Any]] = []
        with path.open("rb") as file:
            for number, length in lengths.items():
                if number in sent:
                    done.append({"PartNumber": number, "ETag": sent[number]})
                    continue
                file.seek((number - 1) * PART)
                answer = client.upload_part(**key, UploadId=upload_id, PartNumber=number, Body=file.read(length))
                done.append({"PartNumber": number, "ETag": answer["ETag"]})
        created = not missing.is_taken(
            lambda: client.complete_multipart_upload(
                **key, UploadId=upload_id, MultipartUpload={"Parts": done}, IfNoneMatch="*"
            )
        )
        if not created:
            with suppress(Exception):
                client.abort_multipart_upload(**key, UploadId=upload_id)
    remove_file(note_path)
    return created


class _Answers:
    """Calls to a store for which some error codes are expected answers, not errors."""

    def covers(self, call: Any) -> bool:
        """Make a call; False if the upload no longer exists."""
        from botocore.exceptions import ClientError

        try:
            call()
        except ClientError as error:
            if error_code(error) in ("NoSuchUpload", "404"):
                return False
            raise
        return True

    def is_taken(self, call: Any) -> bool:
        """Make a call; True if the name is taken."""
        from botocore.exceptions import ClientError

        try:
            call()
        except ClientError as error:
            if error_code(error) in ("PreconditionFailed", "ConditionalRequestConflict", "412"):
                return True
            raise
        return False


def _known(path: Path, size: int) -> str:
    try:
        note = from_json(UploadNote, path.read_text())
    except (OSError, ValueError):
        return ""
    return note.upload_id if note.byte_count == size else ""


def _sent_parts(client: Any, key: dict[str, str], upload_id: str, lengths: dict[int, int]) -> dict[int, str]:
    """Return the versions of the parts that the store has.

    Args:
        client: Client of the store, which may list parts that no file has, without end.
        key: Bucket and key of the object.
        upload_id: Id of the upload.
        lengths: Length of each part of the file, by number [bytes].
    """
    found: dict[int, str] = {}
    pages = client.get_paginator("list_parts").paginate(**key, UploadId=upload_id)
    for page in islice(pages, _MOST_PAGES):
        for part in page.get("Parts", ()):
            number, version = part["PartNumber"], part["ETag"]
            if part["Size"] == lengths.get(number) and len(version) <= _LONGEST_ETAG:
                found[number] = version
    return found
