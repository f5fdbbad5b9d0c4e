"""Threads that write to the page do not disturb the server's event loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nimbus.datagen.ui.browser.message_events import make_thread_safe

viser = pytest.importorskip("viser")


@pytest.fixture
def server() -> Iterator[Any]:
    server = viser.ViserServer(host="127.0.0.1", port=8365, verbose=False)
    make_thread_safe(server)
    yield server
    server.stop()


def test_any_thread_moves_a_body(server: Any):
    """A page waits for messages; in its debug mode, the loop refuses calls of other threads."""
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    frame = server.scene.add_frame("/bodies/cube")
    server.get_event_loop().set_debug(True)
    protocols = [Subprotocol(f"viser-v{viser.__version__}")]
    with connect(f"ws://127.0.0.1:{server.get_port()}", subprotocols=protocols, max_size=None) as page:
        read_until_quiet(page)
        frame.position = (1.0, 2.0, 3.0)
        assert page.recv(timeout=60), "the page gets the new pose"
        with server.atomic():
            frame.position = (1.0, 2.0, 4.0)
            frame.wxyz = (0.0, 1.0, 0.0, 0.0)
        assert page.recv(timeout=60)


def read_until_quiet(page: Any) -> None:
    """Read what the server sends to a new page, so that it waits for the next message."""
    page.recv(timeout=60)
    while True:
        try:
            page.recv(timeout=0.3)
        except TimeoutError:
            return
