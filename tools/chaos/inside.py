"""Scenarios with faults in components: crashes, hangs, episodes that always fail, slowness and leaks."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from tools.chaos import checker, processes, trouble
from tools.chaos.lab import FINISHED, Lab, Result
from tools.chaos.match import match

_PHASES = ("plan", "plan_late", "render", "store")
_PATIENCE = 900.0


def components(lab: Lab) -> Result:
    """Inject every kind of crash and hang in random episodes and phases; one episode in a hundred always crashes."""
    episodes = lab.episodes
    random = lab.random("components")
    kinds = [*trouble.DEATHS, *trouble.HANGS]
    each = max(2, round(0.55 * lab.faults / len(kinds)))
    good = [index for index in range(episodes) if index % 10 != 7]
    poison = sorted(random.sample(good, max(1, episodes // 100)))
    places = [f"{phase}:{index}" for phase in _PHASES for index in good if index not in poison]
    table: dict[str, Any] = {}
    for kind in kinds * each:
        table.setdefault(random.choice(places), []).append(kind)
    for place in [place for place in table if place.startswith("store")]:
        # The episode may be committed before the fault strikes, and is then not retried.
        table[place] = table[place][:1]
    table |= {f"plan:{index}": [random.choice(trouble.DEATHS[:7]), trouble.REPEAT] for index in poison}
    with lab.scenario("components", episodes=episodes) as result:
        folder = lab.folder / "components"
        run = processes.start(
            processes.light(folder, episodes=episodes, workers=(1, 3)),
            environment=trouble.plan_faults(lab.folder / "components.faults", table),
        )
        ended, error = run.end(patience=_PATIENCE)
        result.expect(ended["state"] in FINISHED, f"ended {ended} {error}")
        happened = trouble.injected(lab.folder / "components.faults")
        result.take(match(happened, checker.faults(folder), names=trouble.TOLD_AS))
        planned = sum(len([kind for kind in kinds if kind != trouble.REPEAT]) for kinds in table.values())
        result.expect(len(happened) >= planned, f"{len(happened)} faults happened, {planned} were planned")
        hangs = [row["max_s"] - processes.DEADLINE for kind, row in result.faults.items() if kind.startswith("hang")]
        late = max(hangs + [result.faults["livelock"]["max_s"] - processes.TOTAL])
        result.figures |= {"hang_noticed_after_deadline_s": round(late, 3)}
        result.expect(late <= 1.0, f"a hang was ended {late:.2f} s after its deadline")
        incidents = len(list((folder / "incidents").iterdir()))
        result.expect(incidents >= min(200, len(happened)), f"{incidents} incidents of {len(happened)} faults")
        result.findings.add(checker.check(folder, lab.truth, episodes=episodes, poison=frozenset(poison)))
    return result


def slow(lab: Lab) -> Result:
    """Let every episode take 0.9 of its deadline without a heartbeat: no worker may be killed."""
    deadline = 3.0
    workers, episodes = (20, 4) if lab.short else (40, 4), 40 if lab.short else 500
    with lab.scenario("slow", episodes=episodes) as result:
        folder = lab.folder / "slow"
        limits = processes.LIMITS | {"plan": (deadline, 2 * deadline)}
        spec = processes.light(folder, episodes=episodes, workers=workers, fixed_roles=True, deadlines=limits)
        table = {"plan": f"slow:{0.9 * deadline}"}
        run = processes.start(spec, environment=trouble.plan_faults(lab.folder / "slow.faults", table))
        ended, error = run.end(patience=_PATIENCE)
        result.expect(ended["state"] in FINISHED, f"ended {ended} {error}")
        result.take(match([], checker.faults(folder), names={}))
        result.findings.add(checker.check(folder, lab.truth, episodes=episodes))
    return result


def leak(lab: Lab) -> Result:
    """Let each worker leak 100 MB per episode: it must be replaced between episodes without counting as a fault."""
    episodes = 40 if lab.short else 200
    with lab.scenario("leak", episodes=episodes) as result:
        folder = lab.folder / "leak"
        spec = processes.light(folder, episodes=episodes, plan_seconds=0.1, memory_limit=500 << 20)
        run = processes.start(spec, environment=trouble.plan_faults(lab.folder / "leak.faults", {"plan": "leak:100"}))
        ended, error = run.end(patience=_PATIENCE)
        result.expect(ended["state"] in FINISHED, f"ended {ended} {error}")
        recycled = run.status().get("recycled", 0)
        result.figures["recycled"] = recycled
        result.expect(recycled, "no worker was replaced")
        result.take(match([], checker.faults(folder), names={}))
        result.findings.add(checker.check(folder, lab.truth, episodes=episodes))
    return result


def goodput(lab: Lab) -> Result:
    """Crash one lease in ten, and compare the run's duration with that of a run without faults; the median of three
    pairs counts. Stages sleep for 0.2 s, so the result does not depend on other load of the machine. Half of the
    crashes occur in the middle of a stage, and half at its end.
    """
    episodes, pairs = 100, 3
    with lab.scenario("goodput", episodes=2 * pairs * episodes) as result:
        ratios = []
        for pair in range(pairs):
            random = lab.random("goodput", str(pair))
            pace = {"plan": "slow:0.1", "plan_late": "slow:0.1", "render": "slow:0.2"}
            table = {
                f"{phase}:{index}": [random.choice(trouble.DEATHS[:7])]
                for index in range(episodes)
                for phase in ("plan", "render")
                if random.random() < 0.1 and not (phase == "render" and index % 10 == 7)
            }
            quiet = _timed(lab, result, f"goodput_{pair}_quiet", pace, episodes)
            faulty = _timed(lab, result, f"goodput_{pair}", table | pace, episodes)
            ratios.append(quiet / faulty)
        result.figures["goodput"] = round(median(ratios), 3)
        result.expect(median(ratios) >= 0.8, f"goodput {median(ratios):.2f}")
    return result


def _timed(lab: Lab, result: Result, name: str, table: dict[str, Any], episodes: int) -> float:
    """Return the time from the first stored episode to the end of the run [s]."""
    folder, faults = lab.folder / name, lab.folder / f"{name}.faults"
    spec = processes.light(folder, episodes=episodes, workers=(2, 2), plan_seconds=0.0, render_seconds=0.0)
    run = processes.start(spec, environment=trouble.plan_faults(faults, table))
    run.wait_for(lambda status: status.get("stored"))
    begin = time.monotonic()
    ended, error = run.end(patience=_PATIENCE)
    seconds = time.monotonic() - begin
    result.expect(ended["state"] in FINISHED, f"{name} ended {ended} {error}")
    _count_all(result, faults, folder)
    result.findings.add(checker.check(folder, lab.truth, episodes=episodes))
    return seconds


def _count_all(result: Result, faults: Path, folder: Path) -> None:
    """Add the faults of one of a scenario's runs."""
    matched = match(trouble.injected(faults), checker.faults(folder), names=trouble.TOLD_AS)
    before = result.faults
    result.take(matched)
    for kind, row in before.items():
        if kind in matched.injected:
            mine = result.faults[kind]
            mine |= {key: mine[key] + row[key] for key in ("injected", "detected")}
            mine["max_s"] = max(mine["max_s"] or 0, row["max_s"] or 0)
