"""``nimbus run``: makes a dataset, or continues the one in the folder, in the processes of a cell or in this one."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.datasets.export.formats import FORMATS
from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.own_files import default_folder
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.files.start_folder import start_folder
from nimbus.runner.cell.transport.spec import CellSpec, CudaDevices, Instances, Resources
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.commands.options import (
    PLANNERS,
    ROLES,
    SIMULATORS,
    Cluster,
    CountRange,
    Device,
    Gpus,
    Images,
    Price,
    Robot,
    RunPart,
    Seed,
    Serial,
    Skills,
    Stack,
    WorkerSplit,
    count_range,
    one_of,
    parse_part,
    sample,
    size,
    whole,
    worker_split,
)
from nimbus.runner.commands.parser import path, place_text
from nimbus.runner.isaac.physics import ENGINES, choose_physics
from nimbus.runner.system.output import write_error

if TYPE_CHECKING:
    from nimbus.datagen.store.remote.address import StoreAddress


def command(
    *,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="NAME", parser=str, help="a task's name, its file's path, or a folder of tasks"),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option(
            "--job",
            metavar="FILE",
            parser=path,
            help="file of several tasks, with counts, priorities and needs, for a cluster",
        ),
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", metavar="N", parser=whole(1, 10**7), help="number of episodes")
    ] = 10,
    part: Annotated[
        RunPart | None,
        typer.Option("--part", metavar="K/N", parser=parse_part, help="part K of N, for nimbus merge (1/1)"),
    ] = None,
    seed: Seed = 0,
    variants: Annotated[
        int,
        typer.Option("--variants", metavar="V", parser=whole(1, 1000), help="number of visual variants of each plan"),
    ] = 1,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="DIR",
            parser=place_text,
            help="folder of the dataset (out/<task>), or its address in a store (s3://bucket/path)",
        ),
    ] = None,
    spool: Annotated[
        int | None,
        typer.Option(
            "--spool",
            metavar="SIZE",
            parser=size,
            help="pause the run while more than this amount waits for upload (half the free disk, at most 20GB)",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            parser=one_of(tuple(FORMATS)),
            help="export at the end to DIR/NAME: lerobot, aloha, …",
        ),
    ] = None,
    images: Images = "lossless",
    keep_failures: Annotated[
        bool,
        typer.Option("--keep-failures", help="render failed attempts too and store them apart, in failures/"),
    ] = False,
    certify: Annotated[
        int | None,
        typer.Option(
            "--certify",
            metavar="N",
            parser=sample,
            show_default=False,
            help="certify N episodes, or all, at the end by replaying them",
        ),
    ] = 0,
    sim: Annotated[
        str, typer.Option("--sim", metavar="NAME", parser=one_of(SIMULATORS), help=", ".join(SIMULATORS))
    ] = "newton",
    physics: Annotated[
        str | None,
        typer.Option(
            "--physics",
            metavar="NAME",
            parser=one_of(ENGINES),
            help="engine that executes plans with --sim isaacsim: mujoco, isaacsim (isaacsim where verified)",
        ),
    ] = None,
    planner: Annotated[
        str, typer.Option("--planner", metavar="NAME", parser=one_of(PLANNERS), help=", ".join(PLANNERS))
    ] = "ompl",
    workers: Annotated[
        WorkerSplit | None,
        typer.Option(
            "--workers",
            metavar="PxR",
            parser=worker_split,
            help="number of planners P and of renderers R, which keep their roles (auto)",
        ),
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(
            "--roles",
            metavar="NAME",
            parser=one_of(ROLES),
            help="dynamic: workers change roles when that saves time; fixed: they keep them; fused: each takes an "
            "episode through all stages (the pipeline's)",
        ),
    ] = None,
    cluster: Cluster = None,
    nodes: Annotated[
        CountRange | None,
        typer.Option(
            "--nodes",
            metavar="M..N",
            parser=count_range,
            help="smallest and largest number of nodes; the run uses as many as it needs to end in an hour (all)",
        ),
    ] = None,
    serial: Serial = False,
    coupled: Annotated[
        bool,
        typer.Option("--coupled", help="run in this process with coupled stages: a baseline to measure against"),
    ] = False,
    price_per_hour: Price = None,
    device: Device = "cpu",
    gpus: Gpus = None,
    stack: Stack = None,
    skills: Skills = None,
    robot: Robot = "",
) -> int:
    """Run until all requested episodes are stored or given up; return 0 if all are stored, 1 if fewer."""
    from nimbus.datagen.tasks.task import check_form, task_names

    if task is None and job is None:
        raise InputError("the following arguments are required: --task", instead="see nimbus run --help")
    task = task or ""
    # The name of a shipped task is never a folder: the current folder may belong to others.
    tasks = Path(task) if task and task not in task_names() and Path(task).is_dir() else None
    if tasks is None and job is None:
        check_form(_text(task, "--task"))
    from nimbus.runner.cell.run import SHORT, run_spec

    devices, instances = CudaDevices(), Instances()
    if cluster is not None or job is not None:  # each node selects its own devices
        from nimbus.runner.cluster.run_cluster import refuse_flags

        flags = {"--serial": serial, "--coupled": coupled, "--part": part, "--task DIR": tasks}
        refuse_flags(flags | ({"--task": task, "--format": format, "--certify": certify != 0} if job else {}))
    else:
        from nimbus.runner.cell.devices import select_devices, select_instances

        devices = select_devices(gpus, device=device, simulator=sim, planner=planner)
        instances = select_instances(gpus, simulator=sim, planner=planner, is_single=serial or coupled)
    bounds = None
    if nodes is not None:
        if cluster is None:
            raise InputError("the run has no cluster", where="--nodes", instead="give --cluster as well")
        from nimbus.runner.cluster.demand import NodeBounds

        bounds = NodeBounds(least=nodes.least, most=nodes.most)
        if cluster.is_local and nodes.least > cluster.nodes:
            what = f"the cluster has {cluster.nodes} nodes; --nodes needs at least {nodes.least}"
            raise InputError(what, where=f"--cluster {cluster}", instead=f"give --cluster local:{nodes.least}")
    if format:
        from nimbus.datagen.datasets.export.formats import load_writer

        load_writer(format)  # a missing package must end the command before the run
    counts = workers.counts if workers else None
    if roles == "fused" and sim == "isaacsim":
        what = "with Isaac Sim, planning and rendering run in different programs"
        raise InputError(what, where="--roles fused", instead="write --roles fixed, or --sim newton")
    are_fixed = (roles or ("fixed" if counts else "")) == "fixed"
    fused = None if roles is None and counts is None else roles == "fused"
    fixed, moves = are_fixed or sim == "isaacsim", sim == "isaacsim" and not are_fixed
    if fixed and devices.uuids and sum(devices.worker_counts) < 2:
        what = f"the memory of GPU {devices.uuids[0]} is enough for only one worker"
        raise InputError(
            what, where="--gpus", instead="leave --workers and --roles out; one worker then has both roles"
        )
    address, place = _resolve(out, format=format) if out else (None, None)
    if spool is not None and address is None:
        raise InputError("a folder needs no spool", where="--spool", instead="leave it out, or give --out s3://…")
    folder = place or default_folder("-".join(filter(None, (Path(job or task).absolute().stem, Path(robot).stem))))
    if physics is None and tasks is not None and sim == "isaacsim":
        physics = "mujoco"  # tasks of a folder may need different engines
    engine, line = choose_physics(
        physics, simulator=sim, instances=instances, task=task, robot=robot, skills=skills or (), folder=folder
    )
    if line:
        write_error(f"{line}\n")
    spec = CellSpec(
        folder=_text(folder.absolute(), "--out"),
        task=_text(task, "--task"),
        robot=_text(resolve_from(start_folder(), robot), "--robot"),
        skills=tuple(_text(path.absolute(), "--skills") for path in skills or ()),
        seed=seed,
        episodes=episodes,
        part=(part.number, part.count) if part else (1, 1),
        variants=variants,
        simulator=sim,
        physics=engine,
        planner=planner,
        device=device,
        gpus=devices,
        stack=stack,
        settings=({} if images == "lossless" else {"images": images})
        | ({"keep_failures": True} if keep_failures else {}),
        resources=Resources(workers=counts, fixed_roles=fixed, fused=fused, moves_instances=moves),
        instances=instances,
    )
    if cluster is not None:
        from nimbus.runner.cluster.start_cluster import check_cluster

        check_cluster(cluster)
        if cluster.kind == "http":
            from nimbus.runner.cluster.on_ray.submit import submit_to_ray

            return submit_to_ray(cluster, sys.argv[1:])
    if job is not None:
        from nimbus.runner.cluster.run_job import run_job

        place = cluster or ClusterAddress(kind="local", nodes=1)
        return run_job(
            job, spec, place, bounds=bounds, gpus=gpus, address=address, spool=spool, price_per_hour=price_per_hour
        )
    how = {"serial": serial, "coupled": coupled, "price_per_hour": price_per_hour}

    def run_all(folder: Path) -> int:
        mine = replace(spec, folder=str(folder))
        if address:
            resources = replace(spec.resources, spool_bytes=spool or spool_limit(folder))
            mine = replace(mine, resources=resources)
        if cluster is not None:
            from nimbus.runner.cluster.run_cluster import run_on_cluster

            code = run_on_cluster(mine, cluster, bounds=bounds, gpus=gpus, price_per_hour=price_per_hour)
        elif tasks is None:
            code = run_spec(mine, **how)
        else:
            from nimbus.runner.cell.task_folder import run_task_folder

            code = run_task_folder(mine, tasks, **how)
        if code in (0, SHORT) and certify != 0:
            code = max(code, _prove(folder, certify, skills=skills, price_per_hour=price_per_hour))
        return code

    if address:
        from nimbus.runner.cell.store_run import run_into_store, spool_limit

        return run_into_store(address, run_all)
    code = run_all(folder.absolute())
    if code in (0, SHORT) and format:
        _publish(folder, format)
    return code


def _resolve(out: str, *, format: str | None) -> tuple[StoreAddress | None, Path | None]:
    """Return the address of a dataset in a store, or its local folder.

    Raises:
        InputError: The address is invalid, or an export is requested together with a store.
    """
    if "://" not in out:
        return None, Path(out)
    from nimbus.datagen.store.remote.address import local_folder
    from nimbus.datagen.store.remote.site import resolve_address

    address = resolve_address(out)
    if folder := local_folder(address):
        return None, folder
    if format:
        instead = f"afterwards: {quote_words('nimbus', 'export', address, '--to', format, '--out', 'DIR')}"
        raise InputError("an export goes into a folder", where="--format", instead=instead)
    return address, None


def _text(path: Path | str, flag: str) -> str:
    """Return a path as UTF-8 text, which a run stores and passes to other processes."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("paths of a run must be UTF-8", where=f"{flag} {text}", instead="rename it") from None
    return text


def _prove(folder: Path, count: int | None, *, skills: list[Path] | None, price_per_hour: float | None) -> int:
    """Certify a sample of the stored episodes, or all for None; return ``SHORT`` if a certificate is broken."""
    from nimbus.runner.cell.run import SHORT, reporting_input_errors
    from nimbus.runner.checks.certify import certify, print_certificates
    from nimbus.runner.report import write_report

    found = None
    with reporting_input_errors():
        found = certify(folder, sample=count, skills=skills)
        print_certificates(found)
        write_report(folder, price_per_hour=price_per_hour)
    return 0 if found and found.hold else SHORT


def _publish(folder: Path, to: str) -> None:
    """Export a dataset into its subfolder with the name of the format; do nothing if the dataset is empty."""
    from nimbus.datagen.datasets.export.export import export
    from nimbus.datagen.store.info import read_info
    from nimbus.runner.monitor.output_summary import print_exported, report_pending

    if read_info(folder).episode_count:
        begin = time.monotonic()
        print_exported(export(folder, folder / to, to=to, tell=report_pending), time.monotonic() - begin)
