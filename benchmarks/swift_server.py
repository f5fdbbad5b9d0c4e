"""S3 server for tests and benchmarks: OpenStack Swift with s3api, in a separate environment.

``python -m benchmarks.swift_server install`` makes the environment, ``… run`` starts a server and prints the variables
to export. Other users of the machine can connect to its ports. The proxy asks for a key that is new for each server;
the other processes ask for nothing, but each of their requests must name the disk, whose name is as secret.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PACKAGES = ("swift==2.38.0",)
HOME = Path(os.environ.get("NIMBUS_SWIFT", Path(__file__).parents[1] / "build" / "swift-env"))
USER = "test:tester"
_KINDS = ("account", "container", "object")
_RINGS = """
import json, sys
from swift.common.ring import RingBuilder
device, ports = json.load(sys.stdin)
for kind, port in ports.items():
    builder = RingBuilder(4, 1, 0)
    place = {"ip": "127.0.0.1", "port": port, "replication_ip": "127.0.0.1", "replication_port": port}
    builder.add_dev({"region": 1, "zone": 1, "device": device, "weight": 1.0, "meta": "", **place})
    builder.rebalance()
    builder.get_ring().save(f"{kind}.ring.gz")
"""
"""Script that writes the rings. It reads the name of the disk from a pipe, because all users see command lines."""
_UP = 60.0
"""Longest time until the proxy answers [s]."""


def install() -> None:
    """Make the environment unless it exists."""
    if (HOME / "bin" / "swift-proxy-server").exists():
        return
    sys.stderr.write(f"installing Swift into {HOME}, about a minute\n")
    subprocess.run([sys.executable, "-P", "-m", "venv", str(HOME)], check=True)
    subprocess.run([str(HOME / "bin" / "pip"), "install", "--quiet", *PACKAGES], check=True, cwd=HOME)


class SwiftServer:
    """Four processes on loopback, with one disk below a folder; it can be killed and started again.

    Args:
        folder: Folder of the server; objects stay in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.ports = {kind: _free_port() for kind in (*_KINDS, "proxy")}
        self._key, self._device = secrets.token_urlsafe(24), secrets.token_hex(24)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / "devices" / self._device).mkdir(parents=True)
        self._write()

    @property
    def endpoint(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.ports['proxy']}"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for clients."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": self._key,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def start(self) -> None:
        """Start all processes, and wait until all of them listen and the proxy answers."""
        for kind in (*_KINDS, "proxy"):
            with (self.folder / f"{kind}.log").open("ab") as log:
                command = [str(HOME / "bin" / f"swift-{kind}-server"), str(self.folder / f"{kind}.conf"), "-v"]
                self._processes.append(
                    subprocess.Popen(
                        command,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        cwd=self.folder,
                        env=_environment(),
                    )
                )
        deadline = time.monotonic() + _UP
        while time.monotonic() < deadline:
            try:
                for kind in _KINDS:  # a busy machine starts them after the proxy, which then answers 503
                    socket.create_connection(("127.0.0.1", self.ports[kind]), timeout=1).close()
                with urllib.request.urlopen(f"{self.endpoint}/healthcheck", timeout=1):
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(f"no answer within {_UP:.0f} s; see {self.folder}")

    def kill(self) -> None:
        """Kill all processes."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._processes.clear()

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        import boto3

        keys = {"aws_access_key_id": USER, "aws_secret_access_key": self._key, "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=self.endpoint, **keys).create_bucket(Bucket=name)

    def _write(self) -> None:
        """Write rings and settings."""
        given = json.dumps([self._device, {kind: self.ports[kind] for kind in _KINDS}])
        command = [str(HOME / "bin" / "python"), "-P", "-c", _RINGS]
        subprocess.run(command, check=True, input=given, text=True, cwd=self.folder, env=_environment())
        common = f"""[DEFAULT]
swift_dir = {self.folder}
devices = {self.folder / "devices"}
mount_check = false
bind_ip = 127.0.0.1
workers = 0
user = {getpass.getuser()}
fallocate_reserve = 0
"""
        swift = "[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n"
        self._write_private("swift.conf", f"{swift}[storage-policy:0]\nname = default\ndefault = yes\n")
        for kind in _KINDS:
            tail = f"[pipeline:main]\npipeline = {kind}-server\n[app:{kind}-server]\nuse = egg:swift#{kind}\n"
            self._write_private(f"{kind}.conf", f"{common}bind_port = {self.ports[kind]}\n{tail}")
        # Without "cache": any user can serve memcached at its port, and tempauth would take forged tokens from there.
        stages = "catch_errors gatekeeper healthcheck listing_formats bulk s3api tempauth slo dlo proxy-server"
        filters = {name: f"[filter:{name}]\nuse = egg:swift#{name}\n" for name in stages.split()[:-1]}
        filters["s3api"] += "location = us-east-1\n"
        filters["tempauth"] += f"user_test_tester = {self._key} .admin\n"
        app = "[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n"
        text = f"{common}bind_port = {self.ports['proxy']}\n[pipeline:main]\npipeline = {stages}\n{app}"
        self._write_private("proxy.conf", text + "".join(filters.values()))

    def _write_private(self, name: str, text: str) -> None:
        """Write a file that only this user may read."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)


def _environment() -> dict[str, str]:
    """Environment without the warnings of Swift's libraries about themselves."""
    return os.environ | {"PYTHONWARNINGS": "ignore"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main() -> int:
    """Make the environment, or run a server until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("install", "run"))
    parser.add_argument("--bucket", default="nimbus")
    given = parser.parse_args()
    install()
    if given.action == "install":
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background processes ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="nimbus-swift-"))
    server = SwiftServer(folder)
    try:
        server.start()
        server.make_bucket(given.bucket)
        lines = [f"export {name}={value}" for name, value in server.environment.items()]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
