"""Cost of the supervisor: at rest, and for each episode that it commits.

Run it as ``python benchmarks/supervisor.py [--episodes N] [--json FILE]``. The measured cells run the light pipeline.
In the first, the workers plan during the whole measurement. The second only commits episodes of a few bytes, as fast as
its workers make them. The third is the same with a third of the attempts failing, the fourth with two variants per
plan. In the fifth, the workers also compute: about 150 episodes per second are stored, and the supervisor shares the
CPU caches with busy workers. CPU time is that of the supervisor's process with all its threads, from ``/proc``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from tools.chaos import processes  # noqa: E402

WORKERS = (2, 2)
REST_SECONDS = 20.0
COMPUTING = {"plan_seconds": 0.008, "render_seconds": 0.008}
"""CPU time of each half of an episode [s]; with it, two cores make about 150 episodes per second."""


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def at_rest(folder: Path) -> dict[str, float]:
    """Return the fraction of a core that a supervisor uses while its workers send no messages."""
    limits = dict.fromkeys(processes.LIMITS, (600.0, 600.0))
    spec = processes.light(folder, episodes=50, workers=WORKERS, plan_seconds=300.0, fixed_roles=True, deadlines=limits)
    run = processes.start(spec)
    pid = run.wait_for(lambda status: status.get("startup_seconds"))["pid"]
    time.sleep(3.0)
    before, begin = cpu_seconds(pid), time.monotonic()
    time.sleep(REST_SECONDS)
    share = (cpu_seconds(pid) - before) / (time.monotonic() - begin)
    processes.kill_all(run)
    return {"share": share}


def busy(
    folder: Path, *, episodes: int, fails: bool = False, variants: int = 1, computes: bool = False
) -> dict[str, float]:
    """Return the CPU time of the supervisor per stored episode, from the order for a plan to the row in the ledger."""
    count, work = episodes // variants, dict[str, Any](COMPUTING if computes else dict.fromkeys(COMPUTING, 0.0))
    spec = processes.light(folder, episodes=count, variants=variants, workers=WORKERS, fails=fails, **work)
    feather = Path(__file__).parent / "feather"
    spec = replace(spec, pipeline=str(feather / "feather.yaml"), skills=(*spec.skills, str(feather)))
    run = processes.start(spec)
    status = run.wait_for(lambda status: status.get("stored", 0) >= 10)
    pid, first = status["pid"], status["stored"]
    before, begin = cpu_seconds(pid), time.monotonic()
    last, cpu, end = first, before, begin
    while not run.is_over:
        try:
            stored, now = run.status().get("stored", last), cpu_seconds(pid)
        except (OSError, IndexError):
            break
        if stored > last:
            last, cpu, end = stored, now, time.monotonic()
        time.sleep(0.05)
    run.end()
    count = last - first
    return {"rate": count / (end - begin), "cpu_ms": (cpu - before) / count * 1e3}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1500)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nimbus-supervisor-") as folder:
        rest = at_rest(Path(folder) / "rest")
        whole = busy(Path(folder) / "whole", episodes=arguments.episodes)
        mixed = busy(Path(folder) / "mixed", episodes=arguments.episodes, fails=True)
        pairs = busy(Path(folder) / "pairs", episodes=arguments.episodes, variants=2)
        loaded = busy(Path(folder) / "loaded", episodes=arguments.episodes, computes=True)
    sys.stdout.write(f"at rest                     {rest['share']:.2%} of a core\n")
    found = {"whole": whole, "mixed": mixed, "pairs": pairs, "loaded": loaded}
    for name, work in zip(
        ("nothing fails", "a third fails", "two variants of each plan", "workers compute"), found.values(), strict=True
    ):
        sys.stdout.write(
            f"at 100 commits/s            {work['cpu_ms'] / 10:.1%} of a core, {name}: "
            f"{work['cpu_ms']:.2f} ms of CPU an episode, at {work['rate']:.0f} a second\n"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps({"rest": rest} | found, indent=2) + "\n")


if __name__ == "__main__":
    main()
