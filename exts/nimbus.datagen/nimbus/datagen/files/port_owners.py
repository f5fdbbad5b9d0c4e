"""Owners of the ports of this machine: no secret goes to a server of another user, and none of its code is executed.

When a server of this user has ended, any user of the machine can listen on its port. On Linux, the kernel states the
user of each listening socket.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "NIMBUS_SERVER_USERS"
"""Environment variable with the names of users whose servers on this machine are trusted, ``ollama,ray``."""
UNKNOWN = "-"
"""Name in ``NIMBUS_SERVER_USERS`` for a port on which no process listens, because the kernel forwards it."""
_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"
"""State of a listening socket in the kernel's tables."""
_SUPERUSER = 0
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
