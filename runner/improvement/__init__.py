"""Improvement of a policy by its own rollouts: rollout, preparation and learner roles, and their results.

```
loop.py           settings, places of the files, admission rules
episode_maker.py  one process that makes episodes: demonstrations, rollouts, corrections, evaluations, as runs
rows.py           episodes as weighted rows: demonstrations, corrections (DAgger), rollouts by their advantage
learner.py        training of a version from all rows that are admitted, and its publication
roles.py          the three roles, each in a process or all in lock-step
times.py          how long each role works and waits
supervisor.py     starts the processes of the roles, and restarts those that exit
lineage.py        ancestors of an episode
results.py        success by round, waits by role, the page
```

The files are the only state. Window k of rollouts is made by version ``max(0, k - 1 - staleness)`` and version k is
trained from windows 0 to k, so that the result depends neither on how fast a role is nor on when it is killed.
"""
