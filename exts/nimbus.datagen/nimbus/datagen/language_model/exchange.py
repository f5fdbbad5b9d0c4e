"""HTTP exchange with limits on size and time. The API key is read only from the environment."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import time
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.timed_connection import TimedConnection

KEY = "NIMBUS_MODEL_KEY"
"""Environment variable with the API key. ``OPENAI_API_KEY`` is not used: it must not be sent to arbitrary servers."""
REPLY_BYTES = 4 << 20
"""Largest accepted reply [bytes]."""
_PART = 1 << 16
_LEAST_SECRET = 8
"""Smallest length of a secret key [characters]; shorter keys are placeholders for local servers, such as ``none``."""
_EXAMPLE = "write an address such as http://127.0.0.1:8000/v1"


class NoReply(Exception):
    """Raised for a missing or incomplete reply, with the reason as text; another try may succeed."""


@dataclass(frozen=True)
class HttpReply:
    """Complete HTTP reply, of any status."""

    status: int
    headers: dict[str, str]
    """Headers by lower-case name."""
    text: str


@dataclass(frozen=True)
class Address:
    """Address of a server, with the key for it."""

    url: str
    """Base URL: scheme, host, port, and the path before ``/chat/completions``."""
    key: str = field(default="", repr=False)
    """API key; empty for none. It appears in no message."""

    @classmethod
    def from_environment(cls, url: str, *, where: str = "--model") -> Address:
        """Check a URL, and read the key from the environment.

        Args:
            url: URL with or without ``/chat/completions`` at its end.
            where: Location for errors.

        Raises:
            InputError: The text is not the URL of a server or contains a user, query or fragment, or the key would be
                sent unencrypted to another machine.
        """
        try:
            parts = urlsplit(url)
            is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise InputError(f"'{url[:80]}' is not the address of a server", where=where, instead=_EXAMPLE) from None
        if not is_whole or not url.isascii() or not url.isprintable() or " " in url:
            raise InputError(f"'{url[:80]}' is not the address of a server", where=where, instead=_EXAMPLE)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            what = "the address contains a user, a query or a fragment"
            raise InputError(what, where=where, instead=f"give the key as {KEY} in the environment")
        key = os.environ.get(KEY, "").strip()
        if key and (not key.isascii() or not key.isprintable()):
            raise InputError("the key is not plain ASCII text", where=KEY, instead="set it again")
        if key and parts.scheme == "http" and not _is_loopback(parts):
            what = f"the key would be sent unencrypted to '{parts.hostname}'"
            raise InputError(what, where=where, instead=f"write https://…, or unset {KEY}")
        return cls(url.removesuffix("/").removesuffix("/chat/completions"), key)

    def hide_key(self, text: str) -> str:
        """Return a text in which the key is replaced by an ellipsis; some servers repeat the key in errors."""
        return text.replace(self.key, "…") if len(self.key) >= _LEAST_SECRET else text


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def exchange(
    address: Address, path: str, payload: object = None, *, seconds: float, limit: int = REPLY_BYTES
) -> HttpReply:
    """Send one request and read the complete reply, without following redirects or using proxies.

    Args:
        address: Address of the server.
        path: Path below the address, such as ``/chat/completions``.
        payload: Content that is sent as JSON by POST; None for a GET request.
        seconds: Time limit of the whole exchange [s].
        limit: Largest accepted reply [bytes].

    Raises:
        NoReply: The server cannot be reached, or its reply is late, cut off, too long or not UTF-8.
        InputError: The key would go to another user of this machine.
    """
    parts = urlsplit(address.url)
    https = parts.scheme == "https"
    port = parts.port or (http.client.HTTPS_PORT if https else http.client.HTTP_PORT)
    connection = TimedConnection(
        parts.hostname or "", port, is_encrypted=https, quiet=seconds, has_secret=bool(address.key)
    )
    connection.limit(time.monotonic() + seconds)
    headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "nimbus"}
    headers |= {"Authorization": f"Bearer {address.key}"} if address.key else {}
    body = None if payload is None else json.dumps(payload).encode()
    try:
        connection.request("GET" if body is None else "POST", parts.path + path, body, headers)
        response = connection.getresponse()
        content = bytearray()
        while part := response.read1(_PART):
            content += part
            if len(content) > limit:
                raise NoReply(f"the reply is longer than {limit} bytes")
        if response.length:
            raise NoReply("the reply was cut off")
        names = {name.lower(): value for name, value in response.getheaders()}
        return HttpReply(response.status, names, bytes(content).decode())
    except UnicodeDecodeError:
        raise NoReply("the reply is not UTF-8 text") from None
    except TimeoutError:
        raise NoReply(f"no whole reply in {seconds:g} s") from None
    except (http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NoReply(f"no reply: {reason}") from None
    finally:
        connection.close()
