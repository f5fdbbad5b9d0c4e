"""Real connections to a running studio: the printed address works, a foreign page gets nothing."""

from __future__ import annotations

import importlib.util
import socket
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.gate import check_guarded
from tests.support.studio.controls import controls, use

FOREIGN = "http://evil.example"


@pytest.fixture(scope="module")
def client() -> ModuleType:
    return pytest.importorskip("websockets.sync.client")


def get(studio: Any, path: str, *, host: str = "", origin: str = "") -> bytes:
    """Return the answer to a plain request, from the status line to the end."""
    place = urlsplit(studio.address)
    headers = f"Host: {host or place.netloc}\r\n" + (f"Origin: {origin}\r\n" if origin else "")
    with socket.create_connection(("127.0.0.1", place.port or 0), 20) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n".encode())
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    return found


def join(client: ModuleType, studio: Any, *, path: str | None = None, origin: str | None = None, host: str = "") -> Any:
    """Open a WebSocket to the studio, as its page does."""
    viser: Any = importlib.import_module("viser")

    place = urlsplit(studio.address)
    url = f"ws://{host or place.netloc}{place.path if path is None else path}"
    return client.connect(
        url,
        sock=socket.create_connection(("127.0.0.1", place.port or 0), 20),
        origin=origin,
        subprotocols=[f"viser-v{viser.__version__}"],
        max_size=2**28,
    )


def test_printed_address_shows_the_page(studio: Any):
    token = urlsplit(studio.address).path
    for path in (token, f"{token}/", f"{token}/?fixedDpr=0.4"):
        answer = get(studio, path, origin="")
        assert answer.startswith(b"HTTP/1.1 200") and b"<title>Viser</title>" in answer
    head = answer.split(b"\r\n\r\n")[0]
    assert b"Referrer-Policy: no-referrer" in head and b"frame-ancestors 'none'" in head


def test_own_page_connects_and_writes(studio: Any, client: ModuleType):
    import msgspec

    episodes = controls(studio)["Run", "episodes"]
    with join(client, studio, origin=f"http://{urlsplit(studio.address).netloc}") as page:
        assert len(page.recv(timeout=60)) > 100
        update = {"type": "GuiUpdateMessage", "uuid": episodes._impl.uuid, "updates": {"value": 7}}
        page.send(msgspec.msgpack.encode(update))
        deadline = time.monotonic() + 60
        while episodes.value != 7 and time.monotonic() < deadline:
            time.sleep(0.05)
    assert episodes.value == 7
    episodes.value = 10


@pytest.mark.parametrize("path", ["/", "/index.html", "/none/", "/%2e%2e/"])
def test_page_without_the_token_is_refused(studio: Any, client: ModuleType, path: str):
    answer = get(studio, path)
    assert answer.startswith(b"HTTP/1.1 403") and b"viser" not in answer.lower()
    with pytest.raises(Exception, match="403"):
        join(client, studio, path=path)


@pytest.mark.parametrize("origin", [FOREIGN, "null", "http://localhost:1"])
def test_foreign_origin_is_refused(studio: Any, client: ModuleType, origin: str):
    """A foreign origin is refused even with the right token."""
    assert get(studio, urlsplit(studio.address).path, origin=origin).startswith(b"HTTP/1.1 403")
    with pytest.raises(Exception, match="403"):
        join(client, studio, origin=origin)


def test_name_of_a_foreign_page_is_refused(studio: Any, client: ModuleType):
    """In DNS rebinding, the page's own name resolves to this machine, so its origin and host are equal."""
    token, port = urlsplit(studio.address).path, urlsplit(studio.address).port
    assert get(studio, token, host=f"evil.example:{port}", origin=f"{FOREIGN}:{port}").startswith(b"HTTP/1.1 403")
    with pytest.raises(Exception, match="403"):
        join(client, studio, host=f"evil.example:{port}", origin=f"{FOREIGN}:{port}")


@pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed")
def test_server_without_a_gate_is_noticed():
    viser: Any = importlib.import_module("viser")

    server = viser.ViserServer(host="127.0.0.1", port=8400, verbose=False)
    try:
        with pytest.raises(InputError, match="without the token"):
            check_guarded("127.0.0.1", server.get_port())
    finally:
        server.stop()


def test_files_elsewhere_are_not_opened(studio: Any, tmp_path: Path):
    studio.editor.act("open", "/etc/passwd")
    assert "task file" in studio.editor.message
    studio.editor.act("open", "/etc/some.yaml")
    assert "outside the folders" in studio.editor.message
    (tmp_path / "link.yaml").symlink_to("/etc/some.yaml")
    studio.editor.act("open", str(tmp_path / "link.yaml"))
    assert "outside the folders" in studio.editor.message


def test_tasks_are_not_saved_elsewhere(studio: Any, tmp_path: Path):
    above = Path(*[".."] * 12)
    for place in ("/var/tmp/stray.yaml", str(tmp_path / above / "var" / "tmp" / "stray.yaml")):
        studio.editor.act("file", place)
        studio.editor.act("disk", "Save as")
        assert "outside the folders" in studio.editor.message
    studio.editor.act("file", str(tmp_path / "page.html"))
    studio.editor.act("disk", "Save as")
    assert "task file" in studio.editor.message
    assert not list(tmp_path.iterdir()) and not Path("/var/tmp/stray.yaml").exists()
    studio.editor.act("file", str(studio.draft.path))


def test_datasets_elsewhere_are_not_used(studio: Any):
    field = controls(studio)["Run", "folder"]
    use(field, "/var/tmp/data")
    assert field.value == "" and studio.panel.out == ""
    assert "outside the folders" in studio.editor.message
