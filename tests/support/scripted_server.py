"""An HTTP server on loopback that answers requests by a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ScriptedServer:
    """The server's address and the received requests."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


Step = Callable[[BaseHTTPRequestHandler], None]


def send(body: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None, *, length: int = -1) -> Step:
    """Make a step that sends a reply, with a false length if given."""
    content = body.encode(errors="surrogatepass") if isinstance(body, str) else body

    def step(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content) if length < 0 else length))
        handler.end_headers()
        handler.wfile.write(content)

    return step


def say(content: object, *, finish: str = "stop", **message: object) -> Step:
    """Make a step that sends a model's message."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content} | message}
    return send(json.dumps({"choices": [choice], "usage": {"total_tokens": 100}}))


@contextmanager
def serving(steps: Sequence[Step]) -> Iterator[ScriptedServer]:
    """Serve steps in turn, and repeat the last one."""
    left, lock = list(steps), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                seen.requests.append(body)
                seen.keys.append(self.headers.get("Authorization", ""))
                step = left.pop(0) if len(left) > 1 else left[0]
            try:
                step(self)
            except OSError:
                self.close_connection = True  # the client has disconnected

        def do_GET(self) -> None:
            send(json.dumps({"data": [{"id": "tiny"}]}))(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen = ScriptedServer(f"http://127.0.0.1:{server.server_address[1]}/v1")
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
