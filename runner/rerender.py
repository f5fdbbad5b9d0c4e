"""``nimbus rerender``: new pixels from stored states, with another look, other cameras or another light."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nimbus.runner.replay import episode_paths, stored_task


def command(args: argparse.Namespace) -> int:
    """Render stored episodes into a new dataset."""
    from nimbus.datagen.discover import discover_components
    from nimbus.datagen.render.newton import NewtonRenderer
    from nimbus.datagen.robot import load_robot
    from nimbus.datagen.store.dataset import Dataset, read_info
    from nimbus.datagen.store.hdf5 import Hdf5Writer
    from nimbus.datagen.store.read import EpisodeFile
    from nimbus.datagen.task import load_task
    from nimbus.datagen.usd.stage import read_stage

    paths = episode_paths(args.folder, args.ids)
    discover_components()
    if args.task:
        task = load_task(args.task, skill_folders=args.skills)
    else:
        with EpisodeFile(paths[0]) as episode:
            task = stored_task(episode)
    stage, robot = read_stage(task.scene, where=task.where("scene")), load_robot(task.robot, where=task.where("robot"))
    renderer = NewtonRenderer(stage, robot, stack=args.stack, device=args.device)
    seed = read_info(args.folder).seed
    with Dataset.create_or_open(
        args.out, task=task.name, task_hash=task.content_hash, seed=seed, robot=task.robot
    ) as dataset:
        writer = Hdf5Writer(dataset)
        try:
            for stored in writer(renderer(_planned(paths, task, stage, robot, variant=args.variant))):
                sys.stdout.write(f"{stored.episode_id}: {stored.step_count} steps, {stored.byte_count / 1e6:.1f} MB\n")
        finally:
            writer.close()
    sys.stdout.write(f"dataset: {args.out}\n")
    return 0


def _planned(paths: list[Path], task: Any, stage: Any, robot: Any, *, variant: int | None) -> Iterator[Any]:
    """Stored trajectories with the layouts that are to be seen."""
    from dataclasses import replace

    from nimbus.datagen.layout import Layout
    from nimbus.datagen.randomize.tabletop import draw_visual
    from nimbus.datagen.stages import Planned, Request, Scene
    from nimbus.datagen.store.read import EpisodeFile

    for path in paths:
        with EpisodeFile(path) as episode:
            before, trajectory, provenance = episode.layout(), episode.trajectory(), episode.provenance
        key = replace(
            before.key,
            task=task.name,
            task_hash=task.content_hash,
            variant=before.key.variant if variant is None else variant,
        )
        visual = draw_visual(task, stage, robot, before.physical, key=key)
        scene = Scene(
            request=Request(index=key.index, variants=(key.variant,)),
            assets=None,
            provenance=replace(provenance, task_text=task.text, task_hash=task.content_hash),
        )
        layout = Layout(key=key, physical=before.physical, visual=visual)
        yield Planned(scene=scene, layouts=(layout,), trajectory=trajectory)
