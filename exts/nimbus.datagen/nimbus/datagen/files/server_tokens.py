"""Tokens of this user's servers: any user of the machine can connect to a port, but only this user can read the token.

A server has a new token, or one that is computed from ``NIMBUS_SERVER_TOKEN`` and its port. When the server has ended,
a client that stores this token may send it to another user; the token opens no other server. ``NIMBUS_SERVER_TOKEN``
itself is never sent. A server whose clients are programs stores its token in a private file of the cache, named after
its port. Clients of the same user read it there while the server runs.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.folder_lock import Holder

VARIABLE = "NIMBUS_SERVER_TOKEN"
"""Environment variable with the secret of all servers that this user starts, for clients that store a token."""
CLIENT_VARIABLE = "NIMBUS_POLICY_TOKEN"
"""Environment variable with the token of the policy's server that a client connects to, for example by a tunnel."""
_BYTES = 24
"""Number of bytes of a new token: 192 bits, which cannot be guessed over a network."""
_FORM = re.compile(r"[A-Za-z0-9_-]{16,256}")


@dataclass(frozen=True, kw_only=True)
class KeptToken:
    """Content of the private file of a server."""

    token: str
    server: Holder
    """Process of the server; when it has ended, anyone can take its port."""


def new_token(kind: str, port: int) -> str:
    """Return the token for a server that starts now.

    Args:
        kind: Kind of the server.
        port: Its port; 0 if it is not known yet, which gives a new token.

    Raises:
        InputError: The environment variable has a token that is short, or cannot be a part of an address.
    """
    if (secret := given_token(VARIABLE)) and port:
        return hmac.new(secret.encode(), f"{kind}:{port}".encode(), hashlib.sha256).hexdigest()
    return secrets.token_urlsafe(_BYTES)


def known_token(port: int) -> str:
    """Return the token of this user's server that listens on a port of 127.0.0.1; empty if there is none."""
    with suppress(InputError, ValueError):
        kept = from_json(KeptToken, read_text(_file(port), limit=1024, follow=False))
        return kept.token if kept.server.is_alive and _FORM.fullmatch(kept.token) else ""
    return ""


def client_token() -> str:
    """Return the token that the user gave for the server of a policy; empty if there is none.

    Raises:
        InputError: The environment variable has no token.
    """
    return given_token(CLIENT_VARIABLE)


def given_token(variable: str) -> str:
    """Return the token in an environment variable; empty if it is not set.

    Raises:
        InputError: The variable has a token that is short, or cannot be a part of an address.
    """
    given = os.environ.get(variable, "")
    if given and not _FORM.fullmatch(given):
        what, instead = "is not a token", "set at least 16 letters, digits, '-' or '_', or unset the variable"
        raise InputError(what, where=variable, instead=instead)
    return given


def keep_token(port: int, token: str) -> Path:
    """Keep the token of a server in a private file, which the server removes at its end, and return the file's path."""
    path = _file(port)
    with replacing(path, durable=False, shared=True) as temporary:
        temporary.chmod(0o600)
        temporary.write_text(to_json(KeptToken(token=token, server=Holder.this_process())))
    return path


def _file(port: int) -> Path:
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:12]  # machines may share the cache
    return cache_folder("servers") / f"{machine}-{port}"
