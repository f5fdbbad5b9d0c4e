"""Prints the answers of a policy in a folder as JSON; run by a Python that has torch."""

from __future__ import annotations

import json
import sys

import numpy as np

from nimbus.datagen.episode.layout import EpisodeKey
from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.policies.policy import PolicyEpisode, PolicyObservation


def main(folder: str) -> None:
    """Query the policy twice in one episode."""
    policy = open_policy(folder)
    random = np.random.default_rng(0)
    seen = PolicyObservation(
        step=0,
        state=random.normal(size=9),
        velocity=np.zeros(9),
        images={name: random.integers(0, 256, (48, 64, 3), np.uint8) for name in policy.needs.cameras or ()},
        environment_state=np.zeros(0),
        instruction="put the can into the bin",
    )
    answers = []
    for _ in range(2):
        policy.reset(PolicyEpisode(key=EpisodeKey(task="t", task_hash="0", seed=0, index=0), instruction="", seed=7))
        answers.append(np.asarray(policy.act(seen)))
    told = {"limit": policy.limit, "shape": answers[0].shape}
    told |= {"is_same": bool((answers[0] == answers[1]).all()), "is_finite": bool(np.isfinite(answers[0]).all())}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
