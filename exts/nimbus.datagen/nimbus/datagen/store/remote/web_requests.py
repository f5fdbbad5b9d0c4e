"""Requests to a web server with limits on time and redirects; the server may be hostile."""

from __future__ import annotations

import http.client
import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import BinaryIO
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.files.timed_connection import SteadyAddresses, TimedConnection
from nimbus.datagen.files.trusted_servers import find_proxy

COPY = "copy the dataset to s3://, gs://, az:// or a folder"
LATER = "run the same command again later"
_QUIET = 20.0
"""Time without a byte after which a connection is abandoned [s]."""
CALL_SECONDS = 60.0
"""Time for a call with all its tries, without the time for its content [s]."""
_BLOCK = 1 << 20
_LEAST_RATE = 50e3
"""Rate of the slowest accepted server [bytes/s]."""
OBJECT_SECONDS = 12 * 3600.0
"""Time for the content of one object, at whatever rate it arrives: a shard of 5 GB needs 0.12 MB/s [s]."""
_MOST_IGNORED = 1 << 16
"""Longest content of an error that is read, so that the connection can be used again [bytes]."""
_MOST_REDIRECTS = 5
_LONGEST_URL = 4096
_MOST_IDLE = 16
"""Number of connections that are kept for further requests."""
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "nimbus"}
_SAFE = "/~!$&'()*+,;=:@"
_REDIRECTS = (301, 302, 303, 307, 308)


class WebAnswer:
    """Answer of a server, whose content has not been read."""

    def __init__(
        self, connection: TimedConnection, response: http.client.HTTPResponse, scheme: str, where: str
    ) -> None:
        self.connection, self.response, self.scheme, self.where = connection, response, scheme, where
        self.status, self.headers = response.status, response.headers

    @property
    def is_success(self) -> bool:
        """True for a whole file or a part of one."""
        return self.status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT)

    def read(self, most: int) -> bytes:
        """Return the next bytes of the content; none at its end.

        Raises:
            StoreAwayError: The server does not send them in time.
        """
        with _speaking(self.where):
            return self.response.read1(most)

    def blocks(self, byte_count: int) -> Iterator[bytes]:
        """Yield the content, which has a declared size [bytes], and nothing beyond it.

        Raises:
            StoreAwayError: The server does not send it in time, or sends less.
        """
        read, next_limit, end = 0, 0, time.monotonic() + OBJECT_SECONDS
        while read < byte_count:
            if read >= next_limit:
                _limit_block(self.connection, end)
                next_limit += _BLOCK
            if not (block := self.read(min(next_limit, byte_count) - read)):
                break
            read += len(block)
            yield block
        if read != byte_count:
            raise StoreAwayError(f"returned {read} of {byte_count} bytes", where=self.where)


def urls_below(base: str) -> Callable[[str, str], str]:
    """Return a function for the URLs of files below a URL, from a method and the name of a file.

    Args:
        base: URL without a slash at its end; its path is not quoted.

    Raises:
        ValueError: The URL has no valid host or port.
    """
    parts = urlsplit(base)
    if not parts.hostname or parts.port == 0:
        raise ValueError(base)
    begin = f"{parts.scheme}://{parts.netloc}{quote(parts.path, safe=_SAFE)}"
    return lambda _, name: f"{begin}/{quote(name, safe=_SAFE)}"


class WebRequests:
    """Requests to one server. Thread-safe, also in forked processes.

    Args:
        url: Returns the URL of a file for a method, ``GET`` or ``HEAD``, and a name.
        follows: True to follow redirects on the same host.
    """

    def __init__(self, url: Callable[[str, str], str], *, follows: bool = False) -> None:
        self._url, self._follows, self._addresses = url, follows, SteadyAddresses()
        self._idle: dict[tuple[int, str], list[TimedConnection]] = {}

    @contextmanager
    def ask(
        self, method: str, name: str, *, end: float, where: str, headers: dict[str, str] | None = None
    ) -> Iterator[WebAnswer]:
        """Send a request, and yield the answer, whatever its status, or that after redirects.

        Args:
            method: ``GET`` or ``HEAD``.
            name: Name of the file.
            end: Time of the monotonic clock at which everything ends [s].
            where: Location for errors.
            headers: Further headers.

        Raises:
            InputError: The server redirects to another host or too often, or its certificate is not valid.
            StoreAwayError: The server does not answer in time.
        """
        url = self._url(method, name)
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._exchange(method, url, end=end, where=where, headers=headers or {})
            try:
                if answer.status not in _REDIRECTS or not self._follows:
                    yield answer
                    return
                url = _next_url(url, answer.headers.get("Location", ""), where=where)
            finally:
                self._put_back(answer)
        raise InputError(f"more than {_MOST_REDIRECTS} redirects", where=where, instead=COPY)

    def _exchange(self, method: str, url: str, *, end: float, where: str, headers: dict[str, str]) -> WebAnswer:
        """Send one request, and read the headers of its answer; a kept connection that is closed is replaced."""
        parts = urlsplit(url)
        headers = _HEADERS | headers
        idle = self._connections(parts.scheme)
        with _speaking(where):
            while True:
                is_kept = bool(idle)
                connection = idle.pop() if is_kept else _connection(parts, addresses=self._addresses)
                connection.limit(end)
                try:
                    connection.request(method, _target(parts), headers=headers)
                    return WebAnswer(connection, connection.getresponse(), parts.scheme, where)
                except (ConnectionError, http.client.HTTPException):
                    connection.close()
                    if not is_kept:
                        raise
                except BaseException:
                    connection.close()
                    raise

    def _connections(self, scheme: str) -> list[TimedConnection]:
        """Return the free connections of this process; a forked process would read its parent's answers."""
        return self._idle.setdefault((os.getpid(), scheme), [])

    def _put_back(self, answer: WebAnswer) -> None:
        """Keep the connection of an answer that was read to its end, otherwise close it."""
        idle, response = self._connections(answer.scheme), answer.response
        try:
            if response.length == 0 or (not answer.is_success and (response.length or _MOST_IGNORED) < _MOST_IGNORED):
                response.read()
            is_free = response.isclosed() and not response.will_close and len(idle) < _MOST_IDLE
        except (OSError, http.client.HTTPException):
            is_free = False
        if is_free:
            idle.append(answer.connection)
        else:
            response.close()
            answer.connection.close()


