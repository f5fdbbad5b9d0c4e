"""Admission to a server: only the printed address works."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.local_server import fresh_name
from nimbus.datagen.ui.gate import Gate, Refused, address_of

GATE = Gate("127.0.0.1", token="secret")


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "LOCALHOST", "localhost:9000"])
def test_printed_address_is_admitted(host: str):
    assert GATE.admit("/secret", [host], []) == "/"
    assert GATE.admit("/secret/?fixedDpr=0.4", [host], [f"http://{host}"]) == "/?fixedDpr=0.4"
    assert GATE.admit("/secret/a/b", [host], []) == "/a/b"


@pytest.mark.parametrize("path", ["/", "/Secret", "/secre", "/?secret", "/a/secret", "", "/secret%20", "/ü\udc80"])
def test_another_path_is_refused(path: str):
    with pytest.raises(Refused, match="secret part"):
        GATE.admit(path, ["localhost:8080"], [])


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example:8080"],
        ["192.168.1.2:8080"],
        ["localhost.evil.example"],
        ["localhost", "evil.example"],
        ["[:"],
    ],
)
def test_foreign_host_is_refused(hosts: list[str]):
    """A name server may resolve any name to 127.0.0.1; a page of that name is still foreign."""
    with pytest.raises(Refused, match="host"):
        GATE.admit("/secret/", hosts, [])


@pytest.mark.parametrize(
    "origins",
    [
        ["http://evil.example"],
        ["null"],
        [""],
        ["http://localhost:9999"],
        ["https://localhost:8080"],
        ["http://localhost"],
    ],
)
def test_foreign_origin_is_refused(origins: list[str]):
    with pytest.raises(Refused, match="origins"):
        GATE.admit("/secret/", ["localhost:8080"], origins)


def test_open_server_takes_literal_addresses():
    gate = Gate("0.0.0.0", token="secret")
    assert gate.admit("/secret", ["192.168.1.2:8080"], []) == "/"
    with pytest.raises(Refused, match="host"):
        gate.admit("/secret", ["evil.example:8080"], [])


def test_tokens_differ_and_addresses_can_be_opened():
    assert Gate("::1").token != Gate("::1").token
    assert address_of("::1", 80, Gate("::1", token="t")) == "http://[::1]:80/t"
    assert address_of("0.0.0.0", 80, Gate("0.0.0.0", token="t")) == "http://127.0.0.1:80/t"


def test_the_name_of_this_start_is_admitted():
    """A page of another user, at the same port before, may have left a service worker at 127.0.0.1."""
    name = fresh_name("127.0.0.1")
    assert name != fresh_name("127.0.0.1") and name.endswith(".localhost") and fresh_name("0.0.0.0") == ""
    gate = Gate("127.0.0.1", token="secret", name=name)
    assert address_of("127.0.0.1", 80, gate) == f"http://{name}:80/secret"
    assert gate.admit("/secret", [f"{name}:80"], [f"http://{name}:80"]) == "/"
    for other in (fresh_name("127.0.0.1"), f"a.{name}"):
        with pytest.raises(Refused, match="host"):
            gate.admit("/secret", [f"{other}:80"], [])
    assert address_of("0.0.0.0", 80, Gate("0.0.0.0", token="t", name=fresh_name("0.0.0.0"))) == "http://127.0.0.1:80/t"


@given(st.text(max_size=40), st.lists(st.text(max_size=20), max_size=2), st.lists(st.text(max_size=20), max_size=2))
def test_any_other_request_is_refused(path: str, hosts: list[str], origins: list[str]):
    with pytest.raises(Refused):
        GATE.admit(path, hosts, origins)
