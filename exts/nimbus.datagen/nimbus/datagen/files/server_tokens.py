"""Tokens of this user's servers: any user of the machine can connect to a port, but only this user can read the token.

A server takes ``NIMBUS_SERVER_TOKEN`` or a new token. A server whose clients are programs keeps it in a private file of
the cache, by its port, where the clients of the same user find it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.cache import cache_folder

VARIABLE = "NIMBUS_SERVER_TOKEN"
"""Environment variable with the token of all servers that this user starts, for clients that keep it."""
_BYTES = 24
"""Number of bytes of a new token: 192 bits, which cannot be guessed over a network."""
_FORM = re.compile(r"[A-Za-z0-9_-]{16,256}")


def new_token() -> str:
    """Return the token for a server that starts now.

    Raises:
        InputError: The environment variable has a token that is short, or cannot be a part of an address.
    """
    return _given() or secrets.token_urlsafe(_BYTES)


def known_token(port: int) -> str:
    """Return the token for this user's server on a port of this machine; empty if none is known."""
    if given := _given():
        return given
    with suppress(InputError):
        found = read_text(_file(port), limit=1024, follow=False)
        return found if _FORM.fullmatch(found) else ""
    return ""


def keep_token(port: int, token: str) -> Path:
    """Keep the token of a server in a private file, which the server removes at its end, and return the file's path."""
    path = _file(port)
    with replacing(path, durable=False, shared=True) as temporary:
        temporary.chmod(0o600)
        temporary.write_text(token)
    return path


def _file(port: int) -> Path:
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:12]  # machines may share the cache
    return cache_folder("servers") / f"{machine}-{port}"


def _given() -> str:
    given = os.environ.get(VARIABLE, "")
    if given and not _FORM.fullmatch(given):
        what, instead = "is not a token", "set 16 or more letters, digits, '-' or '_', or nothing"
        raise InputError(what, where=VARIABLE, instead=instead)
    return given
