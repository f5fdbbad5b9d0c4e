"""Tokens of this user's servers: any user of the machine can connect to a port, but only this user can read the token.

A server has a new token at every start. When it has ended, a client that stores its token may send it to the next
process that listens on the port, of any user; the token opens no other server, and no later one. A server whose clients
are programs stores its token in a private file of the cache, named after its port. Clients of the same user read it
there while the server runs. Programs of others read it from a file that the user names.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.folder_lock import Holder

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


def new_token() -> str:
    """Return the token for a server that starts now."""
    return secrets.token_urlsafe(_BYTES)


@contextmanager
def token_file(path: Path | None, token: str) -> Iterator[None]:
    """Store the token of a server in a private file while the server runs, for programs that read it at each request.

    Args:
        path: The file, which may be left of a server that was killed; None for none.
        token: The token.

    Raises:
        InputError: The file has another content, or cannot be written.
    """
    if path is None:
        yield
        return
    if path.exists() and not _FORM.fullmatch(read_text(path, limit=1024)):
        instead = "name a new file, or remove this one"
        raise InputError("this file exists, and holds no token", where=str(path), instead=instead)
    try:
        with replacing(path, durable=False, shared=True, is_private=True) as temporary:
            temporary.write_text(token)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise InputError(what, where=str(path), instead="name a file in a folder that you may write") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


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
    with replacing(path, durable=False, shared=True, is_private=True) as temporary:
        temporary.write_text(to_json(KeptToken(token=token, server=Holder.this_process())))
    return path


def _file(port: int) -> Path:
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:12]  # machines may share the cache
    return cache_folder("servers") / f"{machine}-{port}"
