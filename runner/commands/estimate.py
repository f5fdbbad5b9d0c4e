"""``nimbus estimate``: forecasts the time and the size of a run from five of its episodes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError, quote_words
from nimbus.runner.cell.transport.spec import CellSpec, CudaDevices
from nimbus.runner.commands.options import (
    AsJson,
    CountRange,
    Device,
    Gpus,
    Images,
    Price,
    Robot,
    Seed,
    Skills,
    count_range,
    whole,
)
from nimbus.runner.system.device_meter import DISK
from nimbus.runner.system.output import write_json, write_out

if TYPE_CHECKING:
    from nimbus.datagen.analysis.forecast import Interval, RunForecast
    from nimbus.datagen.store.ledger.attempt import Attempt
    from nimbus.datagen.store.ledger.records import Run

PROBE = 5
"""Number of episodes that are made to measure their cost."""


def command(
    task: Annotated[
        str, typer.Argument(metavar="TASK", parser=str, help="a task's name, the path of its file, or of a job file")
    ],
    *,
    episodes: Annotated[
        int, typer.Option("--episodes", metavar="N", parser=whole(1, 10**9), help="number of episodes of the run")
    ] = 1000,
    seed: Seed = 0,
    cores: Annotated[
        int | None,
        typer.Option(
            "--cores", metavar="N", parser=whole(1, 100_000), help="number of cores of the run (all of this machine)"
        ),
    ] = None,
    cluster: Annotated[
        CountRange | None,
        typer.Option(
            "--cluster",
            metavar="M..N",
            parser=count_range,
            help="forecast for clusters of M, 2M, 4M … up to N slots",
        ),
    ] = None,
    nodes: Annotated[
        CountRange | None,
        typer.Option(
            "--nodes",
            metavar="M..N",
            parser=count_range,
            help="recommend the number of nodes, from M to N, with which the run ends in an hour",
        ),
    ] = None,
    device: Device = "cpu",
    gpus: Gpus = None,
    images: Images = "lossless",
    price_per_hour: Price = None,
    as_json: AsJson = False,
    skills: Skills = None,
    robot: Robot = "",
) -> int:
    """Make five episodes in a temporary folder, and print the forecast."""
    from nimbus.datagen.machine import usable_cores
    from nimbus.runner.cluster.job_file import is_job

    devices = CudaDevices()
    if gpus is not None or device == "cuda":
        from nimbus.runner.cell.devices import select_devices

        devices = select_devices(gpus, device=device, simulator="newton")
    spec = CellSpec(
        folder="",
        device=device,
        gpus=devices,
        task=task,
        robot=robot,
        skills=tuple(str(folder.absolute()) for folder in skills or ()),
        seed=seed,
        episodes=PROBE,
        settings={} if images == "lossless" else {"images": images},
    )
    if cluster or nodes or is_job(task):
        slots, price = cores or usable_cores(), price_per_hour or 0.0
        return _estimate_cluster(
            spec, episodes, node_slots=slots, cluster=cluster, nodes=nodes, price=price, as_json=as_json
        )
    told = estimate(spec, episodes, cores=cores or usable_cores())
    if as_json:
        figures = {"cost": told.wall_seconds.expected / 3600 * price_per_hour} if price_per_hour else {}
        write_json(asdict(told) | figures)
    else:
        write_out("\n".join(_lines(told, price_per_hour)) + "\n")
    return 0


def estimate(spec: CellSpec, episodes: int, *, cores: int) -> RunForecast:
    """Forecast a run.

    Args:
        spec: Spec of the probe; its folder is chosen here.
        episodes: Episodes of the run.
        cores: Number of cores of the run.

    Raises:
        InputError: The task is invalid, or the probe stored no episode.
    """
    from nimbus.datagen.analysis.forecast import forecast_run

    attempts, run = _probe(spec)
    gpus = spec.used_gpus
    # The probe runs on one GPU, and a run spreads its workers over all.
    total = sum(seconds for device, seconds in run.busy.items() if device != DISK)
    busy = dict.fromkeys(gpus, total / len(gpus)) if gpus else {}
    busy |= {DISK: run.busy[DISK]} if DISK in run.busy else {}
    return forecast_run(attempts, episodes, cores=cores, startup=run.startup_seconds, busy=busy)


def _probe(spec: CellSpec) -> tuple[list[Attempt], Run]:
    """Make some episodes in a temporary folder; return their attempts, and the record of the run.

    Raises:
        InputError: The task is invalid, or no episode is stored.
    """
    from nimbus.datagen.files.owned_folder import make_owned
    from nimbus.datagen.store.ledger.ledger import Ledger
    from nimbus.runner.cell.run import run_serial

    with make_owned("nimbus-estimate-") as folder:
        with redirect_stdout(sys.stderr):  # output of the probe is not part of the result
            run_serial(replace(spec, folder=str(folder / "probe")))
        ledger = Ledger(folder / "probe", read_only=True)
        try:
            attempts, runs = ledger.attempts(), ledger.runs()
        finally:
            ledger.close()
    if not any(attempt.path for attempt in attempts):
        what = f"none of {spec.episodes} episodes could be made: {attempts[-1].reason.replace('_', ' ')}"
        raise InputError(
            what, where=spec.task, instead=f"{quote_words('nimbus', 'doctor', spec.task)} lists the fields to change"
        )
    return attempts, runs[-1]


def _estimate_cluster(
    spec: CellSpec,
    episodes: int,
    *,
    node_slots: int,
    cluster: CountRange | None,
    nodes: CountRange | None,
    price: float,
    as_json: bool,
) -> int:
    """Print the forecast of a task or job on clusters."""
    from nimbus.runner.cluster.demand import HORIZON, NodeBounds, wanted_nodes
    from nimbus.runner.cluster.forecast import TaskCosts, forecast_cluster, slot_counts
    from nimbus.runner.cluster.job_file import is_job, load_job
    from nimbus.runner.monitor.dashboard_view import duration

    items = load_job(Path(spec.task), spec) if is_job(spec.task) else []
    probes = [(item.name, item.spec.episodes, item.priority, item.spec) for item in items]
    tasks: list[TaskCosts] = []
    startup = 0.0
    for name, count, priority, own in probes or [(Path(spec.task).stem, episodes, 0, spec)]:
        attempts, run = _probe(replace(own, episodes=PROBE))
        costs: dict[int, float] = {}
        for row in attempts:
            costs[row.idx] = costs.get(row.idx, 0.0) + row.work_seconds
        tasks.append(TaskCosts(name=name, episodes=count, seconds=tuple(costs.values()), priority=priority))
        startup = max(startup, run.startup_seconds)
    counts = slot_counts(cluster.least, cluster.most) if cluster else []
    wanted = None
    if nodes:
        left = sum(task.total_seconds for task in tasks)
        bounds = NodeBounds(least=nodes.least, most=nodes.most)
        wanted = wanted_nodes(left, node_slots=node_slots, bounds=bounds, horizon=HORIZON)
        counts = sorted({*counts, wanted * node_slots})
    rows = [
        forecast_cluster(tasks, slots, node_slots=node_slots, startup=startup, price_per_hour=price)
        for slots in counts or [node_slots]
    ]
    if as_json:
        write_json({"wanted_nodes": wanted, "forecasts": [asdict(row) for row in rows]})
        return 0
    total = sum(task.episodes for task in tasks)
    lines = [f"{total} episodes on nodes of {node_slots} slots, forecast from {PROBE} episodes of each task:"]
    lines.append("  slots  nodes         time  useful  with faults  node hours" + ("      cost" if price else ""))
    for row in rows:
        told = f"  {row.slots:5}  {row.nodes:5}  {duration(row.wall_seconds):>11}  {row.efficiency:6.1%}  "
        told += f"{duration(row.faulty_wall_seconds):>11}  {row.node_hours:10.2f}"
        lines.append(told + (f"  {row.cost:8.2f}" if price else ""))
    if wanted is not None:
        lines.append(f"  recommended: {wanted} nodes, with which the run ends within an hour")
    write_out("\n".join(lines) + "\n")
    return 0


def _lines(told: RunForecast, price: float | None) -> list[str]:
    from nimbus.runner.monitor.dashboard_view import duration

    rows = [
        f"{told.episodes} episodes on {told.cores} core{'' if told.cores == 1 else 's'}, forecast from {PROBE} "
        "episodes:",
        f"  time    {_said(told.wall_seconds, duration)}",
        f"  bound   {told.bound_by}",
        f"  CPU     {_said(told.cpu_seconds, duration)}",
        f"  disk    {_said(told.byte_count, _size)}",
        f"  stored  {_said(told.stored, lambda count: f'{count:.0f}')}",
    ]
    cost = told.wall_seconds.scaled((price or 0.0) / 3600)
    rows += [f"  busy    {name} {duration(seconds)}" for name, seconds in told.busy_seconds.items()]
    return rows + ([f"  cost    {_said(cost, lambda sum_: f'{sum_:.2f}')}"] if price else [])


def _said(interval: Interval, text: Callable[[float], str]) -> str:
    return f"{text(interval.expected)}  ({text(interval.low)} to {text(interval.high)}, 9 times out of 10)"


def _size(byte_count: float) -> str:
    return f"{byte_count / 1e9:.2f} GB" if byte_count >= 1e9 else f"{byte_count / 1e6:.0f} MB"
