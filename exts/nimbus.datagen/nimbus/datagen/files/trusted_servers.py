"""Connections to trusted servers: no secret goes to another user of this machine, and no code comes from one.

When a server of this user has ended, any user of the machine can listen on its port. On Linux, the kernel states the
user of each listening socket.

``localhost`` is always 127.0.0.1. The name may also stand for ``::1``, where another user can have the same port.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import pwd
import socket
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from nimbus.datagen.errors import InputError

LOOPBACK = "127.0.0.1"
"""Address on which the servers of this user listen, and tunnels end."""
_OF_STORES = ("AWS_", "AZURE_", "AZURITE_", "GOOGLE_")
"""Beginnings of the names of variables that libraries of stores read."""
MOST_ADDRESSES = 8
"""Number of addresses of a host that are tried."""
VARIABLE = "NIMBUS_SERVER_USERS"
"""Environment variable with the names of users whose servers on this machine are trusted, ``ollama,ray``."""
UNKNOWN = "-"
"""Name in ``NIMBUS_SERVER_USERS`` for a port on which no process listens, because the kernel forwards it."""
_GREETING = 5.0
"""Time to connect to a server that is only checked [s]."""
_OF_LINK = "169.254."
"""Beginning of the addresses of a cloud's own servers, which no user of this machine has."""
_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"
"""State of a listening socket in the kernel's tables."""
_SUPERUSER = 0
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def literal_host(host: str) -> str:
    """Return 127.0.0.1 for ``localhost``, and any other host unchanged."""
    return LOOPBACK if host.lower().rstrip(".") == "localhost" else host


def literal_url(url: str) -> str:
    """Return a URL with 127.0.0.1 for ``localhost``, and any other text unchanged.

    An encrypted server proves that it is ``localhost`` by its certificate, so its URL is unchanged too.
    """
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    user, at, server = place.rpartition("@")
    host, colon, port = server.partition(":")
    return f"{scheme}://{user}{at}{literal_host(host)}{colon}{port}{slash}{path}" if scheme.lower() == "http" else url


def use_literal_hosts() -> None:
    """Replace ``localhost`` in variables of stores and proxies, whose libraries would resolve it.

    A variable that excludes ``localhost`` from a proxy excludes the address as well.
    """
    for name, value in os.environ.items():
        if name.upper().startswith(_OF_STORES) or name.upper().endswith("_PROXY"):
            os.environ[name] = literal_url(value)
        if name.upper() == "NO_PROXY" and "localhost" in (hosts := value.replace(" ", "").split(",")):
            os.environ[name] = ",".join(dict.fromkeys((*hosts, LOOPBACK)))


def dial(host: str, port: int, *, seconds: float, only_trusted: bool = False) -> socket.socket:
    """Connect to a server.

    Args:
        host: Name or address of the server.
        port: Its port.
        seconds: Time limit, which also holds for the calls of the socket [s].
        only_trusted: True if a token or key will be sent unencrypted, or if the server's answers are executed.

    Raises:
        OSError: The server cannot be reached in time.
        InputError: Another user of this machine has started the server.
    """
    dialed = socket.create_connection((literal_host(host), port), timeout=seconds)
    if only_trusted and (user := foreign_server(dialed)):
        dialed.close()
        what = f"the server at this port was started by another user, '{user}', who could be hostile"
        instead = f"start your own server again, or add '{user}' to the names in {VARIABLE} if you trust this user"
        if user == UNKNOWN:
            what = "no process of this machine listens on this port any more"
            instead = f"start the server again; if the kernel forwards the port, add '{UNKNOWN}' to {VARIABLE}"
        raise InputError(what, where=f"{host}:{port}", instead=instead)
    return dialed


def find_proxy(parts: SplitResult) -> tuple[str, int, str] | None:
    """Return host, port and authorization of the environment's proxy for a URL; None for none.

    Raises:
        InputError: The proxy is not one of plain HTTP.
    """
    found = urllib.request.getproxies_environment().get(parts.scheme, "")
    if not found or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxy = urlsplit(found if "://" in found else f"http://{found}")
    if proxy.scheme.lower() != "http":  # a password would be sent unencrypted to a proxy that expects encryption
        what, instead = f"a proxy of the kind '{proxy.scheme}' is not supported", "give the address of one with http://"
        raise InputError(what, where=f"{parts.scheme}_proxy", instead=instead)
    words = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}".encode()
    word = f"Basic {base64.b64encode(words).decode()}" if proxy.username else ""
    return proxy.hostname or "", proxy.port or 80, word


def check_proxies() -> None:
    """Refuse a proxy of this machine to which libraries would send a password, and kinds that are not supported.

    Libraries connect again and again. When the proxy has ended, another user could listen on its port.

    Raises:
        InputError: A proxy is one of these.
    """
    for scheme in ("http", "https"):
        find_proxy(urlsplit(f"{scheme}://store.invalid"))
    for scheme in ("http", "https", "all"):
        refuse_local_password(urllib.request.getproxies_environment().get(scheme, ""), where=f"{scheme}_proxy")


