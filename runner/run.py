"""``nimbus run``: make a dataset, or continue the one in the folder; in the processes of a cell, or in this one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from nimbus.datagen.errors import InputError, single_line
from nimbus.runner.cell.transport.spec import CellSpec, Instances, Resources
from nimbus.runner.system import threads as threads  # one thread each, also in the processes that this one starts

SHORT = 1
INTERRUPTED, BUG = 130, 70


def command(args: argparse.Namespace) -> int:
    """Run until all requested episodes are stored or given up; 0 when all are stored, 1 when the run ended short."""
    instances = _available(args)
    publish = _publication(args)
    code = run_spec(
        _spec(args, instances), serial=args.serial, coupled=args.coupled, price_per_hour=args.price_per_hour
    )
    if code in (0, SHORT):
        code = max(code, _prove(args))
        publish()
    return code


def _prove(args: argparse.Namespace) -> int:
    """Certify what is stored, where that was asked for; 1 when something is broken."""
    if args.certify == 0:
        return 0
    from nimbus.runner.certify import certify, print_certificates
    from nimbus.runner.report import write_report

    found = None
    with _told():
        found = certify(args.out, sample=args.certify, skills=args.skills)
        print_certificates(found)
        write_report(args.out, price_per_hour=args.price_per_hour)
    return 0 if found and found.hold else SHORT


def _publication(args: argparse.Namespace) -> Callable[[], None]:
    """What exports the dataset at the end; a format that cannot be written is refused before the run."""
    if not args.format:
        return lambda: None
    from nimbus.runner.export import check_format, publish

    check_format(args.format)
    return partial(publish, args.out, args.format)


def run_spec(
    spec: CellSpec, *, serial: bool = False, coupled: bool = False, price_per_hour: float | None = None
) -> int:
    """Run a spec and show what became of it; the exit code."""
    serial = serial or coupled or not sys.platform.startswith("linux")
    return _serial(spec, price_per_hour, coupled=coupled) if serial else _cell(spec, price_per_hour)


def _spec(args: argparse.Namespace, instances: Instances) -> CellSpec:
    fixed = bool(instances.executable) or (args.roles or ("fixed" if args.workers else "")) == "fixed"
    resources = Resources(workers=args.workers, fixed_roles=fixed)
    return CellSpec(
        folder=_text(args.out.absolute(), "--out"),
        task=_text(args.task, "--task"),
        skills=tuple(_text(folder.absolute(), "--skills") for folder in args.skills),
        seed=args.seed,
        episodes=args.episodes,
        variants=args.variants,
        simulator=args.sim,
        planner=args.planner,
        device=args.device,
        stack=args.stack,
        settings=({} if args.images == "lossless" else {"images": args.images})
        | ({"keep_failures": True} if args.keep_failures else {}),
        resources=resources,
        instances=instances,
    )


def _text(path: Path | str, flag: str) -> str:
    """A path as text, which a run keeps and tells others."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("not UTF-8, as paths of a run must be", where=f"{flag} {text}", instead="rename it") from None
    return text


def _serial(spec: CellSpec, price: float | None, *, coupled: bool) -> int:
    from nimbus.runner.cell.serial_run import Drained, run_serial

    try:
        stored = run_serial(spec, coupled=coupled)
    except Drained:
        show(Path(spec.folder), price=price, quiet=True)
        raise
    show(Path(spec.folder), price=price)
    return 0 if stored == spec.target else _short(stored, spec)


def _cell(spec: CellSpec, price: float | None) -> int:
    from nimbus.runner.cell.launcher import run_cell
    from nimbus.runner.monitor.dashboard import Watcher

    folder = Path(spec.folder)
    with Watcher(folder) as watcher:
        ended = run_cell(spec, watch=watcher.look)
    if ended.state in ("done", "short", "interrupted") and (folder / "dataset.json").exists():
        show(folder, price=price, quiet=ended.state == "interrupted")
    if ended.state == "interrupted":
        raise KeyboardInterrupt
    if ended.line:  # a traceback, or one line
        sys.stderr.write((ended.line.rstrip("\n") if ended.code == BUG else single_line(ended.line)) + "\n")
    return _short(watcher.stored, spec) if ended.state == "short" else ended.code


def _short(stored: int, spec: CellSpec) -> int:
    sys.stderr.write(f"ended short: {stored} of {spec.target} episodes stored; the reasons are in the table\n")
    return SHORT


def _available(args: argparse.Namespace) -> Instances:
    """Refuse what this machine has not; what instances of Isaac Sim are started with, where they are asked for."""
    if args.planner == "curobo":
        from nimbus.datagen.plan.curobo.process import check_curobo

        check_curobo()
    if args.sim != "isaacsim":
        return Instances()
    if args.serial or args.coupled:
        flag = "--serial" if args.serial else "--coupled"
        raise InputError("Isaac Sim renders in processes of its own", where=flag, instead=f"leave {flag} out")
    from nimbus.runner.isaac.find import find_instances

    return find_instances()


def show(folder: Path, *, price: float | None = None, quiet: bool = False) -> None:
    """Previews, the report page, and the figures in the terminal."""
    from nimbus.datagen.store.dataset import read_info
    from nimbus.runner.media.preview import write_previews
    from nimbus.runner.report import print_summary, write_report
    from nimbus.runner.report.summary import summarize

    with _told():
        if read_info(folder).episode_count:
            write_previews(folder)
    page = None
    with _told():
        page = write_report(folder, price_per_hour=price)
    if not quiet:
        print_summary(summarize(folder, price_per_hour=price))
        sys.stdout.write(f"\ndataset: {folder}\n" + (f"report:  {page}\n" if page else ""))


@contextmanager
def _told() -> Iterator[None]:
    """Inside, what cannot be written is one line and no more: the episodes are stored."""
    try:
        yield
    except InputError as error:
        sys.stderr.write(single_line(str(error)) + "\n")
