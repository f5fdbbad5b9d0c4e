"""The store that variables or the profile name is asked by all clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.s3_client import s3_client
from nimbus.datagen.store.remote.s3_session import s3_endpoint, s3_session
from tests.support.odd_web_server import Send, plain, server
from tests.support.refusals import refusal

VARIABLES = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AWS_PROFILE",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
)
PROFILE = "[default]\nregion = us-east-1\nendpoint_url = {url}\n"
SECTION = (
    "[default]\nservices = own\nendpoint_url = http://127.0.0.1:9\n"
    "[services own]\ns3 =\n  endpoint_url = {url}\nsts =\n  endpoint_url = http://127.0.0.1:9\n"
)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of profiles, for a user with keys and no other settings."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path / "config"


def missing(_line: str, _headers: dict[str, str], send: Send) -> None:
    plain(send, 404)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("text", [PROFILE, SECTION])
def test_both_clients_ask_the_store_of_the_profile(text: str, host: str, config: Path):
    """Amazon's bucket of the same name may belong to others."""
    with server(missing) as (url, requests):
        config.write_text(text.format(url=url.replace("127.0.0.1", host)))
        assert s3_client().meta.endpoint_url == url
        assert ObjectStore(parse_address("s3://demos/private")).stat("name") is None
        assert any("/demos/private/name" in line for line in requests)


def test_a_variable_comes_first(config: Path, monkeypatch: pytest.MonkeyPatch):
    config.write_text(PROFILE.format(url="http://127.0.0.1:9"))
    monkeypatch.setenv("AWS_ENDPOINT", "http://localhost:8")
    assert s3_client().meta.endpoint_url == "http://127.0.0.1:8"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:7")
    assert s3_client().meta.endpoint_url == "http://127.0.0.1:7"


@pytest.mark.parametrize("text", ["", "[default]\nregion = eu-west-1\n", PROFILE.format(url="http://127.0.0.1:9")])
def test_without_an_endpoint_it_is_that_of_amazon(text: str, config: Path, monkeypatch: pytest.MonkeyPatch):
    config.write_text(text)
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert s3_endpoint(s3_session()[0]) is None
    assert s3_client().meta.endpoint_url.endswith(".amazonaws.com")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PROFILE.format(url="127.0.0.1:9000"), "endpoint_url of the profile of AWS: the endpoint of S3 is no URL"),
        ("[default]\nservices = own\n", r"there is no section \[services own\]"),
    ],
)
def test_odd_profiles_are_one_line(text: str, said: str, config: Path):
    config.write_text(text)
    for call in (s3_client, lambda: ObjectStore(parse_address("s3://demos/private"))):
        assert said.replace("\\", "") in refusal(call)
