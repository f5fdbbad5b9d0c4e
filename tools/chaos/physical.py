"""Scenario with real physics and rendering: signals hit workers in the middle of a phase."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import Any

from tools.chaos import checker, processes
from tools.chaos.lab import FINISHED, Lab, Result
from tools.chaos.match import match
from tools.chaos.pace import Pace

SIGNALS = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGSTOP")
_NAMES = {"SIGKILL": "sigkill", "SIGSEGV": "sigsegv", "SIGABRT": "sigabrt", "SIGSTOP": "hang"}
_PHASES = ("plan", "render", "store")
_GAP = 10.0
"""Default deadline without a heartbeat [s], by which SIGSTOP is detected."""
_NOTED = 2.0
"""Time until a fault is stored in the ledger [s]; if the supervisor is killed earlier, the row is lost."""
_MOST = 8
"""Largest number of strikes at one episode; twice as many in a row would rightly quarantine it."""
_IN_A_ROW = 12
"""Largest number of strikes without a result in between; after 20, a run rightly stops."""
_FRESH = 0.7
"""Age above which a status is too old to know a worker's current phase [s]."""
_SLICE = 20
"""Number of episodes added to a run that ended before all faults were injected."""


def physics(lab: Lab) -> Result:
    """Send signals to working planners, renderers and writers, and sometimes to other processes or to all."""
    wanted = 3 if lab.short else max(20, lab.faults // 5)
    episodes = 2 if lab.short else 40
    random = lab.random("physics")
    pace = Pace(lab.random("physics", "pace"))
    sent: list[dict[str, Any]] = []
    others: Counter[str] = Counter()
    with lab.scenario("physics") as result:
        folder = lab.folder / "physics"
        hits = 0
        last = since = 0
        while True:
            run = processes.start(processes.physics(folder, episodes=episodes, workers=(1, 1)))
            while not run.is_over and hits < wanted:
                time.sleep(pace.interval())
                pace.measure(status := run.status())
                if (results := status.get("attempts", last)) != last:
                    last, since = results, len(sent)
                if len(sent) - since >= _IN_A_ROW:
                    continue
                if others.total() < wanted // 25 and random.random() < 0.05:
                    time.sleep(_GAP + _NOTED)
                    others[_strike_other(run, random)] += 1
                else:
                    sent += _strike_worker(run, random, before=sent)
                hits = _hits(folder)
            ended, error = run.end()
            # The last status has the time of the end; this loop may sleep for seconds.
            end = run.status().get("updated", time.time())
            for fault in sent:
                fault["may_miss"] = fault.get("may_miss") or fault["time"] > end - _NOTED
            result.expect(ended["state"] == "done" or ended["state"] == "killed", f"ended {ended} {error}")
            if ended["state"] == "killed":
                continue
            if hits >= wanted or ended["state"] not in FINISHED:
                break
            episodes += _SLICE
        told = [row for row in checker.faults(folder) if row["kind"] != "zygote"]
        result.take(match(sent, told, names=_NAMES))
        result.in_mid_phase = hits
        for name, count in others.items():
            for _ in range(count):
                result.count(name)
        result.episodes = episodes
        result.expect(hits >= wanted, f"{hits} faults in mid-phase, {wanted} were planned")
        result.findings.add(checker.check(folder, lab.physics_truth(episodes), episodes=episodes))
    return result


def _strike_worker(run: processes.Run, random: Any, *, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send a signal to a worker that is in the middle of a phase; return the injected fault, if any.

    Workers that were already struck are spared, because a stopped process handles no other signal. So are workers that
    exit, or whose supervisor has died: they remain in the process table for seconds.
    """
    status = run.status()
    spared, strikes = {0, *(fault["pid"] for fault in before)}, Counter(fault["at"] for fault in before)
    workers = [worker for worker in status.get("workers", ()) if worker["pid"] not in spared and not worker["retiring"]]
    busy = [worker for worker in workers if worker["phase"] in _PHASES and strikes[worker["index"]] < _MOST]
    if not busy or time.time() - status["updated"] > _FRESH:
        return []
    worker = random.choice(busy)
    name = random.choices(SIGNALS, weights=(8, 6, 6, 1))[0]
    told = {"kind": name, "idx": -1, "pid": worker["pid"], "at": worker["index"], "time": time.time()}
    is_there = processes.parent(worker["pid"]) == status["pid"]
    return [told] if is_there and processes.kill(worker["pid"], getattr(signal, name)) else []


def _strike_other(run: processes.Run, random: Any) -> str:
    """Kill a process that is not a worker, or all processes."""
    name = random.choice(("supervisor", "zygote", "all"))
    supervisor = int(run.status().get("pid", 0))
    if name == "all" or not supervisor:
        processes.kill_all(run)
        return "all_sigkill"
    fork_server = processes.fork_server(run)
    processes.kill(supervisor if name == "supervisor" or not fork_server else fork_server)
    return f"{name}_sigkill"


def _hits(folder: Any) -> int:
    """Return the number of faults in the ledger that occurred in mid-phase."""
    if not (folder / "ledger.sqlite").exists():
        return 0
    return sum(row["phase"] in _PHASES and row["idx"] >= 0 for row in checker.faults(folder))
