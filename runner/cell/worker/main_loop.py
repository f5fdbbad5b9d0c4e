"""Main loop of a worker: takes orders, plans or renders, and writes heartbeats."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from nimbus.datagen import progress
from nimbus.datagen.files.own_files import create_file
from nimbus.datagen.stages import Planned, Planner, Randomized, Request, Scene, TimedObservations
from nimbus.datagen.store.episode_file.read import stored_plan
from nimbus.datagen.store.ledger.attempt import KeptFailure, attempt_of
from nimbus.datagen.store.publish import disk
from nimbus.datagen.store.writer import Hdf5Writer
from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.transport import plan_codec
from nimbus.runner.cell.transport.channel import Channel
from nimbus.runner.cell.transport.messages import (
    Idle,
    Order,
    PlanMade,
    PlanOrder,
    Recorded,
    Refill,
    RenderOrder,
    Stop,
    Times,
    from_bytes,
)
from nimbus.runner.cell.transport.shared_slots import SharedSlots, SlotError
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.errors import LostPlanError, classify_error
from nimbus.runner.cell.worker.heartbeat import Heartbeat, HeartbeatPage
from nimbus.runner.cell.worker.job import Job, load_job
from nimbus.runner.cell.worker.pipeline_split import run_one
from nimbus.runner.cell.worker.result_batch import RemoteSink, ResultBatch
from nimbus.runner.monitor.span_merger import merge_spans
from nimbus.runner.system.processes import ignore_stop_signals
from nimbus.runner.system.threads import load_kernels

_TIMES_PERIOD = 0.1
"""Interval between two reports of time spans [s]; the shortest orders take a hundredth of it."""
_FLUSH_POLL = 0.02
"""Interval between two checks of a background write while the worker is otherwise idle [s]."""


class Worker:
    """Carries out orders until it is ordered to stop.

    Args:
        job: Source of the components.
        folder: The dataset's folder.
        channel: Source of orders.
        batch: Sender of messages.
        shared_slots: Memory that holds plans.
        stamp: Its row of the heartbeat page.
    """

    def __init__(
        self,
        job: Job,
        folder: Path,
        *,
        channel: Channel,
        batch: ResultBatch,
        shared_slots: SharedSlots,
        stamp: Heartbeat,
    ) -> None:
        self._folder, self._channel, self._shared_slots, self._stamp = folder, channel, shared_slots, stamp
        self._batch = batch
        self._sink = RemoteSink(folder, batch)
        self._chain = job.chain(self._sink, overlap=True)
        count = job.head_count
        self._head, self._tail = self._chain.stages[:count], self._chain.stages[count:]
        self._load = self._chain.stages[0]
        self._roles: list[str] = []
        self._done = 0
        self._times_due = 0.0
        self._together_since = 0.0

    def run(self) -> None:
        """Work until an order to stop, or until the supervisor has ended."""
        progress.subscribe(self._progress, patience=self._stamp.extend)
        seconds = 0.0
        while not isinstance(message := self._next_orders(seconds), Stop):
            begin = time.monotonic()
            if isinstance(message, PlanOrder) and message.lanes:
                self._plan_together(message.orders, message.lanes)
                seconds = self._untold()
                continue
            match message:
                case PlanOrder():
                    carry_out = self._plan if self._head else self._all_stages
                case RenderOrder():
                    carry_out = self._render
                case _:
                    raise ValueError(f"unexpected message {message}")
            # Results of a batch travel together with the next request: one datagram instead of one for each order.
            if len(message.orders) > 1:
                self._batch.hold_results()
            for order in message.orders:
                carry_out(order)
                self._done += 1
            seconds = time.monotonic() - begin
        self._stamp.phase("close")
        self._chain.close()
        self._batch.send(Times(**self._times()))

    def _progress(self, phase: str) -> None:
        name = phase.split("+")[0]
        if name:
            self._stamp.phase(name)
        else:
            self._stamp.tick()
        # An order that proves to be long must not hold back the results of the short ones before it.
        self._batch.send_old()

    def _next_orders(self, seconds: float) -> Any:
        """Request the next orders and wait for them; background writes continue meanwhile.

        Args:
            seconds: Duration of the previous orders.
        """
        flushing = self._pending()
        times = self._times() if time.monotonic() >= self._times_due else {}
        self._batch.send(Idle(done=self._done, seconds=seconds, flushing=flushing, roles=tuple(self._roles), **times))
        while flushing and not self._channel.poll(_FLUSH_POLL):
            self._stamp.phase("store")
            if not (flushing := self._pending()):
                self._batch.send(Idle(done=self._done, roles=tuple(self._roles)))
        if not flushing:
            self._stamp.phase("wait", index=-1, lease=0)
        received = self._channel.receive()
        return Stop() if received is None else from_bytes(received[0])

    def _pending(self) -> bool:
        return any([stage.pending() for stage in self._chain.stages])

    def _plan(self, order: Order) -> None:
        self._take_role(Role.PLANNER)
        self._stamp.phase("load", index=order.index, lease=order.lease)
        made: Planned | Randomized | None = None
        for item in run_one(self._head, self._request(order)):
            if isinstance(item, Planned) and not item.trajectory.outcome.success:
                self._record(item, order)
            elif made is not None:
                raise self._second_plan(order.index)
            else:
                made = item
        if made is not None:
            self._hand_over(made, order)

    def _plan_together(self, orders: tuple[Order, ...], lanes: int) -> None:
        """Plan episodes in lockstep, and take further orders whenever there is room, until none are left."""
        self._take_role(Role.PLANNER)
        *before, planner = self._head
        assert isinstance(planner, Planner)
        known: dict[int, Order] = {}
        self._together_since = time.monotonic()

        def items() -> Iterator[Randomized | None]:
            """Yield the layouts of orders, and None while no order waits."""
            waiting, asked = deque(orders), 0
            while True:
                if message := self._next_now():
                    waiting, asked = deque([*waiting, *message.orders]), 0
                # One more than there are lanes, so that a lane that becomes free need not wait for an answer.
                if (room := lanes + 1 - len(waiting) - len(known)) > asked:
                    asked = room
                    self._batch.send(Refill(room=room, done=self._done, seconds=self._untold(), **self._times()))
                if not waiting:
                    yield None
                    continue
                order = waiting.popleft()
                known[order.index] = order
                self._stamp.phase("load", index=order.index, lease=order.lease)
                yield from run_one(before, self._request(order))

        def watch(item: Randomized | None, spent: float) -> None:
            """Write the episode of this turn into the heartbeat."""
            order = None if item is None else known[item.scene.request.index]
            self._stamp.turn("plan", index=order.index if order else -1, lease=order.lease if order else 0, spent=spent)

        for item in planner.process_together(items(), lanes=lanes, watch=watch):
            if (order := known.get(item.scene.request.index)) is None:
                raise self._second_plan(item.scene.request.index)
            if item.trajectory.outcome.success:
                self._hand_over(item, order)
            else:
                self._record(item, order)
            if item.final:
                del known[order.index]
                self._done += 1
        self._done += len(known)  # orders without a result; the supervisor ends a worker that has such orders

    def _second_plan(self, index: int) -> ValueError:
        stage = type(self._head[-1]).__name__
        return ValueError(f"{stage} gave a second plan for episode {index}: after a success there must be none")

    def _next_now(self) -> PlanOrder | None:
        """Return further orders that have arrived."""
        if not self._channel.poll(0) or (received := self._channel.receive()) is None:
            return None
        message = from_bytes(received[0])
        assert isinstance(message, PlanOrder)
        return message

    def _untold(self) -> float:
        """Return the time since the last report of completed orders that are planned in lockstep [s]."""
        since, self._together_since = self._together_since, time.monotonic()
        return self._together_since - since

    def _record(self, item: Planned, order: Order) -> None:
        kept, shown = self._keep(item, order)
        times = [item.times | shown, *({} for _ in item.layouts[1:])]  # the first row has the time of all variants
        rows = tuple(
            attempt_of(
                layout,
                item.trajectory,
                attempt=item.attempt,
                final=item.final,
                times=spent,
                started=time.time() - sum(item.times.values()),
                failure=kept if layout is item.layouts[0] else None,
            )
            for layout, spent in zip(item.layouts, times, strict=True)
        )
        self._batch.result(Recorded(index=order.index, lease=order.lease, attempts=rows))

    def _keep(self, item: Planned, order: Order) -> tuple[KeptFailure | None, dict[str, float]]:
        """Render and store the first variant of a failed attempt where failures are kept; times are by stage [s]."""
        *renderers, writer = self._tail
        if not isinstance(writer, Hdf5Writer) or not writer.keeps(item.trajectory):
            return None, {}
        self._stamp.phase("render", index=order.index, lease=order.lease)
        for rendered in run_one(renderers, replace(item, layouts=item.layouts[:1])):
            begin, shown = time.thread_time(), TimedObservations(rendered)
            kept = writer.keep(rendered, shown)
            return kept, {"render": shown.cpu_time, "store": time.thread_time() - begin - shown.cpu_time}
        return None, {}

    def _hand_over(self, item: Planned | Randomized, order: Order) -> None:
        # Plans travel through shared memory, never through the channel, whose messages are limited to 128 KiB.
        parts = plan_codec.encode(item)
        spilled = order.slot < 0 or sum(map(len, parts)) > self._shared_slots.capacity
        if spilled:
            path = self._folder / order.spill
            with disk(path), os.fdopen(create_file(path), "wb") as file:
                file.writelines(parts)
        else:
            self._shared_slots.write(order.slot, order.generation, parts)
        self._batch.keep(PlanMade(index=order.index, lease=order.lease, spilled=spilled))

    def _render(self, order: Order) -> None:
        self._take_role(Role.RENDERER)
        self._stamp.phase("load", index=order.index, lease=order.lease)
        scene: Scene = next(iter(self._load.process(self._request(order))))
        item = self._planned(order, scene)
        wanted = tuple(layout for layout in item.layouts if layout.key.variant in order.variants)
        self._sink.begin(order.lease)
        _exhaust(run_one(self._tail, replace(item, layouts=wanted)))

    def _planned(self, order: Order, scene: Scene) -> Planned | Randomized:
        try:
            if order.spill:
                return plan_codec.decode((self._folder / order.spill).read_bytes(), scene)
            return plan_codec.decode(self._shared_slots.read(order.slot, order.generation), scene)
        except (plan_codec.WireError, SlotError, OSError) as error:
            raise LostPlanError(f"the plan cannot be read: {error}") from error

    def _all_stages(self, order: Order) -> None:
        self._take_role(Role.RENDERER)
        self._stamp.phase("load", index=order.index, lease=order.lease)
        self._sink.begin(order.lease)
        _exhaust(run_one(self._tail, self._request(order)))

    def _request(self, order: Order) -> Request:
        path = self._folder / order.stored
        plan = stored_plan(path, attempt=order.stored_attempt) if order.stored else None
        return Request(index=order.index, variants=order.variants, plan=plan)

    def _take_role(self, role: Role) -> None:
        if role not in self._roles:
            self._roles.append(role)

    def _times(self) -> dict[str, Any]:
        """Return the time spans since the last call."""
        self._times_due = time.monotonic() + _TIMES_PERIOD
        gaps = tuple((phase, gap, total) for phase, (gap, total) in self._stamp.take().items())
        return {"spans": merge_spans(self._stamp.take_spans()), "gaps": gaps}


def _exhaust(results: Iterator[Any]) -> None:
    for _ in results:
        pass


def main(load: Callable[[], Job], folder: Path, *, row: int, descriptors: Sequence[int]) -> int:
    """Work in this process, which belongs to the supervisor; return the exit code.

    Args:
        load: Returns the job.
        folder: The dataset's folder.
        row: Row in the heartbeat page.
        descriptors: Channel to the supervisor, shared slots and heartbeat page.
    """
    ignore_stop_signals()
    faulthandler.enable(sys.stderr)
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True, chain=False)
    end, slots, heartbeats = descriptors
    channel = Channel(socket.socket(fileno=end))
    batch = ResultBatch(channel)
    stamp = HeartbeatPage.attach(heartbeats).writer(row)
    stamp.phase("start")
    try:
        Worker(load(), folder, channel=channel, batch=batch, shared_slots=SharedSlots.attach(slots), stamp=stamp).run()
    except BrokenPipeError:
        return 1  # the supervisor is gone
    except Exception as error:
        batch.send(classify_error(error))
        with suppress(OSError):  # the log may be on a full disk
            traceback.print_exc()
        return 1
    return 0


def _load(spec: CellSpec) -> Job:
    job = load_job(spec)
    load_kernels(spec.device, job.pipeline, has_cameras=job.has_cameras)
    return job


if __name__ == "__main__":
    _spec = CellSpec.from_text(sys.argv[1])
    _row, *_descriptors = map(int, sys.argv[2:])
    sys.exit(main(lambda: _load(_spec), Path(_spec.folder), row=_row, descriptors=_descriptors))
