"""Client of S3 for multipart uploads with known ids and for signed conditions, which obstore lacks."""

from __future__ import annotations

import os
import time
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote.address import StoreAddress

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables that name a custom store, in order of preference."""
_LONGEST, _SECONDS = 8 << 20, 120.0
"""Limits on the answers of this client's calls: a thousand parts of an upload take 0.3 MB [bytes, s]."""
_BLOCK = 1 << 16


def object_key(address: StoreAddress, name: str) -> dict[str, str]:
    """Return bucket and key of an object, as the client's calls expect them."""
    return {"Bucket": address.bucket, "Key": f"{address.prefix}/{name}".lstrip("/")}


def s3_client() -> Any:
    """Make a client with the credentials and the endpoint of this process."""
    import boto3
    from botocore.config import Config

    session = boto3.Session()
    endpoint = next((found for name in ENDPOINTS if (found := os.environ.get(name))), None)
    settings = Config(
        connect_timeout=5,
        read_timeout=60,
        retries={"max_attempts": 3},
        request_checksum_calculation="when_required",
        signature_version="s3v4",
    )
    region = session.region_name or "us-east-1"
    client = session.client("s3", endpoint_url=endpoint, region_name=region, config=settings)
    client.meta.events.register("before-send.s3", _Bounded(client))
    return client


class LongAnswerError(Exception):
    """Raised for an answer that is longer, or takes longer, than the answers of this client's calls."""


class _Bounded:
    """Sender of a client's requests that bounds the size and the time of answers; the client would read them whole."""

    def __init__(self, client: Any) -> None:
        self._session = client._endpoint.http_session

    def __call__(self, request: Any, **_: Any) -> Any:
        from botocore.exceptions import ConnectionClosedError
        from urllib3.exceptions import HTTPError

        request.stream_output = True
        answer = self._session.send(request)
        try:
            answer._content = _read(answer.raw)
        except HTTPError as error:
            raise ConnectionClosedError(endpoint_url=request.url, error=error, request=request) from None
        except LongAnswerError:
            answer.raw.close()
            raise
        return answer


def _read(answer: Any) -> bytes:
    """Read an answer to its end.

    Raises:
        LongAnswerError: It does not end.
    """
    found, end = bytearray(), time.monotonic() + _SECONDS
    read = getattr(answer, "read1", answer.read)  # which returns what has arrived, from version 2 of the library on
    while block := read(_BLOCK):
        found += block
        if len(found) > _LONGEST:
            raise LongAnswerError(f"an answer of more than {_LONGEST >> 20} MiB")
        if time.monotonic() > end:
            raise LongAnswerError(f"no whole answer in {_SECONDS:.0f} s")
    return bytes(found)


def sign_creation(client: Any, address: StoreAddress, name: str, *, seconds: float) -> str:
    """Make a URL that creates an object and cannot replace one.

    The header ``If-None-Match: *`` is part of the signature: the store refuses a request without it.

    Args:
        client: Client of :func:`s3_client`.
        address: Address of the objects.
        name: Path below the address.
        seconds: Validity [s].

    Raises:
        InputError: There are no credentials.
    """
    from botocore.exceptions import BotoCoreError

    target = object_key(address, name) | {"IfNoneMatch": "*"}
    try:
        return client.generate_presigned_url("put_object", Params=target, ExpiresIn=round(seconds))
    except BotoCoreError as error:
        what = f"S3 cannot sign: {str(error)[:160]}"
        raise InputError(what, where=str(address), instead="set AWS_PROFILE, or give the machine a role") from None
