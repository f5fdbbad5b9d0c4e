"""Messages to the page from any thread: viser's queues are woken in the thread of its event loop only."""

from __future__ import annotations

import asyncio
from typing import Any


class LoopEvent(asyncio.Event):
    """Event that only the thread of its event loop sets; calls from other threads have no effect.

    ``asyncio.Event`` is not thread-safe. viser sets the event of a queue in the thread that writes, and then again in
    the thread of its loop. The first call wakes futures of the loop from outside, and fails with "deque mutated during
    iteration" if the loop changes the list of waiting tasks at the same time. The second call suffices.

    Args:
        loop: Event loop of the server.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._owner = loop

    def set(self) -> None:
        """Set the event, if called in the thread of the loop."""
        if _running_loop() is self._owner:
            super().set()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in the current thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def make_thread_safe(server: Any) -> None:
    """Let any thread write to the scene and the controls of a server.

    Args:
        server: A ``viser.ViserServer`` of version 1.1, without connected clients.
    """
    loop, websockets = server.get_event_loop(), server._websock_server

    def replace(buffer: Any) -> None:
        before, buffer.message_event = buffer.message_event, LoopEvent(loop)
        loop.call_soon_threadsafe(before.set)  # wakes a task that already waits for it

    replace(websockets.get_message_buffer())
    # viser calls this in the loop, before it sends the first message of the connection's own queue.
    websockets.on_client_connect(lambda connection: replace(connection.get_message_buffer()))
