"""Real agents and the real head with replayed stage times: many nodes on one machine, without physics.

``python -m benchmarks.replayed_agents 8 32 128`` runs clusters of 8 to 128 nodes of one slot, 20 episodes per slot,
once with the balance and once with equal parts. It prints a row for each run, with the figures of the same run in
simulated time. Agents, sockets, head and ledger are those of any cluster; each agent is a process. Only cells are
replaced: an episode waits for the time of a measured one (``episode_costs.json``) without computing, and its file has a
few bytes.

``--soak 1200 --fault-every 20`` lets 16 nodes run to the end of the job, or for 20 minutes, while nodes and head are
killed and stopped. It prints the memory, open files and commit durations of the head every half minute.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.replayed_cluster import ReplayedCluster, simulate


def curves(counts: Sequence[int], given: argparse.Namespace) -> None:
    """Print the table."""
    head = "| nodes | episodes | policy | seconds | efficiency | simulated | leases | head, % of a core | agent, % |\n"
    sys.stdout.write(head + "|---|---|---|---|---|---|---|---|---|\n")
    for nodes in counts:
        episodes = given.episodes or given.per_slot * nodes
        for is_static in [policy == "static" for policy in given.policies]:
            folder = Path(tempfile.mkdtemp(prefix="nimbus-replay-"))
            cluster = ReplayedCluster(folder, nodes=nodes, episodes=episodes, speed=given.speed, is_static=is_static)
            try:
                found = cluster.run()
            finally:
                cluster.stop()
                shutil.rmtree(folder, ignore_errors=True)
            cells = [f"{nodes}", f"{episodes:,}", "static" if is_static else "dynamic", f"{found.seconds:.0f}"]
            cells += [f"{100 * found.efficiency:.1f} %", f"{100 * simulate(cluster, is_static=is_static):.1f} %"]
            cells += [f"{found.leases}", f"{100 * found.head_cpu:.1f}", f"{100 * found.agent_cpu:.2f}"]
            sys.stdout.write(f"| {' | '.join(cells)} |\n")
            sys.stdout.flush()


def soak(given: argparse.Namespace) -> int:
    """Run with faults until the job or the time ends; return 1 if an episode is lost or doubled."""
    folder, chance = Path(tempfile.mkdtemp(prefix="nimbus-soak-")), random.Random(0)
    cluster = ReplayedCluster(folder, nodes=given.nodes, episodes=given.episodes or 100_000, speed=given.speed)
    injected: dict[str, int] = {}
    try:
        cluster.start()
        end, next_fault = time.monotonic() + given.soak, time.monotonic() + given.fault_every
        frozen: dict[int, float] = {}
        is_done = False
        while not is_done and time.monotonic() < end:
            time.sleep(0.5)
            for pid in [pid for pid, until in frozen.items() if time.monotonic() > until]:
                os.kill(pid, signal.SIGCONT)
                del frozen[pid]
            is_done = _restart(cluster)
            if is_done or time.monotonic() < next_fault:
                continue
            next_fault += given.fault_every
            is_early = end - time.monotonic() > given.soak / 2
            kind = chance.choice(["agent", "agent", "freeze"] + (["head", "freeze head"] if is_early else []))
            injected[kind] = injected.get(kind, 0) + 1
            pid = cluster.head if "head" in kind else cluster.agents[chance.choice(sorted(cluster.agents))]
            if "freeze" in kind:
                os.kill(pid, signal.SIGSTOP)
                frozen[pid] = time.monotonic() + chance.choice([2.0, 12.0, 40.0] if kind == "freeze" else [2.0])
            else:
                frozen.pop(pid, None)
                os.kill(pid, signal.SIGKILL)
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        settled_rows = cluster.rows()
        lines = (folder / "samples").read_text().splitlines()
    finally:
        cluster.stop()
        time.sleep(1.0)  # killed processes release their files
        shutil.rmtree(folder, ignore_errors=True)
    stored = {row.idx for row in settled_rows}
    doubled = len(settled_rows) - len(stored)
    lost = len(set(range(cluster.job.tasks[0].spec.episodes)) - stored) if is_done else 0
    state = f"the job ended, {lost} lost" if is_done else "the job had not ended"
    seconds = given.soak - (end - time.monotonic())
    sys.stdout.write(f"{seconds:.0f} s, faults {injected}: {len(stored)} stored, {doubled} doubled; {state}\n")
    sys.stdout.write("head's pid, time, MB, open files, ms a commit, settled\n" + "\n".join(lines) + "\n")
    return bool(doubled or lost)


def _restart(cluster: ReplayedCluster) -> bool:
    """Restart killed processes, as :class:`LocalCluster` does; return True if the head has ended the run."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return False
        if pid == cluster.head:
            if os.waitstatus_to_exitcode(status) == 0:
                return True
            cluster.start_head()
        for name in [name for name, agent in cluster.agents.items() if agent == pid]:
            cluster.start_agent(name)


def main() -> int:
    """Print the table, or run the soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="*", default=[8, 32, 128])
    parser.add_argument("--episodes", type=int, default=0, help="episodes of each run, instead of --per-slot")
    parser.add_argument("--per-slot", type=int, default=20)
    parser.add_argument("--speed", type=float, default=1.0, help="ratio of measured to replayed times")
    parser.add_argument("--policies", nargs="*", default=["static", "dynamic"], choices=["static", "dynamic"])
    parser.add_argument("--soak", type=float, default=0.0, help="duration with faults [s]")
    parser.add_argument("--fault-every", type=float, default=60.0, help="time between two faults [s]")
    parser.add_argument("--nodes", type=int, default=16, help="number of nodes of the soak")
    given = parser.parse_args()
    files = min(65_536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if given.soak:
        return soak(given)
    curves(given.counts, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