@contextmanager
def exchange_once(
    method: str,
    url: str,
    *,
    where: str,
    headers: dict[str, str] | None = None,
    content: BinaryIO | None = None,
    seconds: float = 0.0,
) -> Iterator[WebAnswer]:
    """Send one request over its own connection, and yield the answer, whatever its status; follow no redirect.

    Args:
        method: Method of the request, such as ``GET``.
        url: Whole URL, quoted.
        where: Location for errors; the URL may be secret.
        headers: Further headers; with a content, its ``Content-Length`` among them.
        content: Content to send.
        seconds: Time for the answer, and without a byte of it [s]; by default 60 s and 20 s.

    Raises:
        InputError: The server's certificate is not valid.
        StoreAwayError: The server does not answer, or does not read the content, in time.
    """
    with _speaking(where):
        parts = urlsplit(url)
        connection = _connection(parts, quiet=seconds or _QUIET)
        connection.limit(time.monotonic() + (seconds or CALL_SECONDS))
    try:
        with _speaking(where):
            body = None if content is None else _sent(content, connection, seconds or CALL_SECONDS)
            connection.request(method, _target(parts), body, _HEADERS | (headers or {}))
            answer = WebAnswer(connection, connection.getresponse(), parts.scheme, where)
        yield answer
    finally:
        connection.close()


def _sent(content: BinaryIO, connection: TimedConnection, seconds: float) -> Iterator[bytes]:
    """Yield the blocks of a content to send, each with its own time limit, and then set that of the answer [s]."""
    end = time.monotonic() + OBJECT_SECONDS
    while block := content.read(_BLOCK):
        _limit_block(connection, end)
        yield block
    connection.limit(time.monotonic() + seconds)


def _limit_block(connection: TimedConnection, end: float) -> None:
    """Limit the time for the next block, which ends with that of the object; no limit grows with a declared size."""
    connection.limit(min(end, time.monotonic() + CALL_SECONDS + _BLOCK / _LEAST_RATE))


def _next_url(url: str, place: str, *, where: str) -> str:
    """Return the URL to which a server redirects.

    Raises:
        InputError: It is on another host or port.
    """
    host = place
    try:
        found = urljoin(url, place[:_LONGEST_URL])
        host = urlsplit(found).netloc
        is_own = _origin(urlsplit(found)) in _origins(urlsplit(url))
    except ValueError:
        is_own, found = False, ""
    if not is_own:
        what = f"the web server redirects to another host, {host[:80]!a}"
        raise InputError(what, where=where, instead="give the address of that host if you trust it")
    return quote(found.partition("#")[0], safe=f"{_SAFE}?%[]")


@contextmanager
def _speaking(where: str) -> Iterator[None]:
    """Convert errors of a connection to one line each."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        what = f"the certificate of the server is not valid: {error.verify_message[:160]}"
        instead = "install the certificates of this machine (ca-certificates), or set SSL_CERT_FILE"
        raise InputError(what, where=where, instead=instead) from None
    except TimeoutError:
        raise StoreAwayError("the server is too slow", where=where, instead=LATER) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or type(error).__name__)[:160]
        raise StoreAwayError(f"the server does not answer: {reason}", where=where, instead=LATER) from None


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    is_plain = parts.scheme in ("http", "https") and "@" not in parts.netloc
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return (parts.scheme if is_plain else "", parts.hostname or "", port)


def _origins(parts: SplitResult) -> list[tuple[str, str, int]]:
    """Return the places to which a server may redirect: its own, and from http to https."""
    scheme, host, port = _origin(parts)
    return [(scheme, host, port), *([("https", host, 443)] if (scheme, port) == ("http", 80) else [])]


def _connection(parts: SplitResult, quiet: float = _QUIET, addresses: SteadyAddresses | None = None) -> TimedConnection:
    is_encrypted = parts.scheme == "https"
    port = parts.port or (443 if is_encrypted else 80)
    return TimedConnection(
        parts.hostname or "",
        port,
        is_encrypted=is_encrypted,
        quiet=quiet,
        proxy=find_proxy(parts),
        addresses=addresses,
    )


def _target(parts: SplitResult) -> str:
    """Return the target of a request: a path, or for a proxy of plain HTTP, the whole URL."""
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    return f"http://{parts.netloc}{path}" if parts.scheme == "http" and find_proxy(parts) else path
