"""An S3 server in this process, for tests of datasets in a store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "s3cret-of-the-test", "AWS_REGION": "us-east-1"}


@cache
def endpoint() -> str:
    """Start a server on loopback, once a session; it ends with the process."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


@contextmanager
def bucket(name: str) -> Iterator[str]:
    """Make a bucket and set the environment for it; return its address."""
    import boto3

    from nimbus.datagen.store.remote.working_copy import open_store

    before = dict(os.environ)
    os.environ.update(KEYS | {"AWS_ENDPOINT_URL": endpoint(), "AWS_EC2_METADATA_DISABLED": "true"})
    boto3.client("s3", endpoint_url=endpoint(), region_name="us-east-1").create_bucket(Bucket=name)
    open_store.cache_clear()
    try:
        yield f"s3://{name}"
    finally:
        os.environ.clear()
        os.environ.update(before)
        open_store.cache_clear()


def upload(folder: Path, address: str) -> None:
    """Put a finished dataset's folder into a store."""
    from nimbus.datagen.store.remote.address import parse_address
    from nimbus.datagen.store.remote.object_store import ObjectStore

    store = ObjectStore(parse_address(address))
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            assert store.create(path.relative_to(folder).as_posix(), path)
