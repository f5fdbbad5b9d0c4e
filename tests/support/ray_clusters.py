"""Real Ray clusters of this machine: a head without CPUs and raylets, in folders of a test and ended by process id."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.job import HeadEnd
from nimbus.runner.cluster.on_ray.run import run_on_ray
from nimbus.runner.monitor.status import read_status
from tests.support import ROOT
from tests.support.clusters import job_of

MEMORY = 80_000_000
"""Size of the object store of each raylet, which stays empty [bytes]."""


PATIENCE = {"RAY_agent_register_timeout_ms": "180000", "RAY_raylet_start_wait_time_s": "180"}
PATIENCE |= {"RAY_py_gcs_connect_timeout_s": "120", "RAY_gcs_server_port_wait_time_s": "120"}
PATIENCE |= {"RAY_health_check_timeout_ms": "60000", "RAY_worker_register_timeout_seconds": "240"}
PATIENCE |= {"RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "240"}
"""Settings of Ray for a busy machine, on which its agents start more slowly than the default limits allow."""
_AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", "dashboard_agent_listen_port")


class RayNodes:
    """A head and raylets.

    Args:
        folder: Folder for files of Ray.
        nodes: Number of raylets with one CPU each.
    """

    def __init__(self, folder: Path, *, nodes: int = 2) -> None:
        os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "exts" / "nimbus.datagen")))
        os.environ["NIMBUS_SPOOL"] = str(folder / "spool")
        os.environ.update(PATIENCE)
        # Ray's clients replace loopback by the host's address, so a head on loopback would not be found.
        os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)})
        # Ray writes the address of the last cluster to the folder "ray" there, which it does not create itself.
        os.environ["RAY_TMPDIR"] = str(folder)
        (folder / "ray").mkdir()
        self._is_over = threading.Event()
        threading.Thread(target=_write_ports, args=(folder, self._is_over), daemon=True).start()
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

        head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": str(folder / "r")} | _settings()
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self._nodes: list[Any] = []
        for _ in range(nodes):
            self.add()
        os.environ["RAY_ADDRESS"] = self._cluster.address

    def add(self) -> None:
        """Start another raylet, from the main thread, because Ray sets signal handlers."""
        node = self._cluster.add_node(num_cpus=1, **_settings())
        self._nodes.append(node)

    def kill_raylet(self) -> None:
        """Kill a raylet."""
        self._kill(self._nodes.pop(0), "raylet")

    def restart_gcs(self) -> None:
        """Kill Ray's head process, and start it again."""
        head = self._cluster.head_node
        head.kill_gcs_server(check_alive=False)
        head.start_gcs_server()

    def stop(self) -> None:
        """End all processes."""
        os.environ.pop("RAY_ADDRESS", None)
        self._is_over.set()
        self._cluster.shutdown()

    @staticmethod
    def _kill(node: Any, kind: str) -> None:
        process = node.all_processes[kind][0].process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def actor_pids(kind: str) -> list[int]:
    """Return the processes of Ray's actors of a class, found by their names."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes()
            if words.startswith(f"ray::{kind}".encode()) and os.stat(place).st_uid == os.getuid():
                found.append(int(place.name))
    return sorted(found)


class RayRun:
    """A run on a cluster, and actions at numbers of settled episodes.

    Args:
        spec: The run.
    """

    def __init__(self, spec: CellSpec) -> None:
        self.spec, self.folder = spec, Path(spec.folder)
        self._actions: list[tuple[int, Callable[[], None]]] = []
        self.failures: list[BaseException] = []

    def at(self, settled: int, action: Callable[[], None]) -> RayRun:
        """Call a function once a number of episodes are settled."""
        self._actions.append((settled, action))
        return self

    def run(self) -> HeadEnd:
        """Run to the end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over,), daemon=True)
        watcher.start()
        try:
            return run_on_ray(job_of(self.spec), ClusterAddress(kind="auto"), slots=1)
        finally:
            over.set()
            watcher.join(30)
            assert not self.failures, self.failures

    def hashes(self) -> dict[str, str]:
        """Return the hashes of the dataset, which must pass verification."""
        assert verify(self.folder).problems == ()
        return dataset_hashes(self.folder)

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(0.1):
            with suppress(InputError):
                status = read_status(self.folder)
                settled = status.settled if status else -1
                for due in [due for due in self._actions if settled >= due[0]]:
                    self._actions.remove(due)
                    try:
                        due[1]()
                    except BaseException as error:
                        self.failures.append(error)


def kill_actors(kind: str) -> None:
    """Kill the first process of an actor class."""
    os.kill(actor_pids(kind)[0], signal.SIGKILL)


def _write_ports(folder: Path, is_over: threading.Event) -> None:
    """Write the ports for the agents: a raylet waits 15 s for them, which is too short on a busy machine."""
    flags = {
        "metrics_agent_port": "--grpc-port=",
        "metrics_export_port": "--metrics-export-port=",
        "dashboard_agent_listen_port": "--listen-port=",
        "runtime_env_agent_port": "--runtime-env-agent-port=",
    }
    written: set[str] = set()
    while not is_over.wait(0.2):
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                node = re.search(r"--node-id=([0-9a-f]+)", line)
                session = re.search(r"--session-dir=(\S+)", line)
                if "/raylet/raylet " not in line or str(folder) not in line or not node or not session:
                    continue
                if node[1] in written:
                    continue
                written.add(node[1])
                for name, flag in flags.items():
                    port = re.search(rf"{flag}([0-9]+)", line)
                    file = Path(session[1]) / f"{name}_{node[1]}"
                    if port and not file.exists():
                        file.write_text(port[1])


def _settings() -> dict[str, Any]:
    """Return the settings of a raylet; with given ports, it does not wait for its agents."""
    ports = {name: _free_port() for name in _AGENT_PORTS}
    return {"object_store_memory": MEMORY, **ports}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
