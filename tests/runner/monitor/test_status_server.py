from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.monitor.status import Event, Status, WorkerStatus
from nimbus.runner.monitor.status_server import StatusServer
from tests.runner.monitor.test_metrics import STATUS

EVENTS = ("node n2: drained <script>", "node n20 on b: 1 slot", "else")
CELL = Status(
    task="drive",
    workers=(WorkerStatus(number=7, seat=0, pid=1, role="render<er>", phase="render", index=3, age=0.1, in_phase=2.0),),
)
SHOWN = replace(STATUS, events=tuple(Event(number=number, text=text) for number, text in enumerate(EVENTS)))


@pytest.fixture(scope="module")
def server() -> Iterator[StatusServer]:
    with StatusServer(0, lambda: SHOWN, {"n1": CELL}.get) as found:
        threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield found
        found.shutdown()


def get(server: StatusServer, path: str, **headers: str) -> str:
    place = server.address.replace(server.name, "127.0.0.1")  # browsers know the name, and Python asks a name server
    request = urllib.request.Request(place + path, headers={"Host": f"{server.name}:{server.server_port}"} | headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def test_page_shows_nodes_and_leads_to_each(server: StatusServer):
    text = get(server, "")
    assert "21 leases" in text and 'href="node/n1"' in text and "0.0750 a stored episode" in text
    node = get(server, "node/n2")
    assert (
        "no &quot;driver&quot;" in node
        and "drained &lt;script&gt;" in node
        and "n20" not in node
        and "else" not in node
    )
    assert "2 plan, 5 render" in get(server, "node/n1") and "40, 360 per hour" in get(server, "node/n1")


def test_page_of_a_node_opens_its_own_status(server: StatusServer):
    text = get(server, "node/n1")
    assert "render&lt;er&gt;" in text and 'href="n1/status.json"' in text
    assert json.loads(get(server, "node/n1/status.json"))["workers"][0]["number"] == 7
    assert json.loads(get(server, "node/n2/status.json")) is None and "its cell" not in get(server, "node/n2")


def test_metrics_and_status_are_served(server: StatusServer):
    assert "nimbus_leases 21" in get(server, "metrics")
    assert json.loads(get(server, "status.json"))["cluster"]["nodes"][0]["name"] == "n1"


@pytest.mark.parametrize(("path", "host", "code"), [("node/n9", "localhost:1", 404), ("", "evil.example:80", 403)])
def test_unknown_pages_and_other_hosts_are_refused(server: StatusServer, path: str, host: str, code: int):
    with pytest.raises(urllib.error.HTTPError) as raised:
        get(server, path, Host=host)
    assert raised.value.code == code


def test_the_address_is_new_to_the_browser(server: StatusServer):
    """A page of another user, at the same port before, may have left a service worker, which sees all addresses."""
    with StatusServer(0, lambda: STATUS) as other:
        assert other.name != server.name and server.address.startswith(f"http://{server.name}:{server.server_port}/")
        assert server.name.endswith(".localhost")
        with pytest.raises(urllib.error.HTTPError) as raised:
            get(server, "", Host=f"{other.name}:{server.server_port}")
        assert raised.value.code == 403


def test_taken_port_is_one_line(server: StatusServer):
    with pytest.raises(InputError, match="--serve: cannot listen on port"):
        StatusServer(server.server_address[1], lambda: STATUS)


def test_page_of_another_origin_is_refused(server: StatusServer):
    with pytest.raises(urllib.error.HTTPError) as raised:
        get(server, "metrics", Origin="http://evil.example")
    assert raised.value.code == 403


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer "}, {"Authorization": "Bearer other"}])
def test_other_users_are_refused(server: StatusServer, headers: dict[str, str]):
    for path in ("", "metrics", "status.json", "node/n1"):
        request = urllib.request.Request(f"http://127.0.0.1:{server.server_address[1]}/{path}", headers=headers)
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, timeout=60)
        assert raised.value.code == 403


def test_programs_send_token_as_header(server: StatusServer):
    request = urllib.request.Request(f"http://127.0.0.1:{server.server_address[1]}/metrics")
    request.add_header("Authorization", f"Bearer {server.token}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert "nimbus_leases 21" in answer.read().decode()
