"""Client of S3 for multipart uploads with known ids and for signed conditions, which obstore lacks."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.s3_session import s3_endpoint, s3_session
from nimbus.datagen.store.remote.web_requests import exchange_once

_LONGEST = 2 << 20
"""Longest accepted answer: a thousand parts of an upload take 0.3 MB [bytes]."""
_SECONDS = 120.0
"""Time for an answer, and without a byte of it: S3 may put an object of many parts together for minutes, but sends
spaces meanwhile [s]."""


def object_key(address: StoreAddress, name: str) -> dict[str, str]:
    """Return bucket and key of an object, as the client's calls expect them."""
    return {"Bucket": address.bucket, "Key": f"{address.prefix}/{name}".lstrip("/")}


def s3_client() -> Any:
    """Make a client with the credentials and the endpoint of this process.

    Its own HTTP would read answers of any length and for any time, so its requests are sent by that of Nimbus.

    Raises:
        InputError: A variable holds a relative path, or the credentials or the endpoint cannot be read.
    """
    from botocore.config import Config

    session, _ = s3_session()
    settings = Config(
        retries={"max_attempts": 3},
        request_checksum_calculation="when_required",
        signature_version="s3v4",
        ignore_configured_endpoint_urls=True,
    )
    region = session.region_name or "us-east-1"
    client = session.client("s3", endpoint_url=s3_endpoint(session), region_name=region, config=settings)
    client.meta.events.register("before-send.s3", _send)
    return client


class LongAnswerError(Exception):
    """Raised for an answer that is longer than the answers of this client's calls."""


def _send(request: Any, **_: Any) -> Any:
    """Send a signed request and read the answer; the library calls this instead of its own HTTP.

    Raises:
        ConnectionClosedError: The store does not answer in time; the library tries again.
        LongAnswerError: The answer is too long.
        InputError: The certificate is not valid.
    """
    from botocore.awsrequest import AWSResponse
    from botocore.exceptions import ConnectionClosedError

    # The store need not allow the content before it is sent, and its condition is not part of the signature.
    headers = {name: value for name, value in request.headers.items() if name.lower() != "expect"}
    body, place = request.body, request.url.partition("?")[0]
    content = body if hasattr(body, "read") else io.BytesIO(body) if body else None
    try:
        with exchange_once(
            request.method, request.url, where=place, headers=headers, content=content, seconds=_SECONDS
        ) as answer:
            found = bytearray()
            while block := answer.read(_LONGEST + 1 - len(found)):
                found += block
            if len(found) > _LONGEST:
                raise LongAnswerError(f"an answer of more than {_LONGEST >> 20} MiB")
            if answer.response.length:
                raise StoreAwayError(f"returned {len(found)} bytes, and then nothing", where=place)
            return AWSResponse(request.url, answer.status, answer.headers, _Content(found))
    except StoreAwayError as error:
        raise ConnectionClosedError(endpoint_url=place, error=error, request=request) from None


class _Content(io.BytesIO):
    """Content of an answer in the form that the library reads."""

    def stream(self) -> Iterator[bytes]:
        """Yield the content."""
        yield self.getvalue()


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
