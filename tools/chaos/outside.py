"""Scenarios with signals from outside, sent to supervisors at every step of a commit, and to all processes at once."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable

from tools.chaos import checker, processes
from tools.chaos.lab import FINISHED, Lab, Result

FAILPOINTS = ("before_intent", "after_intent", "after_link", "after_directory_sync", "after_done", "after_unlink")
_LIVES = 400
_FORGIVEN = 5.0
"""Time for which a supervisor may be stopped [s]; after a longer stop the launcher replaces it."""
_REPLACED = 15.0
"""Time within which a hung supervisor must be replaced [s]."""
_GONE = 2.0
"""Time within which all processes of a cell must end after the end of their launcher [s]."""


def failpoints(lab: Lab) -> Result:
    """Kill supervisors with SIGKILL at each step of a commit, on the first or second pass."""
    each = 1 if lab.short else max(3, lab.faults // 50)
    episodes = min(lab.episodes, 90 * each)
    random = lab.random("failpoints")
    doom = [f"{name}:{random.randint(1, 2)}" for name in FAILPOINTS * each]
    random.shuffle(doom)
    with lab.scenario("failpoints", episodes=episodes) as result:
        file = lab.folder / "doom.txt"
        file.write_text("\n".join(doom))
        spec = processes.light(lab.folder / "failpoints", episodes=episodes)
        deaths: Counter[str] = Counter()
        ended = {}
        for _ in range(_LIVES):
            ended, error = processes.start(spec, "--doom", str(file)).end()
            deaths.update(line.split()[-1].split(":")[0] for line in error.splitlines() if line.startswith("died at "))
            if ended["state"] in FINISHED:
                break
            result.expect(ended["code"] == 1 and "died 5 times" in ended["line"], f"ended {ended} {error}")
        result.expect(ended.get("state") in FINISHED, f"ended {ended}")
        for name in FAILPOINTS:
            for _ in range(deaths[name]):
                result.count(f"supervisor_{name}")
            result.expect(deaths[name] >= 0.8 * each, f"{deaths[name]} deaths at {name}, {each} were planned")
        result.findings.add(checker.check(lab.folder / "failpoints", lab.truth, episodes=episodes))
    return result


def everything(lab: Lab) -> Result:
    """Kill the launcher, the supervisor, the fork server or all processes at random times until the run is done."""
    kills = 4 if lab.short else max(8, lab.faults // 25)
    episodes, variants = min(lab.episodes, 30 * kills), 2
    random = lab.random("everything")
    victims = [name for name in _VICTIMS for _ in range(-(-kills // len(_VICTIMS)))]
    random.shuffle(victims)
    with lab.scenario("everything", episodes=episodes * variants) as result:
        spec = processes.light(lab.folder / "everything", episodes=episodes, variants=variants)
        run = processes.start(spec)
        while victims:
            goal = random.randint(1, 20) if random.random() < 0.8 else 0
            status = run.wait_for(lambda now, goal=goal: now.get("state") == "running" and now["stored"] >= goal)
            time.sleep(random.uniform(0.0, 0.3))
            if run.is_over:
                break
            name, pid = victims.pop(), status.get("pid")
            begin = time.monotonic()
            _VICTIMS[name](run)
            if name in ("supervisor", "zygote"):
                if name == "supervisor":
                    run.wait_for(lambda now, dead=pid: now.get("pid", dead) != dead)
                result.count(f"{name}_sigkill", seconds=None if name == "zygote" else time.monotonic() - begin)
                continue
            run.process.communicate()
            while (left := run.processes()) and time.monotonic() - begin < _GONE:
                time.sleep(0.01)
            result.expect(not left, f"{len(left)} processes live {_GONE} s after the {name} was killed")
            result.count(f"{name}_sigkill", detected=not left, seconds=time.monotonic() - begin)
            run = processes.start(spec)
        ended, error = run.end()
        result.expect(ended["state"] in FINISHED, f"ended {ended} {error}")
        result.expect(len(victims) <= 0.2 * kills, f"{len(victims)} of {kills} kills came too late")
        strange = [row for row in checker.faults(run.folder) if row["kind"] != "zygote"]
        result.false_kills += len(strange)
        result.expect(not strange, f"workers were charged: {strange[:3]}")
        result.findings.add(checker.check(run.folder, lab.truth, episodes=episodes, variants=variants))
    return result


def _kill_launcher(run: processes.Run) -> None:
    processes.kill(run.process.pid)


def _kill_supervisor(run: processes.Run) -> None:
    processes.kill(int(run.status().get("pid", 0)) or run.process.pid)


def _kill_fork_server(run: processes.Run) -> None:
    if pid := processes.fork_server(run):
        processes.kill(pid)


_VICTIMS: dict[str, Callable[[processes.Run], None]] = {
    "launcher": _kill_launcher,
    "supervisor": _kill_supervisor,
    "zygote": _kill_fork_server,
    "all": processes.kill_all,
}


def pauses(lab: Lab) -> Result:
    """Stop the supervisor, the launcher or all processes for a while: this must not cause a process to be killed."""
    seconds = 2.0 if lab.short else 20.0
    episodes = min(lab.episodes, 400)
    with lab.scenario("pauses", episodes=episodes) as result:
        folder = lab.folder / "pauses"
        run = processes.start(processes.light(folder, episodes=episodes, plan_seconds=0.03, render_seconds=0.03))
        # The launcher is last, because the run continues without it and may end.
        for name in ("supervisor", "all", "launcher"):
            stored = run.status().get("stored", 0)
            status = run.wait_for(lambda now, least=stored + 5: now.get("stored", 0) >= least)
            pids = {
                "supervisor": [status.get("pid", 0)],
                "launcher": [run.process.pid],
                "all": [run.process.pid, *run.processes()],
            }[name]
            stopped = not run.is_over and [pid for pid in pids if processes.kill(pid, signal.SIGSTOP)]
            time.sleep(min(seconds, _FORGIVEN) if name == "supervisor" else seconds)
            for pid in stopped or ():
                processes.kill(pid, signal.SIGCONT)
            result.expect(stopped, f"the run was over before {name} could be stopped")
            result.count(f"{name}_sigstop")
        ended, error = run.end()
        result.expect(ended["state"] in FINISHED, f"ended {ended} {error}")
        killed = checker.faults(folder)
        result.false_kills += len(killed)
        result.expect(not killed, f"faults after a pause: {killed[:3]}")
        result.expect(checker.supervisors(folder) == 1, "the supervisor was replaced")
        result.findings.add(checker.check(folder, lab.truth, episodes=episodes))
    return result


def hung(lab: Lab) -> Result:
    """Stop the supervisor forever: it must be replaced. Replace files by pipes: they must not block the run."""
    times = 1 if lab.short else 5
    episodes = min(lab.episodes, 300)
    with lab.scenario("hung", episodes=episodes) as result:
        run = processes.start(
            processes.light(lab.folder / "hung", episodes=episodes, plan_seconds=0.03, render_seconds=0.03)
        )
        for _ in range(times):
            stored = run.status().get("stored", 0)
            dead = run.wait_for(lambda now, least=stored + 3: now.get("stored", 0) >= least).get("pid", 0)
            begin = time.monotonic()
            if run.is_over or not processes.kill(dead, signal.SIGSTOP):
                break
            run.wait_for(lambda now, dead=dead: now.get("pid", dead) != dead)
            seconds = time.monotonic() - begin
            result.count("supervisor_hung", seconds=seconds)
            result.expect(seconds <= _REPLACED, f"replaced after {seconds:.1f} s, at most {_REPLACED:g}")
        before = run.status()
        for name in ("scale.json", "status.json"):
            os.mkfifo(run.folder / f"{name}.pipe")
            os.replace(run.folder / f"{name}.pipe", run.folder / name)
            result.count(f"pipe_at_{name.removesuffix('.json')}")
        after = run.wait_for(lambda now: now.get("stored", 0) >= before.get("stored", 0) + 5)
        result.expect(after.get("pid") == before.get("pid"), "a pipe held the supervisor up")
        ended, error = run.end()
        result.expect(ended["state"] in FINISHED, f"ended {ended} {error}")
        result.expect(result.faults.get("supervisor_hung", {}).get("injected") == times, "the run was over too soon")
        charged = [row for row in checker.faults(run.folder) if row["kind"] != "zygote"]
        result.false_kills += len(charged)
        result.expect(not charged, f"workers were charged: {charged[:3]}")
        result.findings.add(checker.check(run.folder, lab.truth, episodes=episodes))
    return result
