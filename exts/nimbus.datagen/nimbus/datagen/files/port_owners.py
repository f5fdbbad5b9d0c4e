"""Owners of the ports of this machine: a secret goes to no server of another user.

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
from pathlib import Path

VARIABLE = "NIMBUS_SERVER_USERS"
"""Environment variable with the names of users whose servers on this machine may receive secrets, ``ollama,ray``."""
_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"
"""State of a listening socket in the kernel's tables."""
_SUPERUSER = 0
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def foreign_listener(connected: socket.socket, *, tables: Path = Path("/proc/net")) -> str:
    """Return the user of this machine that has started a server and is not trusted; empty if there is none.

    This user, the superuser and the users in ``NIMBUS_SERVER_USERS`` are trusted. So is a port that no process of this
    machine listens on, such as one that the superuser forwards.

    Args:
        connected: Connection to the server, which may be on another machine.
        tables: Folder of the kernel's tables of sockets.
    """
    (host, port), own = connected.getpeername()[:2], connected.getsockname()[0]
    place = _plain(ipaddress.ip_address(host.partition("%")[0]))
    if not (place.is_loopback or host == own):
        return ""
    found = list(_listeners(port, tables))
    # A socket that is bound to the address itself receives the connection before one that is bound to all addresses.
    owners = {uid for at, uid in found if at == place} or {uid for at, uid in found if at.is_unspecified}
    names = sorted(map(_name, owners - {os.getuid(), _SUPERUSER}))
    return next((name for name in names if name not in os.environ.get(VARIABLE, "").split(",")), "")


def _listeners(port: int, tables: Path) -> Iterator[tuple[Address, int]]:
    """Yield address and user of the sockets that listen on a port; none where the kernel has no such tables."""
    for name in _TABLES:
        with suppress(OSError):
            for line in (tables / name).read_text().splitlines()[1:]:
                words = line.split()
                place, _, number = words[1].partition(":")
                if words[3] == _LISTENS and int(number, 16) == port:
                    yield _address(place), int(words[7])


def _address(text: str) -> Address:
    """Parse an address of the kernel's tables: words of four bytes in the machine's order."""
    words = (int(text[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(text), 8))
    return _plain(ipaddress.ip_address(b"".join(words)))


def _plain(place: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for."""
    return (isinstance(place, ipaddress.IPv6Address) and place.ipv4_mapped) or place


def _name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)
