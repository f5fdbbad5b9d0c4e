from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import StoreAwayError
from nimbus.datagen.store.remote import multipart
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.multipart import create_large
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.s3_client import s3_client
from tests.support.odd_web_server import Answer, Send, plain, server


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


def lists_parts(*answers: str) -> Answer:
    """Return an S3 server that lists the parts of an upload in pages without end; ``answers`` repeat."""
    pages, contents = itertools.count(1), itertools.cycle(answers)

    def answer(line: str, _: dict[str, str], send: Send) -> None:
        if line.startswith("GET"):
            more = f"<IsTruncated>true</IsTruncated><NextPartNumberMarker>{next(pages)}</NextPartNumberMarker>"
            plain(send, 200, f"<ListPartsResult>{more}{next(contents)}</ListPartsResult>".encode())
        elif line.startswith("HEAD"):
            plain(send, 404)
        else:
            plain(send, 200, b"<Result><UploadId>u</UploadId></Result>", "ETag: sent")

    return answer


def part(number: object, size: int, etag: str = "mine") -> str:
    return f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag><Size>{size}</Size></Part>"


def test_lists_of_parts_without_end(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The parts that the file has are found, and no others are kept."""
    monkeypatch.setattr(multipart, "_MOST_PAGES", 4)
    path = tmp_path / "file"
    path.write_bytes(b"x")
    odd = [part(1, 1), part(2, 1), part(1, 2, "other"), part(1, 1, "z" * 2000)]
    with server(lists_parts(*odd)) as (url, requests):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        sent = multipart._sent_parts(s3_client(), {"Bucket": "b", "Key": "k"}, "u", {1: 1})
        assert sent == {1: "mine"} and len(requests) == 4
        assert create_large(ObjectStore(parse_address(address)), "large", path, notes=tmp_path / "notes")
        methods = [line.split(" ")[0] for line in requests]
        assert methods.count("GET") == 8 and "PUT" not in methods


def test_odd_lists_of_parts_are_one_line(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    for odd in (part("9" * 5000, 1), part("one", 1), "<Part></Part>"):
        with server(lists_parts(odd)) as (url, _):
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
            with pytest.raises(StoreAwayError, match="the store's answer has another form"):
                create_large(ObjectStore(parse_address(address)), "large", path, notes=tmp_path / "notes")
