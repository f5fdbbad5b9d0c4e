"""Real cells with light work: the point robot drives over a yard, and faults of its components can be configured."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nimbus.datagen import registry
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import Fault
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cell.transport.spec import CellSpec, Resources
from nimbus.runner.monitor.status import Status, read_status
from tests.support.refusals import refusal

PIPELINES = Path(__file__).parent / "cell_pipelines"
T = TypeVar("T")

YARD = """\
............#.......
.######.....#..####.
.#....#.....#..#..#.
.#....#........#....
.####.#######..####.
....................
"""

MAIN = """
import sys
from nimbus.datagen.errors import InputError
from nimbus.runner.cell import run
from nimbus.runner.cell.transport.spec import CellSpec
run.show = lambda *_, **__: None  # what a run shows at its end takes as long as the run, and is tested elsewhere
try:
    sys.exit(run.run_spec(CellSpec.from_text(sys.argv[1]), serial=sys.argv[2:] == ["serial"]))
except InputError as error:
    sys.stderr.write(f"{error}\\n")
    sys.exit(error.exit_code)
except KeyboardInterrupt:
    sys.exit(130)
"""


def make_spec(
    folder: Path, *, pipeline: str = "drive", mishaps: dict[str, str] | None = None, **values: Any
) -> CellSpec:
    """Return the spec of a run of the point robot into a folder; the map and the log of events are beside it.

    Args:
        folder: Folder of the dataset.
        pipeline: ``drive`` (a planner and a renderer) or ``fused`` (one component for both).
        mishaps: Faults of the components; see ``cell_pipelines/driving.py``.
        values: Fields of the spec and of its resources.
    """
    folder.parent.mkdir(exist_ok=True)
    yard = folder.parent / "yard.txt"
    yard.write_text(YARD)
    known = Resources.__dataclass_fields__
    resources = {name: values.pop(name) for name in list(values) if name in known}
    path = Path(pipeline) if pipeline.endswith(".yaml") else PIPELINES / f"{pipeline}.yaml"
    events = folder.parent / "events.txt"
    events.with_suffix(".json").write_text(json.dumps(mishaps or {}))
    return CellSpec(
        folder=str(folder),
        pipeline=str(path),
        skills=(str(PIPELINES),),
        settings={"map_file": str(yard), "events": str(events)},
        resources=Resources(**{"workers": (1, 1), **resources}),
        **{"episodes": 8, **values},
    )


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    code: int
    out: str
    err: str


class Run:
    """A run in separate processes; the started process is the launcher.

    Args:
        spec: Specification of the run.
        serial: True to run in one process instead.
        prefix: Words before the command.
        until: An event to wait for.
    """

    def __init__(self, spec: CellSpec, *, serial: bool = False, prefix: tuple[str, ...] = (), until: str = "") -> None:
        self.spec, self.folder = spec, Path(spec.folder)
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
        words = [*prefix, sys.executable, "-c", MAIN, spec.to_text(), *(["serial"] if serial else [])]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True
        )
        if until:
            self.wait_for(until)

    def finish(self) -> dict[str, str]:
        """Wait for a successful end; return the hashes of the dataset."""
        self.end(0)
        return sound(self.spec)

    def end(self, code: int | None = None, *, patience: float = 120.0) -> Done:
        """Wait for the end, at which no process may be left; with an expected exit code, no file either."""
        try:
            out, err = self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"no end after {patience} s: {out}\n{err}\n{self._last_words()}") from None
        assert (
            not until(
                lambda: not self.processes(),
            )
            or not self.processes()
        ), self.processes()
        done = Done(self.process.returncode, out, err)
        if code is not None:
            assert done.code == code, f"exit code {done.code}\n{out}\n{err}"
            leaves_nothing(self.spec)
        return done

    def _last_words(self) -> str:
        logs = [path.read_text() for path in self.folder.glob("stage/*.log")]
        return "\n".join([*(f"{fault}" for fault in self.faults()), *logs])

    def status(self) -> Status | None:
        """Read its status file."""
        return read_status(self.folder)

    def events(self, text: str) -> list[tuple[str, int]]:
        """Return the messages of its components that begin with a text, each with its process."""
        return events(self.spec, text)

    def wait_for(self, text: str, *, count: int = 1) -> int:
        """Wait until its components have logged a message a number of times; return the last process."""
        until(lambda: len(self.events(text)) >= count or self.process.poll() is not None)
        found = self.events(text)
        assert len(found) >= count, self.end()
        return found[count - 1][1]

    def let_go(self) -> None:
        """End all waits of the mishap ``hold``."""
        Path(self.spec.settings["events"]).with_suffix(".go").touch()

    def processes(self) -> list[int]:
        """Return all processes of this cell except the launcher."""
        return tagged(self.spec)

    def supervisor(self) -> int:
        """Return the supervisor's process."""
        found = until(lambda: [pid for pid in self.processes() if parent(pid) == self.process.pid])
        assert found
        return found[0]

    def fork_server(self) -> int:
        """Return the fork server, the supervisor's oldest child."""
        supervisor = self.supervisor()
        found = until(lambda: [pid for pid in self.processes() if parent(pid) == supervisor])
        assert found
        return min(found)

    def kill(self) -> None:
        """Kill all of its processes by SIGKILL."""
        for pid in [self.process.pid, *self.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def faults(self) -> list[Fault]:
        """Return the faults in its ledger."""
        if not (self.folder / "ledger.sqlite").exists():
            return []
        with closing(Ledger(self.folder, read_only=True)) as ledger:
            return ledger.faults()


def finish(spec: CellSpec, *, serial: bool = False) -> dict[str, str]:
    """Run a spec to its end, which must be successful; return the hashes of its dataset."""
    return Run(spec, serial=serial).finish()


def finish_here(spec: CellSpec) -> dict[str, str]:
    """Run a spec to its end in this process, which starts no other; return the hashes of its dataset."""
    run_here(spec)
    return sound(spec)


def run_here(spec: CellSpec) -> None:
    """Run a spec to its end in this process, without a verification of its dataset."""
    from nimbus.runner.cell.run import run_serial

    with _forgotten_components():
        assert run_serial(spec) == spec.target
    leaves_nothing(spec)


def refused_here(spec: CellSpec) -> str:
    """Return the line with which a run in this process is refused."""
    from nimbus.runner.cell.run import run_serial

    with _forgotten_components():
        return refusal(run_serial, spec)


@contextlib.contextmanager
def _forgotten_components() -> Iterator[None]:
    """Unregister the components of a run at its end, because messages that other tests compare list all names."""
    try:
        yield
    finally:
        files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
        ours = {name for name, file in files.items() if file and Path(file).parent == PIPELINES}
        known = [(key, registry.lookup(*key)) for key in registry.registered()]
        registry.forget(key for key, component in known if getattr(component, "__module__", "") in ours)
        for name in ours:
            del sys.modules[name]


def leaves_nothing(spec: CellSpec) -> None:
    """Check that a run leaves no process and no file in ``stage/``."""
    assert until(lambda: not tagged(spec)), tagged(spec)
    assert list(Path(spec.folder, "stage").glob("*")) == []


def sound(spec: CellSpec) -> dict[str, str]:
    """Return the hashes of a dataset, which must pass verification."""
    assert verify(Path(spec.folder)).problems == ()
    return dataset_hashes(Path(spec.folder))


def events(spec: CellSpec, text: str) -> list[tuple[str, int]]:
    """Return the messages of components that begin with a text, each with its process."""
    path = Path(spec.settings["events"])
    lines = path.read_text().splitlines() if path.exists() else []
    said = (line.rpartition(" @") for line in lines)
    return [(what, int(pid)) for what, _, pid in said if f"{what} ".startswith(f"{text} ")]


def count(spec: CellSpec, text: str) -> Counter[str]:
    """Count the messages that begin with a text."""
    return Counter(what for what, _ in events(spec, text))


def tagged(spec: CellSpec) -> list[int]:
    """Return the running processes that started with this cell's tag in their environment."""
    wanted = os.fsencode(f"NIMBUS_CELL={spec.worker_environment['NIMBUS_CELL']}")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return sorted(found)


def parent(pid: int) -> int:
    """Return the parent of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def until(condition: Callable[[], T], *, patience: float = 45.0) -> T | None:
    """Wait until a condition is true; return its value."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.005)
    return None
