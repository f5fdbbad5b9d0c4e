"""Client of S3 for multipart uploads with known ids and for signed conditions, which obstore lacks."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.objects import denied_access, missing_bucket
from nimbus.datagen.store.remote.s3_session import is_public, s3_endpoint, s3_session
from nimbus.datagen.store.remote.web_requests import WebAnswer, exchange_once

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
    from botocore import UNSIGNED
    from botocore.config import Config

    session, credentials = s3_session()
    settings = Config(
        retries={"max_attempts": 3},
        request_checksum_calculation="when_required",
        signature_version=UNSIGNED if credentials is None and is_public() else "s3v4",
        s3={"addressing_style": "path"},  # the name of a bucket may have dots, for which there is no certificate
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
        InputError: The certificate is not valid, or the store redirects.
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
            refuse_redirect(answer)
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


def refuse_redirect(answer: WebAnswer) -> None:
    """Refuse a redirect, which a hostile store could lead to a server that only this machine reaches.

    Raises:
        InputError: The answer is one.
    """
    if answer.status // 100 == HTTPStatus.MULTIPLE_CHOICES // 100:
        what = f"the store redirects ({answer.status}), which could lead to another server"
        instead = "set AWS_REGION to the region of the bucket, and AWS_ENDPOINT_URL to the store itself"
        raise InputError(what, where=answer.where, instead=instead)


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


@contextmanager
def s3_calls(where: str, address: StoreAddress) -> Iterator[None]:
    """Convert errors of calls of the client to one line each.

    Args:
        where: Location for errors.
        address: Address in the bucket.

    Raises:
        InputError: Access is denied, or there is no bucket.
        StoreAwayError: The store does not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except LongAnswerError as error:
        raise StoreAwayError(f"the store does not answer: {error}", where=where, instead="try again") from None
    except ClientError as error:
        if error_code(error) in ("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch"):
            raise denied_access(where) from None
        if error_code(error) == "NoSuchBucket":
            raise missing_bucket(address) from None
        what = f"the store does not answer: {error_code(error)[:80]}"
        raise StoreAwayError(what, where=where, instead="try again") from None
    except (KeyError, ValueError, OverflowError) as error:  # a field that is missing, or is no number or date
        what = f"the store's answer has another form: {type(error).__name__} {str(error)[:80]}"
        raise StoreAwayError(what, where=where, instead="check the address of the store") from None
    except BotoCoreError as error:
        what = f"the store does not answer: {type(error).__name__}"
        raise StoreAwayError(what, where=where, instead="try again") from None


def error_code(error: Any) -> str:
    """Return the code of the store's error."""
    return str(error.response.get("Error", {}).get("Code", ""))
