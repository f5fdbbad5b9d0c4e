"""Websocket to a policy's server, with time limits on all waits, and errors as faults with a reason."""

from __future__ import annotations

import http
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.server_tokens import CLIENT_VARIABLE, client_token, known_token
from nimbus.datagen.files.trusted_servers import LOOPBACK, dial, literal_host
from nimbus.datagen.local_server import is_loopback
from nimbus.datagen.machine import resident_bytes
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.policies.wires.codec import LARGEST

_LOOK = 0.5
"""Interval between readings of the memory during a wait [s]."""
_MOST_MEMORY = 8 * LARGEST
"""Memory that this process may grow by during a wait [bytes]: a part of one byte takes 200 in memory."""
_SHOWN = 4096
"""Part of a server's traceback in which its last line is searched [characters]."""
_CLOSING = 1.0
"""Time for the other side to confirm the close [s]."""


_DAMAGED = 30.0
"""Time to refuse a text that is not UTF-8 [s]; it is far longer than :data:`_LOOK`, because the thread may have to wait
for a core."""


def _place(address: str) -> tuple[str, int, str]:
    """Return the host, the port and the token for the server at an address; empty without a token."""
    place = urlsplit(address)
    host, port = literal_host(place.hostname or ""), place.port or (443 if place.scheme == "wss" else 80)
    if host == LOOPBACK and (token := known_token(port)):
        return host, port, token
    return host, port, client_token() if is_loopback(host) else ""


def _dial(host: str, port: int, *, seconds: float, only_trusted: bool) -> socket.socket:
    dialed = dial(host, port, seconds=seconds, only_trusted=only_trusted)
    dialed.settimeout(None)
    return dialed


class Socket:
    """Connection without pings, because a server whose model compiles does not answer them for minutes.

    Args:
        address: ``ws://HOST:PORT``.
        seconds: Time limit for the server's greeting.

    Raises:
        PolicyFault: There is no server, or it does not use websockets.
        InputError: The server needs a token, or another user of this machine has started it.
    """

    def __init__(self, address: str, *, seconds: float) -> None:
        host, port, token = _place(address)
        try:
            self._connection: ClientConnection = connect(
                address,
                sock=_dial(host, port, seconds=seconds, only_trusted=bool(token) and address.startswith("ws://")),
                open_timeout=seconds,
                close_timeout=_CLOSING,
                ping_interval=None,
                compression=None,
                max_size=LARGEST,
                max_queue=1,  # unrequested frames are read one at a time
                proxy=None,
                additional_headers={"Authorization": f"Bearer {token}"} if token else {},
            )
        except TimeoutError:
            raise PolicyFault(Reason.POLICY_TIMEOUT, f"no greeting in {seconds:.0f} s") from None
        except InvalidStatus as error:
            status = error.response.status_code
            if status == http.HTTPStatus.UNAUTHORIZED:
                instead = f"set {CLIENT_VARIABLE} to the token that the server printed"
                raise InputError("needs the token of the server", where=address, instead=instead) from None
            raise PolicyFault(Reason.POLICY_ERROR, f"answers HTTP {status}, so it is no websocket") from None
        except (InvalidMessage, InvalidHandshake, ConnectionClosed, EOFError) as error:
            raise PolicyFault(Reason.POLICY_ERROR, f"not a websocket: {error}") from None
        except OSError as error:
            what = error.strerror or str(error)
            raise PolicyFault(Reason.POLICY_ERROR, f"no server: {what.lower()}") from None

    def send(self, frame: bytes, *, seconds: float) -> None:
        """Send a frame.

        Raises:
            PolicyFault: The connection is closed, or the server does not read.
        """
        try:
            with self._limited(seconds):
                self._connection.send(frame)
        except ConnectionClosed as error:
            _fail(error)
        except OSError:  # the socket is closed already
            raise PolicyFault(Reason.POLICY_ERROR, "the server closed the connection") from None

    def receive(self, *, seconds: float) -> bytes:
        """Wait for a frame.

        Raises:
            PolicyFault: No frame arrives in time, the connection is closed, or the frame is a text, which is the
                server's traceback.
        """
        frame, end, before = None, time.monotonic() + seconds, resident_bytes()
        while frame is None:
            try:
                with self._limited(_DAMAGED):
                    frame = self._connection.recv(timeout=max(0.0, min(end - time.monotonic(), _LOOK)))
            except TimeoutError:
                if time.monotonic() >= end:
                    self._give_up()
                    raise PolicyFault(Reason.POLICY_TIMEOUT, f"no answer in {seconds:.0f} s") from None
                if resident_bytes() - before > _MOST_MEMORY:
                    self._give_up()
                    what = f"the server sends a frame in parts that take more than {_MOST_MEMORY >> 20} MiB"
                    raise PolicyFault(Reason.POLICY_ERROR, what) from None
            except ConnectionClosed as error:
                _fail(error)
        if isinstance(frame, str):
            lines = [line for line in frame[-_SHOWN:].splitlines() if line.strip()]
            raise PolicyFault(Reason.POLICY_ERROR, f"the server failed: {lines[-1].strip()[:300] if lines else ''}")
        return frame

    def close(self) -> None:
        """End the connection, within a time limit whatever the server does."""
        with self._limited(2 * _CLOSING):
            self._connection.close()

    @contextmanager
    def _limited(self, seconds: float) -> Iterator[None]:
        """End the connection if a call lasts longer.

        The library's thread answers pings with a lock that its calls need too; while the server reads nothing, it holds
        the lock and waits without a limit.
        """
        timer = threading.Timer(seconds, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        """End the connection without a handshake; all waits of its threads end."""
        with suppress(OSError):  # it is closed already
            self._connection.socket.shutdown(socket.SHUT_RDWR)


def _fail(error: ConnectionClosed) -> NoReturn:
    if error.sent is not None and error.sent.code == 1009:
        what = f"sent a frame of more than {LARGEST // 2**20} MiB"
    elif error.rcvd is not None:
        what = f"closed the connection: {error.rcvd.code} {error.rcvd.reason}".rstrip()
    else:
        what = "closed the connection"
    raise PolicyFault(Reason.POLICY_ERROR, f"the server {what}") from None
