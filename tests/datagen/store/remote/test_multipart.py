from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import StoreAwayError
from nimbus.datagen.store.remote import multipart
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.multipart import create_large
from nimbus.datagen.store.remote.object_store import ObjectStore


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(3 * multipart.PART + 5))
    return path


def test_large_object_is_created_once(address: str, large: Path, tmp_path: Path):
    store = ObjectStore(parse_address(address))
    assert create_large(store, "a/large", large, notes=tmp_path / "notes")
    assert store.read("a/large") == large.read_bytes() and not list((tmp_path / "notes").iterdir())
    assert not create_large(store, "a/large", large, notes=tmp_path / "notes")


def test_parts_that_were_sent_are_kept(address: str, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from botocore.exceptions import EndpointConnectionError

    store, sent = ObjectStore(parse_address(address)), list[int]()
    make = multipart.s3_client

    def failing(limit: int) -> Any:
        client = make()
        upload = client.upload_part

        def counting(**options: Any) -> Any:
            if len(sent) >= limit:
                raise EndpointConnectionError(endpoint_url="none")
            sent.append(options["PartNumber"])
            return upload(**options)

        client.upload_part = counting
        return client

    monkeypatch.setattr(multipart, "s3_client", lambda: failing(2))
    with pytest.raises(StoreAwayError):
        create_large(store, "large", large, notes=tmp_path / "notes")
    assert store.stat("large") is None
    monkeypatch.setattr(multipart, "s3_client", lambda: failing(99))
    assert create_large(store, "large", large, notes=tmp_path / "notes")
    assert sent == [1, 2, 3, 4] and store.read("large") == large.read_bytes()