def refuse_local_password(url: str, *, where: str) -> None:
    """Refuse an address with a password that a library would send unencrypted to a port of this machine.

    Args:
        url: Address of a proxy or server, with or without a scheme.
        where: Location for the error.

    Raises:
        InputError: It is one.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.username and parts.scheme.lower() != "https" and is_own_machine(parts.hostname or ""):
        what = f"a server of this machine, {parts.hostname}, needs a password, which another user could receive"
        raise InputError(what, where=where, instead="start it without a password for this user, or remove the setting")


def check_receiver(url: str) -> None:
    """Check that a library may send a secret to a URL: if it is not encrypted, not to another user of this machine.

    Args:
        url: Whole URL; others than those of HTTP without encryption are not checked.

    Raises:
        InputError: Another user of this machine has started the server, or the proxy to it.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() == "http" and not (parts.hostname or "").startswith(_OF_LINK):
        host, port, _ = find_proxy(parts) or (parts.hostname or "", parts.port or 80, "")
        check_trusted(host, port)


def is_own_machine(host: str) -> bool:
    """Return True if an address of a host belongs to this machine."""
    with suppress(OSError):
        for family, *_, place in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[:MOST_ADDRESSES]:
            with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind((place[0], 0))  # only an own address can be bound
                return True
    return False


def check_trusted(host: str, port: int) -> None:
    """Check each address of a server to which a library will send a secret, because the library may try them all.

    Addresses that do not answer are left to the library.

    Raises:
        InputError: Another user of this machine has started a server there.
    """
    with suppress(OSError):
        for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:MOST_ADDRESSES]:
            with suppress(OSError):
                dial(str(place[0]), port, seconds=_GREETING, only_trusted=True).close()


@dataclass(frozen=True, kw_only=True)
class _Row:
    """Row of the kernel's tables."""

    own: tuple[Address, int]
    """Address and port of the socket."""
    other: tuple[Address, int]
    """Address and port of its other end."""
    is_listening: bool
    user: int
    is_owned: bool
    """False for a connection that no process has accepted yet; its user is then not stated."""


def foreign_server(connected: socket.socket, *, tables: Path = Path("/proc/net")) -> str:
    """Return the user of this machine that has started a server and is not trusted; empty if there is none.

    This user, the superuser and the users in ``NIMBUS_SERVER_USERS`` are trusted. A process of a trusted
    user must listen on the port, because any user can listen on a free one, and close it again after a connection. A
    process that has accepted the connection must be one of a trusted user as well.

    Args:
        connected: Connection to the server, which may be on another machine.
        tables: Folder of the kernel's tables of sockets.
    """
    server, client = _end(connected.getpeername()), _end(connected.getsockname())
    if not (server[0].is_loopback or server[0] == client[0]) or not (tables / _TABLES[0]).exists():
        return ""
    rows = list(_rows(tables))
    listening = [row for row in rows if row.is_listening and row.own[1] == server[1]]
    # A socket that is bound to the address itself receives the connection before one that is bound to all addresses.
    exact = {row.user for row in listening if row.own[0] == server[0]}
    users = exact or {row.user for row in listening if row.own[0].is_unspecified}
    users |= {row.user for row in rows if (row.own, row.other) == (server, client) and row.is_owned}
    names = sorted(map(_name, users - {os.getuid(), _SUPERUSER})) if users else [UNKNOWN]
    return next((name for name in names if name not in os.environ.get(VARIABLE, "").split(",")), "")


def _end(place: tuple[Any, ...]) -> tuple[Address, int]:
    return _plain(ipaddress.ip_address(place[0].partition("%")[0])), place[1]


def _rows(tables: Path) -> Iterator[_Row]:
    """Yield the sockets of this machine; the listening ones come first, as the kernel lists them."""
    for name in _TABLES:
        with suppress(OSError):
            for line in (tables / name).read_text().splitlines()[1:]:
                words = line.split()
                yield _Row(
                    own=_address(words[1]),
                    other=_address(words[2]),
                    is_listening=words[3] == _LISTENS,
                    user=int(words[7]),
                    is_owned=words[9] != "0",
                )


def _address(text: str) -> tuple[Address, int]:
    """Parse an address and a port of the kernel's tables: words of four bytes in the machine's order."""
    place, _, port = text.partition(":")
    words = (int(place[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(place), 8))
    return _plain(ipaddress.ip_address(b"".join(words))), int(port, 16)


def _plain(place: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for."""
    return (isinstance(place, ipaddress.IPv6Address) and place.ipv4_mapped) or place


def _name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)
