"""Web servers with datasets: their files are never listed, because a listing has no limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote.working_copy import open_dataset


@contextmanager
def served(names: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Serve empty files with these names; yield the address and the methods of all requests."""
    methods: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            methods.append(self.command)
            self.send_response(200 if self.path.removeprefix("/data/") in names else 404)
            self.send_header("Content-Length", "0")
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.end_headers()

        do_GET = do_HEAD = do_PROPFIND = answer

        def log_message(self, format: str, *args: object) -> None:
            """Keep the terminal clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/data", methods
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("names", "text"), [({"meta/info.json"}, "web servers cannot list their files"), (set[str](), "no dataset here")]
)
def test_no_listing(names: set[str], text: str) -> None:
    with served(names) as (address, methods):
        with pytest.raises(InputError, match=text):
            open_dataset(address)
    assert set(methods) == {"HEAD"}
