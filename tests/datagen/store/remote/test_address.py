from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote.address import local_folder, parse_address
from nimbus.datagen.store.remote.site import SITE_FILE, resolve_address


def test_address_has_bucket_and_prefix():
    found = parse_address("s3://demos/kitchen/a/")
    assert (found.scheme, found.bucket, found.prefix, str(found)) == (
        "s3",
        "demos",
        "kitchen/a",
        "s3://demos/kitchen/a",
    )
    assert found.key.startswith("a-") and found.key != parse_address("s3://demos/other/a").key


def test_file_address_is_a_folder():
    assert local_folder(parse_address("file:///data/x")) == Path("/data/x")
    assert local_folder(parse_address("s3://b/x")) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ftp://x/y", "unknown scheme 'ftp'"),
        ("s3:///y", "no bucket"),
        ("s3://b/a/../c", "an empty part"),
        ("s3://b/a\\c", "backslash"),
        ("s3://key:secret@b/x", "must not contain a user, password"),
        ("https://host/x?sig=secret", "must not contain a user, password"),
        ("file://elsewhere/x", "must not contain a host"),
    ],
)
def test_bad_address_is_refused_without_secrets(text: str, expected: str):
    with pytest.raises(InputError, match=expected) as error:
        parse_address(text)
    assert "secret" not in str(error.value)


def test_site_resolves_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = tmp_path / "stores.yaml"
    names.write_text("stores:\n  demos: s3://bucket/all\n  loop: nimbus://demos\n")
    monkeypatch.setenv(SITE_FILE, str(names))
    assert str(resolve_address("nimbus://demos/kitchen")) == "s3://bucket/all/kitchen"
    with pytest.raises(InputError, match="did you mean 'demos'"):
        resolve_address("nimbus://demo")
    with pytest.raises(InputError, match="is not an address"):
        resolve_address("nimbus://loop")


def test_site_without_names_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SITE_FILE, str(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match="no file with this site"):
        resolve_address("nimbus://demos")
