"""A simulated run in which workers die: the production queue and evidence, with random deaths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.runner.cell.queue.lease import Lease, Missing, Role, Settled
from nimbus.runner.cell.queue.poison import Action, PoisonDetector
from nimbus.runner.cell.queue.work_queue import WorkQueue


@dataclass(frozen=True)
class Result:
    """Result of a run: numbers of episodes."""

    found: int
    """Poison episodes in quarantine."""
    falsely: int
    """Healthy episodes in quarantine."""
    missed: int
    """Poison episodes that were stored."""
    most_deaths: int
    """Largest number of deaths at one episode."""
    deaths_of_found: float
    """Mean number of deaths per quarantined poison episode."""
    evidence: tuple[str, ...]


def simulate(*, episodes: int = 1000, poison: int = 10, background: float, workers: int = 4, seed: int = 0) -> Result:
    """Simulate a run in which every lease ends in a death with the probability ``background``.

    A lease of a poison episode always ends in a death, in planning or in rendering. Every worker that dies has a
    successor with a new number.
    """
    random = np.random.default_rng(seed)
    bad = {int(index): Role(random.choice(list(Role))) for index in random.choice(episodes, poison, replace=False)}
    work = WorkQueue(Missing(index=index, variants=(0,)) for index in range(episodes))
    evidence, quarantined = PoisonDetector(), dict[int, str]()
    deaths = np.zeros(episodes, int)
    pool: list[tuple[int, bool, Lease | None]] = [(number, True, None) for number in range(workers)]
    born = workers

    def order(number: int, fresh: bool) -> Lease | None:
        return (fresh and work.next_isolated(number)) or work.next_render(number) or work.next_plan(number) or None

    while not work.finished:
        for seat in random.permutation(workers):
            number, fresh, lease = pool[seat]
            if lease is None:
                if work.counts.isolated and not fresh:  # a worker exits so that a new one can replace it
                    number, fresh, born = born, True, born + 1
                pool[seat] = (number, fresh, order(number, fresh))
                continue
            index, role = lease.index, lease.role
            if bad.get(index) is not role and random.random() >= background:
                evidence.record_lease(index, role)
                if role is Role.PLANNER:
                    work.planned(index, 0, lease=lease.number)
                else:
                    work.settled(index, 0, Settled.STORED)
                    evidence.forget(index)
                pool[seat] = (number, False, None)
                continue
            deaths[index] += 1
            work.lost(number)
            evidence.record_death(index, number, role, role=role, is_isolated=fresh)
            verdict = evidence.verdict(index)
            if verdict.action is Action.QUARANTINE:
                quarantined[index] = verdict.evidence
                evidence.remove(index)
                work.drop(index)
            elif verdict.action is Action.RETRY_ISOLATED:
                work.isolate(index)
            pool[seat] = (born, True, None)
            born += 1
    found = [index for index in quarantined if index in bad]
    return Result(
        found=len(found),
        falsely=len(quarantined) - len(found),
        missed=poison - len(found),
        most_deaths=int(deaths.max()),
        deaths_of_found=float(deaths[found].mean()) if found else 0.0,
        evidence=tuple(quarantined.values()),
    )
