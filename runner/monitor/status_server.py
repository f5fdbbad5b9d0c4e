"""Server of a run's status on loopback: a page with the nodes, the status as JSON, and metrics for Prometheus.

Requests need the token of the printed address, because any user of the machine can connect.
"""

from __future__ import annotations

import html
import io
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from urllib.parse import quote, unquote

from rich.console import RenderableType
from rich.terminal_theme import MONOKAI

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.server_tokens import new_token
from nimbus.datagen.local_server import LocalHandler, LocalServer
from nimbus.runner.monitor.cluster_view import node_rows, status_view
from nimbus.runner.monitor.dashboard_view import view
from nimbus.runner.monitor.metrics import CONTENT_TYPE, metrics_text
from nimbus.runner.monitor.status import LEFT_STATES, Event, NodeStatus, Status
from nimbus.runner.system.console import TerminalConsole

_WIDTH = 150
_HTML = "text/html; charset=utf-8"
_STATUS = "/status.json"
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body {{ color: #d8dee9; background: #15181d; font: 14px monospace; margin: 1.5rem; }}
pre {{ font: inherit; line-height: 1.35; overflow-x: auto; }} a {{ color: #7fb4ff; }}
pre a {{ color: inherit; }} h1 {{ font-size: inherit; margin: 1rem 0; }} h2 {{ font: inherit; color: #8a93a3; }}
td {{ padding: 0 2rem 0.2rem 0; vertical-align: top; }} td:first-child {{ color: #8a93a3; }}
.working {{ color: #a3e05a; }} .starting {{ color: #7fd7e8; }}
.silent {{ color: #e8c25a; }} .failed {{ color: #f0616d; }}
</style></head><body>{body}</body></html>"""


class StatusServer(LocalServer):
    """Serves ``/``, ``/node/NAME``, the ``status.json`` of both, and ``/metrics`` on 127.0.0.1, below the token.

    Args:
        port: Port; 0 for any free one.
        read: Reads the status.
        read_node: Reads the status of a node's cell by the node's name; None while it is unknown.

    Raises:
        InputError: The port is taken.
    """

    def __init__(
        self, port: int, read: Callable[[], Status], read_node: Callable[[str], Status | None] = lambda _: None
    ) -> None:
        self.read, self.read_node = read, read_node
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            what = f"cannot listen on port {port}: {error.strerror}"
            raise InputError(what, where="--serve", instead="give another port, or 0 for any free one") from None
        self.token = new_token()

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{self.name}:{self.server_address[1]}/{self.token}/"


class _Handler(LocalHandler):
    def do_GET(self) -> None:
        """Answer a request."""
        assert isinstance(self.server, StatusServer)
        if (asked := self.without_token(self.server.token)) is None:
            told = "open the address that was printed at the start, or send its token; see --token-file\n"
            self._answer(told, "text/plain", HTTPStatus.FORBIDDEN)
            return
        try:
            status = self.server.read()
            path = unquote(asked.partition("?")[0])
            name = path.removeprefix("/node/").removesuffix(_STATUS) if path.startswith("/node/") else ""
            node = _node(status, name)
            details = self.server.read_node(name) if node else None
        except InputError as error:
            self._answer(f"{error}\n", "text/plain; charset=utf-8", HTTPStatus.SERVICE_UNAVAILABLE)
            return
        if path == "/":
            self._answer(page(status), _HTML)
        elif path == "/metrics":
            self._answer(metrics_text(status), CONTENT_TYPE)
        elif path == _STATUS:
            self._answer(json.dumps(status.to_plain(), default=_plain), "application/json")
        elif node and path.endswith(_STATUS):
            plain = details.to_plain() if details else None
            self._answer(json.dumps(plain, default=_plain), "application/json")
        elif node:
            self._answer(node_page(status, node, details), _HTML)
        else:
            self._answer(
                "not found; see /, /node/NAME, /node/NAME/status.json, /status.json, /metrics\n",
                "text/plain",
                HTTPStatus.NOT_FOUND,
            )

    def _answer(self, text: str, kind: str, code: HTTPStatus = HTTPStatus.OK) -> None:
        content = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def page(status: Status) -> str:
    """Return the page of a run, which shows the same as the terminal and links each node to its own page."""
    shown = status_view(status, link=lambda node: f"node/{quote(node.name, safe='')}")
    return _PAGE.format(title=html.escape(f"{status.task}: {status.state}"), body=_exported(shown))


def _exported(shown: RenderableType) -> str:
    """Return a view of the terminal as HTML."""
    console = TerminalConsole(width=_WIDTH, record=True, file=io.StringIO(), force_terminal=True)
    console.print(shown)
    return console.export_html(theme=MONOKAI, inline_styles=True, code_format="<pre>{code}</pre>")


def node_page(status: Status, node: NodeStatus, details: Status | None = None) -> str:
    """Return the page of one node: what it reports, the run of its cell, and events that name it, newest first.

    Args:
        status: Status of the run.
        node: The node.
        details: Status of its cell; None while it is unknown.
    """
    rows = "".join(
        f"<tr><td>{name}</td><td{_color(name, node)}>{html.escape(text)}</td></tr>"
        for name, text in node_rows(node).items()
    )
    named = [event for event in status.events if event.text.startswith((f"node {node.name}:", f"node {node.name} "))]
    events = "".join(
        f"<tr><td>{_clock(event)}</td><td>{html.escape(event.text)}</td></tr>" for event in reversed(named)
    )
    name = html.escape(node.name)
    body = f'<p><a href="..">{html.escape(status.task)}</a></p><h1>node {name}</h1><table>{rows}</table>'
    if details and node.state not in LEFT_STATES:
        address = f"{quote(node.name, safe='')}{_STATUS}"
        body += f'<h2>its cell (<a href="{html.escape(address)}">status.json</a>)</h2>{_exported(view(details))}'
    if events:
        body += f"<h2>events</h2><table>{events}</table>"
    return _PAGE.format(title=f"node {name}: {html.escape(node.state)}", body=body)


def _color(name: str, node: NodeStatus) -> str:
    return f' class="{html.escape(node.state)}"' if name == "state" else ""


def _clock(event: Event) -> str:
    return time.strftime("%H:%M:%S", time.localtime(event.time)) if event.time > 0 else ""


def _node(status: Status, name: str) -> NodeStatus | None:
    nodes = status.cluster.nodes if status.cluster else ()
    return next((node for node in nodes if node.name == name), None)


def _plain(value: object) -> object:
    return asdict(value)  # type: ignore[call-overload]
