"""Tokens of this user's servers: kept for the clients of this user while the server lives."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.server_tokens import client_token, keep_token, known_token, new_token, token_file

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


def test_a_file_has_the_token_of_a_running_server(tmp_path: Path):
    path = tmp_path / "token"
    path.write_text(new_token())  # left of a server that was killed
    with token_file(path, TOKEN):
        assert path.read_text() == TOKEN
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not path.exists()
    with token_file(None, TOKEN):
        pass


def test_a_token_is_private_from_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another user that opens the file before its mode changes reads what is written later."""
    modes, real = list[int](), os.open

    def opened(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        if flags & os.O_CREAT and "token" in str(path):
            modes.append(mode)
        return real(path, flags, mode, **options)

    monkeypatch.setattr(os, "open", opened)
    with token_file(tmp_path / "token", TOKEN):
        pass
    assert modes == [0o600]


@pytest.mark.parametrize("content", ["", "a file of the user\n"])
def test_a_file_of_other_content_is_kept(tmp_path: Path, content: str):
    path = tmp_path / "notes"
    path.write_text(content)
    with pytest.raises(InputError, match="this file exists, and holds no token"), token_file(path, TOKEN):
        pass
    assert path.read_text() == content


def test_a_file_in_a_missing_folder_is_refused(tmp_path: Path):
    with (
        pytest.raises(InputError, match="cannot be written: No such file or directory"),
        token_file(tmp_path / "no" / "token", TOKEN),
    ):
        pass


def test_short_token_of_a_client_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_POLICY_TOKEN", "short")
    with pytest.raises(InputError, match="NIMBUS_POLICY_TOKEN: is not a token"):
        client_token()
