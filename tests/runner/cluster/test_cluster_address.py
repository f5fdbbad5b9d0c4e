"""Addresses of clusters, and the token rule."""

from __future__ import annotations

import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.cli import main
from nimbus.runner.cluster.cluster_address import ClusterAddress, parse_cluster
from nimbus.runner.cluster.on_ray import reach
from nimbus.runner.cluster.on_ray.own_head import find_head
from nimbus.runner.cluster.on_ray.reach import (
    check_token,
    is_loopback,
    own_node_folder,
    own_root,
    refusal,
    warn_of_plain_token,
)
from nimbus.runner.cluster.on_ray.submit import submit_to_ray
from tests.support.scripted_server import Step, send, serving


@pytest.fixture(autouse=True)
def no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path for a token in a home folder without one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / ".ray" / "auth_token"


@pytest.mark.parametrize(
    "text", ["local:4", "auto", "ray://head.example:10001", "http://10.0.0.1:8265", "ray://[::1]:1"]
)
def test_addresses_are_read(text: str):
    assert str(parse_cluster(text)) == text


@pytest.mark.parametrize(
    "text", ["", "local:0", "local:257", "ray://head", "http://h:99999", "https://h:1", "ray://u@h:1"]
)
def test_no_address_is_refused(text: str):
    with pytest.raises(ValueError, match="expected local"):
        parse_cluster(text)


def test_cluster_off_loopback_needs_a_token(no_token: Path):
    with pytest.raises(InputError, match="there is no token"):
        check_token("192.0.2.7", where="--cluster auto")
    check_token("127.0.0.1", where="--cluster auto")
    no_token.parent.mkdir()
    no_token.write_text("word\n")
    check_token("192.0.2.7", where="--cluster auto")
    assert reach.read_token() == "word"


@pytest.mark.parametrize(("text", "tls"), [("http://192.0.2.7:8265", "1"), ("ray://192.0.2.7:10001", "")])
def test_unencrypted_token_is_told(
    text: str, tls: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("RAY_USE_TLS", tls)
    warn_of_plain_token(parse_cluster(text))
    told = capsys.readouterr().err
    assert "the token is sent unencrypted to 192.0.2.7" in told and "secret" not in told
    monkeypatch.setenv("RAY_USE_TLS", "1")
    for quiet in ("ray://192.0.2.7:10001", "http://127.0.0.1:8265", "auto"):
        warn_of_plain_token(parse_cluster(quiet))
    assert not capsys.readouterr().err


def test_loopback_is_known_by_address_and_name():
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("192.0.2.7") and not is_loopback("0.0.0.0")


def test_folder_of_nodes_is_no_link_of_others(tmp_path: Path):
    """All users can write to its parent folder."""
    assert own_root(tmp_path / "own") == own_root(tmp_path / "own") == tmp_path / "own"
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "own")
    assert own_root(tmp_path / "link").name.startswith("link-")


def test_restarted_relay_finds_what_it_left(tmp_path: Path):
    """A restarted relay once removed its own folder, with undelivered episodes, as stale."""
    own, stale = tmp_path / "run" / "n1", tmp_path / "old" / "n9"
    for folder in (own, stale):
        folder.mkdir(parents=True)
        (folder / "episode").touch()
        os.utime(folder, (0, 0))
    folder = own_node_folder(tmp_path, "run", "n1")
    assert (own / "episode").exists() and not stale.exists()
    folder.remove()


def test_missing_head_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{probe.getsockname()[1]}"
    words = ["run", "--task", "sort_trash", "--cluster", place, "--out", str(tmp_path / "x")]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "no head of a Ray cluster answers" in told and told.count("\n") == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("RPC error: UNAUTHENTICATED: Invalid or missing authentication token", "refuses this token"),
        (
            "Version mismatch: The cluster was started with:\n    Ray: 2.50.0\n    Python: 3.12.1",
            "Ray: 2.50.0 Python: 3.12.1",
        ),
        ("ray client: AttributeError: 'JobConfig' object has no attribute '_x'", "has another version of Ray"),
        ("Failed to connect to GCS", "no Ray cluster answers"),
        ("Starting Ray client server failed. See ray_client_server_23000.err", "did not start its client server"),
    ],
)
def test_errors_of_ray_are_one_line(text: str, line: str):
    found = str(refusal(RuntimeError(text), where="--cluster auto"))
    assert line in found and "\n" not in found


