"""Damaged files and messages of runs: statuses, messages between nodes and their head, improvements."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz.mutations import files_of, pick, replace_file, spoil_bytes, spoil_file, spoil_json, spoil_plain
from tools.fuzz.sort import Sort, command

_DATA, _JOB, _LINES = "data", "job.json", "lines.jsonl"


def make_status(folder: Path) -> None:
    """Write the status of a run on a cluster."""
    from nimbus.datagen.files.codec import to_json
    from nimbus.runner.monitor.status import FILE_NAME, ClusterStatus, Event, NodeStatus, Status, WorkerStatus

    folder.mkdir()
    status = Status(task="tiny", target=10, state="done", stored=4, started=1.7e9, updated=1.7e9 + 60)
    status.counts, status.cpu_times, status.failures = {"plan": 4, "store": 4}, {"plan": 3.0}, {"timeout": 1}
    status.phases, status.startup_seconds = {"load": 3.0}, 3.0
    worker = WorkerStatus(
        number=1, seat=0, pid=9, role="planner", phase="plan", index=3, age=1.0, in_phase=2.0, resident=1 << 20
    )
    status.workers = (worker,)
    status.events = (Event(number=1, time=1.7e9, kind="fault", text="gone"),)
    status.cluster = ClusterStatus(nodes=(NodeStatus(name="n1", host="h", slots=2, price_class="spot"),), leases=3)
    (folder / FILE_NAME).write_text(to_json(status.to_plain()))


def spoil_status(folder: Path, random: np.random.Generator) -> str:
    """Damage the file."""
    (path,) = files_of(folder)
    if random.random() < 0.1:
        return f"a {replace_file(path, random)}"
    if random.random() < 0.1:
        spoil_file(path, random)
        return "bytes"
    for _ in range(int(random.integers(1, 4))):
        with suppress(ValueError):
            spoil_json(path, random)
    return "values"


def read_status(folder: Path, random: np.random.Generator) -> None:
    """Display the status in one of its forms."""
    command("status", folder, *pick(((), (), ("--json",), ("--metrics",)), random))


def make_cluster(folder: Path) -> None:
    """Write a job, and a message of each kind."""

    from tests.support.cells import make_spec
    from tests.support.clusters import job_of

    folder.mkdir()
    (folder / _JOB).write_text(job_of(make_spec(folder / _DATA)).to_text())
    name = "t-s0-000001-v0-00000000"
    row: dict[str, Any] = {"episode_id": name, "task": "t", "seed": 0, "idx": 1, "variant": 0, "attempt": 0}
    row |= {"final": True, "success": False, "reason": "time_limit", "times": {"plan": 1.0}, "steps": ["pick a"]}
    video = {"path": f"episodes/{name}.front.mp4", "byte_count": 5, "sha256": "0"}
    stored = row | {"success": True, "reason": "none", "path": f"episodes/{name}.hdf5"}
    stored |= {"byte_count": 9, "sha256": "0", "videos": [video]}
    episode = {"group": "drive", "index": 1, "lease": 1, "attempts": [row], "seconds": 3.0}
    fault = {"time": 1.0, "run": 1, "worker": "w", "kind": "killed", "idx": 1}
    messages: list[dict[str, Any]] = [
        {"kind": "pull", "node": "n1", "idle": 1, "ahead": 1},
        {"kind": "beat", "node": "n1", "held": {"drive": [1, 2]}, "reading": {"state": "working"}},
        {"kind": "give_back", "node": "n1", "group": "drive", "indices": [1]},
        {"kind": "vote", "node": "n1", "group": "drive", "index": 1, "evidence": "killed"},
        {"kind": "faults", "node": "n1", "group": "drive", "rows": [fault]},
        {"kind": "report", "node": "n1", "episodes": [episode], "info": "{}"},
        {"kind": "report", "node": "n1", "episodes": [episode | {"attempts": [stored], "staged": {name: "x.tmp"}}]},
        {"kind": "report", "node": "n1", "episodes": [episode | {"is_partial": True}]},
        {"kind": "leave", "node": "n1", "why": "done"},
    ]
    (folder / _LINES).write_text("".join(json.dumps(message) + "\n" for message in messages))


def spoil_cluster(folder: Path, random: np.random.Generator) -> str:
    """Damage some of the messages."""
    path = folder / _LINES
    lines = path.read_bytes().splitlines()
    order = random.permutation(len(lines))
    found = []
    for at in order:
        line = lines[at]
        if random.random() < 0.5:
            line = json.dumps(spoil_plain(json.loads(line), random)).encode()
        if random.random() < 0.1:
            line = spoil_bytes(line, random).replace(b"\n", b" ")
        found.append(line)
    path.write_bytes(b"\n".join(found))
    return repr(found[0])[:200]


def read_cluster(folder: Path, random: np.random.Generator) -> None:
    """Pass the messages to a head that a node has joined, and record the reported results."""
    from dataclasses import replace

    from nimbus.datagen.version import nimbus_version
    from nimbus.runner.cluster.head_process import HeadServer
    from nimbus.runner.cluster.job import ClusterJob
    from nimbus.runner.cluster.machine import platform_name
    from nimbus.runner.cluster.messages import Join, request_of

    job = ClusterJob.from_text((folder / _JOB).read_text())
    place = str(folder / _DATA)
    job = replace(
        job, folder=place, tasks=tuple(replace(one, spec=replace(one.spec, folder=place)) for one in job.tasks)
    )
    server = HeadServer(job, folder / "s")
    head = server.head
    about = {"version": nimbus_version(), "platform": platform_name(), "host": "h", "pid": 1, "clock": 1.7e9}
    try:
        head.take(Join(node="n1", slots=1, **about), lambda answer: None, 0.0)  # type: ignore[arg-type]
        for now, line in enumerate((folder / _LINES).read_bytes().split(b"\n")):
            with suppress(ValueError):  # as the server does
                head.take(request_of(line), lambda answer: None, float(now))
            head.commit(float(now))
            head.look(float(now))
    finally:
        server._close("interrupted")
    command("verify", folder / _DATA, "--recompute", 0)


def make_improvement(folder: Path) -> None:
    """Write the files of an improvement with two versions."""
    from nimbus.datagen.files.codec import to_json
    from nimbus.runner.improvement.learner import RECORD, PolicyRecord
    from nimbus.runner.improvement.loop import Improvement, LoopSettings
    from tools.fuzz.datasets import make

    loop = Improvement(folder, LoopSettings(task="tiny", task_hash="1", rounds=2, episodes=2, rollouts=2))
    loop.begin()
    make(loop.demonstrations)
    for version in (0, 1):
        loop.policy(version).mkdir(parents=True)
        parent = f"p{version - 1}" if version else ""
        record = PolicyRecord(
            version=version,
            policy=f"p{version}",
            parent=parent,
            objective="o",
            demonstration="d",
            rounds=({"x": 1},) * (version + 1),
            steps=1,
        )
        (loop.policy(version) / RECORD).write_text(to_json(record))


def spoil_improvement(folder: Path, random: np.random.Generator) -> str:
    """Damage a description or the episodes of the improvement."""
    from tools.fuzz.datasets import spoil_hdf5

    paths = files_of(folder, ".json", ".hdf5")
    path = pick(paths, random)
    if random.random() < 0.1:
        return f"{path.name} is a {replace_file(path, random)}"
    if path.suffix == ".hdf5":
        return spoil_hdf5(path, random)
    spoil_json(path, random)
    return path.name


def read_improvement(folder: Path, random: np.random.Generator) -> None:
    """Print the ancestors of an episode and a summary of the improvement."""
    from nimbus.runner.improvement.lineage import _policy_lines
    from nimbus.runner.improvement.loop import Improvement
    from nimbus.runner.improvement.results import summarize

    names = [path.stem for path in files_of(folder, ".hdf5") if path.parent.name == "episodes"]
    command("lineage", folder, pick((*names, "none"), random))
    loop = Improvement.read(folder)
    list(_policy_lines(loop, "p1"))
    summarize(loop)


SORTS = (
    Sort(name="statuses", make=make_status, spoil=spoil_status, read=read_status),
    Sort(name="cluster", make=make_cluster, spoil=spoil_cluster, read=read_cluster),
    Sort(name="improvements", make=make_improvement, spoil=spoil_improvement, read=read_improvement),
)
