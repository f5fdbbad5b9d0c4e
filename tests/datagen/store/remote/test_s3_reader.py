"""Objects of S3 are read without redirects, which a hostile store could lead anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.store.remote import web_store
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.objects import MissingBucketError, MissingObjectError
from nimbus.datagen.store.remote.s3_reader import S3Reader
from tests.support.odd_web_server import Answer, Send, plain, server

Call = Callable[[S3Reader], object]
READS: dict[str, Call] = {
    "read": lambda store: store.read("a"),
    "range": lambda store: store.read_range("a", 0, 1),
    "stat": lambda store: store.stat("a"),
    "names": lambda store: list(store.names()),
}


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give this process keys, and no other settings."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(web_store, "_PAUSES", ())


def store_at(url: str, monkeypatch: pytest.MonkeyPatch) -> S3Reader:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url.removesuffix("/data"))
    return S3Reader(parse_address("s3://bucket/some folder"))


def moved(to: str) -> Answer:
    def answer(_line: str, _headers: dict[str, str], send: Send) -> None:
        plain(send, 307, b"", f"Location: {to}/latest/meta-data/iam", 'ETag: "x"')

    return answer


@pytest.mark.parametrize("read", READS)
def test_no_redirect_is_followed(read: str, monkeypatch: pytest.MonkeyPatch):
    """The answer of a service that only this machine reaches would become an object, which a copy publishes."""

    def private(_line: str, _headers: dict[str, str], send: Send) -> None:
        plain(send, 200, b"a token", 'ETag: "x"')

    with server(private) as (inner, asked), server(moved(inner)) as (outer, requests):
        with pytest.raises(InputError, match="the store redirects"):
            READS[read](store_at(outer, monkeypatch))
        assert requests and not asked


def test_requests_are_signed_and_name_the_object(monkeypatch: pytest.MonkeyPatch):
    def answer(_line: str, _headers: dict[str, str], send: Send) -> None:
        plain(send, 200, b"content", 'ETag: "x"')

    with server(answer) as (url, requests):
        assert store_at(url, monkeypatch).read("a+b c/é.hdf5") == b"content"
        path, _, query = requests[0].split(" ")[1].partition("?")
        assert path == "/bucket/some%20folder/a%2Bb%20c/%C3%A9.hdf5"
        assert "X-Amz-Signature=" in query and "secret" not in query
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
        assert store_at(url, monkeypatch).read("a") == b"content"
        assert requests[1] == "GET /bucket/some%20folder/a HTTP/1.1"


@pytest.mark.parametrize(
    ("status", "content", "error", "said"),
    [
        (404, b"<Error><Code>NoSuchKey</Code></Error>", MissingObjectError, "no such object"),
        (404, b"<Error><Code>NoSuchBucket</Code></Error>", MissingBucketError, "there is no bucket 'bucket'"),
        (403, b"<Error><Code>AccessDenied</Code></Error>", InputError, "the store denies access"),
        (500, b"", StoreAwayError, "the store answers 500"),
    ],
)
def test_errors_are_one_line(
    status: int, content: bytes, error: type[InputError], said: str, monkeypatch: pytest.MonkeyPatch
):
    def answer(_line: str, _headers: dict[str, str], send: Send) -> None:
        plain(send, status, content)

    with server(answer) as (url, _), pytest.raises(error, match=said):
        store_at(url, monkeypatch).read("a")


def test_a_listing_has_names_below_the_address(address: str):
    from nimbus.datagen.store.remote.object_store import ObjectStore

    store = ObjectStore(parse_address(address))
    for name in ("a b+c", "folder/é", "folder2/x"):
        store.create(name, name.encode())
    assert sorted(store.names()) == [("a b+c", 5), ("folder/é", 9), ("folder2/x", 9)]
    assert list(store.names("folder")) == [("folder/é", 9)]
    assert store.read("folder/é").decode() == "folder/é"