class Dashboard(BaseHTTPRequestHandler):
    """The part of Ray's Jobs interface that a run uses."""

    def do_POST(self) -> None:
        if self.headers.get("Authorization") != "Bearer word":
            self.send_error(401)
            return
        type(self).sent = self.rfile.read(int(self.headers["Content-Length"]))  # pyright: ignore[reportAttributeAccessIssue]
        self._answer('{"submission_id": "raysubmit_1"}')

    def do_GET(self) -> None:
        log = '{"logs": "4 episodes stored\\n"}'
        self._answer(log if self.path.endswith("/logs") else '{"status": "FAILED", "driver_exit_code": 1}')

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def dashboard():  # noqa: ANN201
    server = HTTPServer(("127.0.0.1", 0), Dashboard)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield ClusterAddress(kind="http", host="127.0.0.1", port=server.server_port)
    server.shutdown()
    server.server_close()


def test_job_has_its_output_and_exit_code(
    dashboard: ClusterAddress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "word")
    assert submit_to_ray(dashboard, ["run", "--cluster", str(dashboard)]) == 1
    assert capsys.readouterr().out == "4 episodes stored\n"
    assert b"nimbus run --cluster auto" in Dashboard.sent  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("words", [["--cluster", "http://[::1]:08265"], ["--cluster=http://h:8265"]], ids=str)
def test_job_on_the_head_submits_nothing_itself(
    dashboard: ClusterAddress, monkeypatch: pytest.MonkeyPatch, words: list[str]
):
    """If the job submitted a job for one form of the address, it would submit itself repeatedly."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "word")
    submit_to_ray(dashboard, ["run", *words, "--out", "x"])
    sent = Dashboard.sent.decode()  # pyright: ignore[reportAttributeAccessIssue]
    assert "http" not in sent and "auto --out x" in sent


def test_wrong_token_is_one_line(dashboard: ClusterAddress, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match="requires a token"):
        submit_to_ray(dashboard, ["run"])
    monkeypatch.setenv("RAY_AUTH_TOKEN", "other")
    with pytest.raises(InputError, match="refuses this token"):
        submit_to_ray(dashboard, ["run"])


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (send("{}"), "the answer has no 'submission_id'"),
        (send("[" * 100_000), "does not answer: nested too deeply"),
        (send(b"\xff"), "does not answer"),
        (send("", 302, {"Location": "file:///etc/passwd"}), "answers 302"),
    ],
)
def test_dashboard_that_is_none_is_one_line(reply: Step, line: str, monkeypatch: pytest.MonkeyPatch):
    """The token is only sent to the given address."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "word")
    with serving([reply]) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        with pytest.raises(InputError, match=line):
            submit_to_ray(ClusterAddress(kind="http", host="127.0.0.1", port=port), ["run"])


def add_process(folder: Path, *words: str, uids: tuple[int, ...]) -> None:
    """Write a process as the kernel shows it."""
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
    (folder / "status").write_text(f"Name:\traylet\nUid:\t{' '.join(map(str, uids))}\n")


def test_head_of_other_users_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ray connects to the head in the command line of any process, with the token, and loads its pickles."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    me, other = os.getuid(), os.getuid() + 1
    add_process(tmp_path / "7", "raylet --gcs-address=192.0.2.7:6379", "60", uids=(other,) * 4)
    add_process(tmp_path / "8", "raylet", "--gcs-address=192.0.2.8:6379", uids=(other, 0, 0, 0))  # setuid
    add_process(tmp_path / "9", "grep", "--gcs-address=192.0.2.9:6379", uids=(me,) * 4)
    with pytest.raises(InputError, match=r"no Ray cluster of this user .* RAY_ADDRESS"):
        find_head(where="--cluster auto", processes=tmp_path)
    for number, uid in (("10", me), ("11", 0)):
        add_process(tmp_path / number, "/ray/raylet", "--x", "python a.py --gcs-address=10.0.0.1:6379", uids=(uid,) * 4)
    assert find_head(where="--cluster auto", processes=tmp_path) == "10.0.0.1:6379"
    add_process(tmp_path / "12", "/ray/raylet", "--gcs-address=10.0.0.2:6379", uids=(me,) * 4)
    with pytest.raises(InputError, match="has 2 Ray clusters"):
        find_head(where="--cluster auto", processes=tmp_path)
    for given, found in (("10.0.0.3:6379", "10.0.0.3:6379"), ("ray://localhost:1", "ray://127.0.0.1:1"), ("a", "a")):
        monkeypatch.setenv("RAY_ADDRESS", given)
        assert find_head(where="--cluster auto", processes=tmp_path) == found


def test_token_is_not_taken_from_the_current_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "token")
    with pytest.raises(InputError, match="is a relative path"):
        reach.read_token()
