"""``nimbus run``: make a dataset in this process, or continue the one in the folder."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from nimbus.datagen.errors import InputError, StorageError
from nimbus.runner.interruption import Interruption
from nimbus.runner.libraries import kernels_are_compiled, prepare_libraries

SHORT = 1


def command(args: argparse.Namespace) -> int:
    """Run until all requested episodes are stored or given up; 0 when all are stored, 1 when the run ended short."""
    _refuse_unavailable(args)
    from nimbus.datagen.pipeline import build, check_components, load_pipeline
    from nimbus.datagen.store.dataset import Dataset, check_folder
    from nimbus.datagen.task import load_task
    from nimbus.runner.dashboard import Dashboard
    from nimbus.runner.progress import Progress

    task = load_task(args.task, skill_folders=args.skills)
    check_folder(args.out, task=task.name, task_hash=task.content_hash, seed=args.seed)
    with _loading():
        prepare_libraries(device=args.device)
        pipeline = load_pipeline(task.pipeline, where=task.where("pipeline"))
        begin = time.thread_time()
        context = run_context(task, pipeline, args)
        load_time = time.thread_time() - begin
        check_components(pipeline, offered=(*context, "dataset"))
    with Dataset.create_or_open(
        args.out,
        task=task.name,
        task_hash=task.content_hash,
        seed=args.seed,
        robot=task.robot,
        inputs=_inputs(task, pipeline, context),
    ) as dataset:
        tell_orphans(dataset)
        variants = tuple(range(args.variants))
        already = sum(len(dataset.ledger.finished(index, variants)) for index in range(args.episodes))
        target = args.episodes * args.variants
        progress = Progress(dataset.folder, task=task.name, target=target, already=already)
        state, interruption = "failed", Interruption()
        try:
            with (
                Dashboard(progress) as dashboard,
                interruption,
                build(pipeline, dataset=dataset, **context) as chain,
            ):
                if not kernels_are_compiled(args.device):
                    dashboard.note("the first episode compiles the renderer (about half a minute, once)")
                for stored in chain.run(_requests(dataset, args.episodes, variants, load_time=load_time)):
                    dashboard.add(stored)
                    if interruption.requested:
                        raise KeyboardInterrupt
            stored_count = _stored_count(dataset, args.episodes, variants)
            state = "done" if stored_count == target else "short"
        except KeyboardInterrupt:
            state = "interrupted"
            raise
        finally:
            progress.finish(state)
            if state != "failed" and not interruption.at_once:
                _show(dataset, quiet=state == "interrupted")
    if state == "short":
        sys.stderr.write(f"ended short: {stored_count} of {target} episodes stored; the reasons are in the table\n")
        return SHORT
    return 0


def _loading() -> contextlib.AbstractContextManager[Any]:
    """Say so in a terminal while libraries and scene are loaded; elsewhere a mistake is the only line."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status("loading") if console.is_terminal else contextlib.nullcontext()


def tell_orphans(dataset: Any) -> None:
    """Say in one line each that files were put aside which the ledger does not know, and that others are gone."""
    if count := len(dataset.outdated):
        what = f"{count} episode files are" if count > 1 else f"{dataset.outdated[0].name} is"
        sys.stderr.write(f"{dataset.folder}: {what} missing or changed, to be made again\n")
    if count := len(dataset.orphans):
        from nimbus.datagen.store.dataset import ORPHANS

        what = f"{count} episode files" if count > 1 else "an episode file"
        sys.stderr.write(f"{dataset.folder}: put {what} aside that the ledger does not know, in {ORPHANS}/\n")


def _inputs(task: Any, pipeline: Any, context: dict[str, Any]) -> dict[str, str]:
    from nimbus.datagen.content import asset_hashes, content_inputs

    assets = context.get("assets")
    hashes = asset_hashes(assets.stage, assets.robot, assets.libraries.values()) if assets else {}
    return content_inputs(task, assets=hashes, settings=context["run_settings"], pipeline=pipeline)


def run_context(task: Any, pipeline: Any, args: argparse.Namespace) -> dict[str, Any]:
    """What components of a pipeline may ask for, by parameter name.

    Raises:
        InputError: Something that the task or the command line names is missing, or does not fit together.
    """
    from nimbus.datagen.randomize.room import check_room
    from nimbus.datagen.usd.loader import load_assets

    context: dict[str, Any] = {
        "task": task,
        "seed": args.seed,
        "device": args.device,
        "stack": args.stack,
        "planner": args.planner,
        "run_settings": {"sim": args.sim, "planner": args.planner, "device": args.device},
    }
    if any((component.kind, component.name) == ("load", "usd") for component in pipeline.components):
        assets = load_assets(task)
        check_room(task, assets, seed=args.seed)
        context |= {"assets": assets, "stage": assets.stage, "robot": assets.robot}
    return context


def _refuse_unavailable(args: argparse.Namespace) -> None:
    if args.sim == "isaacsim":
        raise InputError("Isaac Sim is not supported by this version", where="--sim", instead="use --sim newton")
    if args.planner == "curobo":
        raise InputError("cuRobo is not supported by this version", where="--planner", instead="use --planner ompl")


def _requests(dataset: Any, count: int, variants: tuple[int, ...], *, load_time: float) -> Iterator[Any]:
    """The episodes that are still to be made, in order; the first tells what loading for all of them took."""
    from nimbus.datagen.stages import Request

    times = {"load": load_time}
    for index in range(count):
        finished = dataset.ledger.finished(index, variants)
        missing = tuple(variant for variant in variants if variant not in finished)
        if missing:
            plan = _stored_plan(dataset, index) if finished else None
            yield Request(index=index, variants=missing, plan=plan, times=times)
            times = {}


def _stored_plan(dataset: Any, index: int) -> Any:
    """The plan that a stored variant of an episode shows; None where no file of one can be read."""
    from nimbus.datagen.stages import StoredPlan
    from nimbus.datagen.store.read import EpisodeFile

    for attempt in dataset.ledger.stored(index):
        with contextlib.suppress(InputError), EpisodeFile(dataset.folder / attempt.path) as episode:
            physical, trajectory = episode.layout().physical, episode.trajectory()
            return StoredPlan(physical=physical, trajectory=trajectory, attempt=attempt.attempt)
    return None


def _stored_count(dataset: Any, count: int, variants: tuple[int, ...]) -> int:
    stored = {(attempt.idx, attempt.variant) for attempt in dataset.ledger.stored()}
    return sum((index, variant) in stored for index in range(count) for variant in variants)


def _show(dataset: Any, *, quiet: bool) -> None:
    """Previews, the report page, and the figures in the terminal."""
    from nimbus.runner.preview import write_previews
    from nimbus.runner.report import print_summary, write_report
    from nimbus.runner.summary import summarize

    with contextlib.suppress(StorageError):  # a full disk was told where it hurt
        if dataset.info.episode_count:
            write_previews(dataset.folder)
        page = write_report(dataset.folder)
        if not quiet:
            print_summary(summarize(dataset.folder))
            sys.stdout.write(f"\ndataset: {dataset.folder}\nreport:  {page}\n")
