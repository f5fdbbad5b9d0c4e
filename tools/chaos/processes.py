"""Runs as separate processes: start, kill, and find their processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nimbus
from nimbus.runner.cell.transport.spec import CellSpec, Resources

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TINY = ROOT / "tests/support/tiny.yaml"
DEADLINE = 1.0
"""Deadline of the light pipeline's phases without a heartbeat [s]; the total deadline of a phase is :data:`TOTAL`."""
_CLEARING = 20.0
"""Time after which processes that survive SIGKILL are ignored [s]."""
TOTAL = 4 * DEADLINE
LIMITS = {phase: (DEADLINE, TOTAL) for phase in ("load", "randomize", "plan", "render")}


def light(folder: Path, *, episodes: int, variants: int = 1, seed: int = 0, **resources: Any) -> CellSpec:
    """Return the specification of a run of the light pipeline."""
    settings = {name: resources.pop(name) for name in ("plan_seconds", "render_seconds", "fails") if name in resources}
    resources = {"deadlines": LIMITS, "workers": (1, 2), "slot_bytes": 1 << 16} | resources
    return CellSpec(
        folder=str(folder),
        pipeline=str(HERE / "light.yaml"),
        skills=(str(HERE / "components"),),
        settings={"plan_seconds": 0.01, "render_seconds": 0.01} | settings,
        seed=seed,
        episodes=episodes,
        variants=variants,
        resources=Resources(**resources),
    )


def physics(folder: Path, *, episodes: int, seed: int = 0, **resources: Any) -> CellSpec:
    """Return the specification of a run with real physics and rendering: one can, two small cameras."""
    return CellSpec(folder=str(folder), task=str(TINY), episodes=episodes, seed=seed, resources=Resources(**resources))


@dataclass(kw_only=True)
class Run:
    """A run in a separate process, which is the run's launcher."""

    spec: CellSpec
    process: subprocess.Popen[str]
    started: float
    """Start time [s since 1970]."""

    @property
    def folder(self) -> Path:
        """Folder of the dataset."""
        return Path(self.spec.folder)

    @property
    def is_over(self) -> bool:
        """True if the launcher has ended."""
        return self.process.poll() is not None

    def status(self) -> dict[str, Any]:
        """Return the run's status; empty as long as this run has not written any."""
        status = read_json(self.folder / "status.json")
        return status if status and status["started"] >= self.started else {}

    def wait_for(self, condition: Callable[[dict[str, Any]], Any], *, patience: float = 120.0) -> dict[str, Any]:
        """Wait until the status satisfies a condition or the run is over."""
        deadline = time.monotonic() + patience
        while not condition(status := self.status()) and not self.is_over:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.folder}: {status}")
            time.sleep(0.02)
        return status

    def end(self, *, patience: float = 600.0) -> tuple[dict[str, Any], str]:
        """Wait for the end; return the run's outcome and its standard error."""
        try:
            out, err = self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            kill_all(self)
            raise
        lines = out.splitlines()
        return (json.loads(lines[-1]) if lines else {"code": self.process.returncode, "state": "killed"}), err

    def processes(self) -> list[int]:
        """Return the processes with this run's tag, without the launcher."""
        return tagged(self.folder)


def start(
    spec: CellSpec,
    *words: str,
    environment: dict[str, str] | None = None,
) -> Run:
    """Start a run."""
    path = os.pathsep.join((str(Path(nimbus.__file__).parents[1]), str(ROOT), os.environ.get("PYTHONPATH", "")))
    file = Path(f"{spec.folder}.spec.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(spec.to_text())
    begin = time.time()
    process = subprocess.Popen(
        [sys.executable, "-P", str(HERE / "drive.py"), str(file), *words],
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Run(spec=spec, process=process, started=begin)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file; return an empty mapping if it does not exist or is not a regular file."""
    with suppress(OSError, ValueError):
        if path.is_file():
            return json.loads(path.read_text())
    return {}


def tagged(folder: Path) -> list[int]:
    """Return the processes of a dataset's folder, found by their environment."""
    wanted = os.fsencode(f"NIMBUS_CELL={os.path.realpath(folder)}")
    return [pid for pid, content in _contents("environ") if wanted in content.split(b"\0")]


def orphans() -> list[int]:
    """Find processes that components left behind. They may have no environment, so their command lines are searched."""
    return [pid for pid, content in _contents("cmdline") if content.split(b"\0")[:2] == [b"sleep", b"86399"]]


def fork_server(run: Run) -> int:
    """Return the process that forks a run's workers, found by its log; 0 if there is none."""
    for pid in run.processes():
        with suppress(OSError):
            if "nimbus-zygote-log" in os.readlink(f"/proc/{pid}/fd/1") and parent(pid) == run.status().get("pid"):
                return pid
    return 0


def kill(pid: int, number: int = signal.SIGKILL) -> bool:
    """Send a signal; return False if the process has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def kill_all(run: Run) -> None:
    """Kill all processes of a run at once, the launcher first."""
    victims = [run.process.pid, *run.processes()]
    for pid in victims:
        kill(pid)


def clear(folder: Path) -> None:
    """Kill every run below a folder, launchers first, until no process is left."""
    below = os.fsencode(f"{os.path.realpath(folder)}/")
    deadline = time.monotonic() + _CLEARING
    while time.monotonic() < deadline:
        launchers = [pid for pid, words in _contents("cmdline") if b"drive.py" in words and below in words]
        rest = [pid for pid, content in _contents("environ") if b"NIMBUS_CELL=" + below in content]
        left = [pid for pid in (*launchers, *rest, *orphans()) if pid != os.getpid() and _runs(pid)]
        if not left:
            return
        for pid in left:
            kill(pid)
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Return True if a process exists and is not a zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _contents(name: str) -> Iterator[tuple[int, bytes]]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                yield int(entry.name), Path(entry.path, name).read_bytes()


def parent(pid: int) -> int:
    """Return the parent of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
