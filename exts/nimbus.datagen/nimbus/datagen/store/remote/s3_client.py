"""Client of S3 for multipart uploads with known ids and for signed conditions, which obstore lacks."""

from __future__ import annotations

import os
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote.address import StoreAddress

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables that name a custom store, in order of preference."""


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
    return session.client("s3", endpoint_url=endpoint, region_name=session.region_name or "us-east-1", config=settings)


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
