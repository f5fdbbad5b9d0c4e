"""The S3 server of the benchmarks asks for secrets that no other user of the machine knows."""

from __future__ import annotations

import http.client
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import swift_server
from benchmarks.swift_server import SwiftServer
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore


def test_secrets_are_new_and_in_private_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The key was a constant of the source; the name of the disk is that of each request to the other processes."""
    commands: list[list[str]] = []

    def run(line: list[str], **_: Any) -> None:
        commands.append(line)

    monkeypatch.setattr(subprocess, "run", run)
    keys, disks = set[str](), set[str]()
    for name in ("one", "two"):
        server = SwiftServer(tmp_path / name)
        key, (disk,) = server.environment["AWS_SECRET_ACCESS_KEY"], (tmp_path / name / "devices").iterdir()
        keys.add(key)
        disks.add(disk.name)
        assert f"user_test_tester = {key} .admin" in (tmp_path / name / "proxy.conf").read_text()
        assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / name).glob("*.conf")} == {0o600}
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700
        assert "cache" not in (tmp_path / name / "proxy.conf").read_text(), "another user can serve memcached"
        shown = str([commands, [path.read_text() for path in (tmp_path / name).glob("*.conf")]])
        assert key not in str(commands) and disk.name not in shown, "all users see command lines"
    assert len(keys) == len(disks) == 2 and all(len(secret) >= 32 for secret in keys | disks)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SwiftServer]:
    if not (swift_server.HOME / "bin" / "swift-proxy-server").exists():
        pytest.skip("Swift is not installed: python -m benchmarks.swift_server install")
    server = SwiftServer(tmp_path / "swift")
    try:
        server.start()
        server.make_bucket("demos")
        yield server
    finally:
        server.kill()


@pytest.mark.slow
def test_others_are_refused_by_all_processes(server: SwiftServer, monkeypatch: pytest.MonkeyPatch):
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    address = parse_address("s3://demos/data")
    ObjectStore(address).create("dataset.json", b"{}")
    assert ObjectStore(address).read("dataset.json") == b"{}"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with pytest.raises(InputError, match="denies access"):
        ObjectStore(address).read("dataset.json")
    for kind in ("account", "container", "object"):
        for disk in ("sda1", ".", "..", "%2e", "*", ""):
            for method in ("GET", "PUT", "DELETE", "POST"):
                client = http.client.HTTPConnection("127.0.0.1", server.ports[kind], timeout=30)
                client.request(method, f"/{disk}/0/AUTH_test/demos/data", headers={"X-Timestamp": "1900000000.00000"})
                assert client.getresponse().status >= 400, (kind, disk, method)
                client.close()
    assert [path.name for path in (server.folder / "devices").iterdir()] == [server._device]
