"""Tokens of this user's servers: kept for the clients of this user while the server lives."""

from __future__ import annotations

import json
import os
import stat

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.server_tokens import client_token, keep_token, known_token, new_token

PORT = 65_531
TOKEN = "a-token-of-a-server"


def test_token_of_a_live_server_is_known():
    path = keep_token(PORT, TOKEN)
    assert known_token(PORT) == TOKEN
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    path.unlink()
    assert known_token(PORT) == ""


@pytest.mark.parametrize(
    ("field", "value"), [("pid", 2**22 + 1), ("began", "1"), ("machine", "another"), ("pid", "text")]
)
def test_token_of_a_dead_server_is_unknown(field: str, value: object):
    """Anyone can take the port of a server that has ended."""
    path = keep_token(PORT, TOKEN)
    kept = json.loads(path.read_text())
    kept["server"][field] = value
    path.write_text(json.dumps(kept))
    assert known_token(PORT) == ""
    path.unlink()


def test_variable_of_servers_is_sent_nowhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_SERVER_TOKEN", TOKEN)
    mine = new_token("status", PORT)
    assert mine == new_token("status", PORT) and len(mine) == 64 and TOKEN not in mine  # the same at every start
    assert len({mine, new_token("status", PORT - 1), new_token("policy", PORT)}) == 3  # and opens no other server
    assert new_token("cache", 0) != new_token("cache", 0)  # any free port
    assert known_token(PORT) == client_token() == ""


def test_short_token_of_a_client_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_POLICY_TOKEN", "short")
    with pytest.raises(InputError, match="NIMBUS_POLICY_TOKEN: is not a token"):
        client_token()
