"""``nimbus export-usd``: a layout of a task, or a stored episode, as one USD stage that USD programs open."""

from __future__ import annotations

import argparse
import errno
import sys
import tempfile
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError


def command(args: argparse.Namespace) -> int:
    """Write the stage and print its path."""
    if bool(args.task) == bool(args.episode):
        raise InputError("a task or an episode is needed", instead="write a TASK, or --episode DIR ID")
    if args.out and args.out.suffix not in (".usd", ".usda", ".usdc"):
        raise InputError("not a name of a USD file", where=f"--out {args.out}", instead="end it with .usda or .usdc")
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries(skill_folders=args.skills)
    path = export_layout(args) if args.task else export_episode(args.episode[0], args.episode[1], args.out)
    sys.stdout.write(f"{path}\n")
    return 0


def export_layout(args: argparse.Namespace) -> Path:
    """The layout of one episode before anything moves; the path of the stage."""
    from nimbus.datagen.episode.layout import EpisodeKey, Layout
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task import load_task
    from nimbus.datagen.usd.layout_export import BodyMotion

    task = load_task(args.task, skill_folders=args.skills)
    assets = load_assets(task)
    physical = draw_physical(task, assets, seed=args.seed, index=args.index)
    key = EpisodeKey(
        task=task.name, task_hash=task.content_hash, seed=args.seed, index=args.index, variant=args.variant or 0
    )
    visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
    layout = Layout(key=key, physical=physical, visual=visual)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    simulation.load(physical)
    motion = BodyMotion(
        names=simulation.body_names, positions=simulation.body_positions()[None], wxyz=simulation.body_wxyz()[None]
    )
    path = args.out or Path(f"{key.id}.usda")
    _write(path, assets.stage, assets.robot, layout, motion)
    return path


def export_episode(folder: str, episode_id: str, out: Path | None) -> Path:
    """A stored episode as an animation; the path of the stage."""
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.store.episode_file.read import EpisodeFile
    from nimbus.datagen.usd.layout_export import BodyMotion
    from nimbus.datagen.usd.stage import read_stage
    from nimbus.runner.replay import check_assets, episode_paths, noting_where_paths_begin, stored_task

    (file,) = episode_paths(Path(folder), [episode_id])
    with EpisodeFile(file) as episode:
        layout, trajectory, task = episode.layout(), episode.trajectory(), stored_task(episode)
        check_assets(task, episode)
    with noting_where_paths_begin():
        stage, robot = read_stage(task.scene), load_robot(task.robot)
    motion = BodyMotion(
        names=trajectory.body_names,
        positions=trajectory.body_positions,
        wxyz=trajectory.body_wxyz,
        rate=trajectory.rate,
    )
    path = out or Path(f"{episode_id}.usda")
    _write(path, stage, robot, layout, motion)
    return path


def _write(path: Path, stage: Any, robot: Any, layout: Any, motion: Any) -> None:
    from nimbus.datagen.usd.layout_export import write_layout_stage

    try:
        _check_place(path)
        write_layout_stage(path, stage, robot, layout, motion)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise InputError(what, where=f"--out {path}", instead="choose another --out") from None


def _check_place(path: Path) -> None:
    """Find out what USD would tell in its own words: whether a file can be made there."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    for parent in path.absolute().parents:
        if parent.exists() and not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{parent} is a file, no folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent):
        pass
