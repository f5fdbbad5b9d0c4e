"""Libraries send no password or token to a server of another user of this machine."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.trusted_servers import check_proxies, check_receiver
from nimbus.datagen.robots.wheels import download_wheel
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.s3_session import s3_session
from tests.support.refusals import refusal

OTHER = 12_345
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def foreign() -> Iterator[socket.socket]:
    """Return a server of another user."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("only the superuser can start a server of another user")
    with socket.create_server(("127.0.0.1", 0)) as server:
        os.fchown(server.fileno(), OTHER, OTHER)
        yield server


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("proxy", ["http://user:word@localhost:3128", "user:word@127.0.0.1:3128"])
def test_a_local_proxy_gets_no_password_from_a_library(variable: str, proxy: str, monkeypatch: pytest.MonkeyPatch):
    """Another user could listen on its port when it has ended, at any time of a run of hours."""
    monkeypatch.setenv(variable, proxy)
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    for call in (check_proxies, lambda: ObjectStore(parse_address("s3://bucket/data"))):
        assert f"{variable.lower()}: a server of this machine" in refusal(call)
    assert "a server of this machine" in refusal(lambda: download_wheel("gym-aloha==0.1.5", where="mine.yaml"))
    monkeypatch.setenv(variable, "http://127.0.0.1:3128")
    check_proxies()
    monkeypatch.setenv(variable, "http://user:word@192.0.2.1:3128")  # an address for documentation
    check_proxies()


def test_an_encrypted_proxy_gets_no_password_in_plain_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", "https://user:word@proxy.example.org")
    assert "https_proxy: a proxy of the kind 'https' is not supported" in refusal(check_proxies)


@pytest.mark.parametrize(
    "setting", ["PIP_PROXY=user:word@127.0.0.1:1", "PIP_INDEX_URL=http://user:word@localhost:1/simple"]
)
def test_pip_sends_no_password_to_a_local_server(setting: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(*setting.split("=", 1))
    said = refusal(lambda: download_wheel("gym-aloha==0.1.5", where="mine.yaml"))
    assert "settings of pip: a server of this machine" in said


def test_pip_reads_its_settings_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "pip.conf").write_text("[global]\nproxy = http://user:word@127.0.0.1:1\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    said = refusal(lambda: download_wheel("gym-aloha==0.1.5", where="mine.yaml"))
    assert "settings of pip: a server of this machine" in said


def role(port: int, folder: Path) -> dict[str, str]:
    """Return the variables of a role by an identity token, whose service has the endpoint of all services."""
    (folder / "token").write_text("identity-token")
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / "token"),
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/me",
    }


def container(port: int, _folder: Path) -> dict[str, str]:
    """Return the variables of a server for credentials."""
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://localhost:{port}/role",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "secret",
    }


@pytest.mark.parametrize("variables", [role, container])
def test_servers_of_others_get_no_token_for_credentials(
    variables: Callable[[int, Path], dict[str, str]],
    tmp_path: Path,
    foreign: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name, value in variables(foreign.getsockname()[1], tmp_path).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="another user, '12345'"):
        s3_session()[1].get_frozen_credentials()
    foreign.settimeout(60)
    client, _ = foreign.accept()
    with client:
        assert client.recv(100) == b""


def test_the_identity_of_azure_needs_a_trusted_server(foreign: socket.socket, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{foreign.getsockname()[1]}/token")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    with pytest.raises(InputError, match="another user, '12345'"):
        ObjectStore(parse_address("az://container/data"))


@pytest.mark.parametrize("url", ["", "https://127.0.0.1:1", "http://127.0.0.1:1", "http://169.254.169.254/token"])
def test_other_servers_are_left_to_the_library(url: str):
    check_receiver(url)
