"""Time to transfer a plan from planner to renderer, and cost of heartbeats.

Run it as ``python benchmarks/ring.py [--hops N] [--json FILE]``. As in a cell, there are three processes: a planner
writes a trajectory of 95 KB into its slot and reports it, and the supervisor sends an order to a renderer, which reads
and checks the trajectory. A hop is the time from before the write until after the read. In *busy*, the processes poll
instead of sleeping, which excludes the time in which the kernel wakes them. Two CPU times are listed separately: that
of encoding and decoding the item, which belongs to plan and render, and that of heartbeats. Other programs on the
machine slow a hop down, so the median of the best tenth is also given.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402
from pydantic_core import from_json, to_json  # noqa: E402

from nimbus.datagen.stages import Planned  # noqa: E402
from nimbus.runner.cell.transport.channel import Channel, pair  # noqa: E402
from nimbus.runner.cell.transport.plan_codec import Part, decode, encode  # noqa: E402
from nimbus.runner.cell.transport.shared_slots import SharedSlots, SlotTable  # noqa: E402
from nimbus.runner.cell.worker.heartbeat import HeartbeatPage  # noqa: E402
from tests.support.synthetic import make_layout, make_rendered, make_trajectory  # noqa: E402

STEPS = 208
WORKERS = 128


def item() -> Planned:
    """Return a plan of about 95 KB."""
    return Planned(scene=make_rendered().scene, layouts=(make_layout(),), trajectory=make_trajectory(steps=STEPS))


def next_message(channel: Channel, busy: bool) -> dict[str, Any] | None:
    """Return the next message, by sleeping or by polling."""
    if not busy:
        received = channel.receive()
        return from_json(received[0]) if received else None
    while (content := channel.receive_now()) is None and not channel.closed_by_peer:
        pass
    return from_json(content) if content else None


def planner(channel: Channel, shared_slots: SharedSlots, parts: list[Part], busy: bool) -> None:
    """Write a plan whenever a slot is assigned."""
    while (order := next_message(channel, busy)) is not None:
        begin = time.monotonic_ns()
        shared_slots.write(order["slot"], order["generation"], parts)
        written = time.monotonic_ns() - begin
        channel.send(to_json({"slot": order["slot"], "begin": begin, "write": written}))


def renderer(channel: Channel, shared_slots: SharedSlots, busy: bool) -> None:
    """Read every plan for which an order arrives."""
    while (order := next_message(channel, busy)) is not None:
        arrived = time.monotonic_ns()
        content = np.frombuffer(shared_slots.read(order["slot"], order["generation"]), np.uint8)
        end = time.monotonic_ns()
        assert content[0]
        times = {"hop": end - order["begin"], "write": order["write"], "read": end - arrived}
        channel.send(to_json({"slot": order["slot"]} | times))


def fork(work: Callable[[], None], others: list[Channel]) -> int:
    """Start a process that calls a function; it must close the ends of other processes' channels."""
    pid = os.fork()
    if pid == 0:
        for channel in others:
            channel.close()
        work()
        os._exit(0)
    return pid


def hops(count: int, *, busy: bool) -> dict[str, np.ndarray]:
    """Return the times of each hop, of its write and of its read [us]; this process is the supervisor."""
    shared_slots, parts = SharedSlots.create(), encode(item())
    to_planner, planner_end = pair()
    to_renderer, renderer_end = pair()
    pids = [
        fork(lambda: planner(planner_end, shared_slots, parts, busy), [to_planner, to_renderer, renderer_end]),
        fork(lambda: renderer(renderer_end, shared_slots, busy), [to_planner, to_renderer, planner_end]),
    ]
    planner_end.close()
    renderer_end.close()
    table, found = SlotTable(shared_slots.slot_count), []
    cpu = time.process_time()
    for _ in range(count):
        found.append(_hop(table, to_planner, to_renderer, busy))
    cpu = time.process_time() - cpu
    to_planner.close()
    to_renderer.close()
    for pid in pids:
        os.waitpid(pid, 0)
    times = {name: np.array([hop[name] for hop in found[count // 10 :]]) / 1e3 for name in ("hop", "write", "read")}
    return times | {"supervisor CPU": np.array([cpu / count * 1e6])}


def _hop(table: SlotTable, to_planner: Channel, to_renderer: Channel, busy: bool) -> dict[str, int]:
    slot = table.reserve(1)
    assert slot is not None
    to_planner.post(to_json({"slot": slot, "generation": table.generation(slot)}))
    made = next_message(to_planner, busy)
    assert made
    table.mark_ready(slot)
    table.take(slot, 2)
    to_renderer.post(to_json(made | {"generation": table.generation(slot)}))
    done = next_message(to_renderer, busy)
    assert done
    table.free(slot)
    return done


def timed(run: Callable[[], object], *, count: int, rounds: int = 30) -> np.ndarray:
    """Return the CPU time of one call, by round [us]."""
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(count):
            run()
        found.append((time.process_time() - begin) / count * 1e6)
    return np.array(found)


def pieces() -> dict[str, np.ndarray]:
    """Return the CPU times of the steps within one process [us]."""
    made = item()
    parts = encode(made)
    content = b"".join(parts)
    shared_slots = SharedSlots.create()
    shared_slots.write(0, 1, parts)
    page = HeartbeatPage.create(WORKERS)
    stamp = page.writer(5)
    stamp.phase("plan", index=1)
    numbers = iter(range(1 << 40))
    return {
        "slot write": timed(lambda: shared_slots.write(0, 1, parts), count=100),
        "slot read": timed(lambda: shared_slots.read(0, 1), count=100),
        "encode": timed(lambda: encode(made), count=20),
        "decode": timed(lambda: decode(content, made.scene), count=20),
        "stamp": timed(stamp.tick, count=10_000),
        "stamp of a phase": timed(lambda: stamp.phase("plan", index=next(numbers)), count=2000),
        f"scan of {WORKERS} rows": timed(lambda: [page.snapshot(row) for row in range(WORKERS)], count=10),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hops", type=int, default=3000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {f"hop: {name}": times for name, times in hops(arguments.hops, busy=False).items()}
    # With three processes that never sleep, a hop cannot be measured on two cores.
    if len(os.sched_getaffinity(0)) > 2:
        found |= {f"busy hop: {name}": times for name, times in hops(arguments.hops, busy=True).items()}
    found |= pieces()
    rows = {name: _row(times) for name, times in found.items()}
    size = sum(map(len, encode(item())))
    sys.stdout.write(
        f"a plan of {size} bytes; CPU times [us], except for 'hop'\n{'':28}{'best tenth':>12}{'p50':>10}{'p99':>10}\n"
    )
    for name, row in rows.items():
        sys.stdout.write(f"{name:28}{row['best_tenth']:12.2f}{row['p50']:10.2f}{row['p99']:10.2f}\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({"plan_bytes": size, "microseconds": rows}, indent=2) + "\n")


def _row(times: np.ndarray) -> dict[str, float]:
    low, middle, high = np.percentile(times, [5, 50, 99])
    return {"best_tenth": round(float(low), 3), "p50": round(float(middle), 3), "p99": round(float(high), 3)}


if __name__ == "__main__":
    main()
