"""``nimbus export-usd``: writes a layout, a navigation scene or a stored episode as one USD stage."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import check_own
from nimbus.datagen.files.start_folder import start_folder
from nimbus.runner.commands.options import Seed, Skills, StoredTask, whole
from nimbus.runner.commands.parser import new_path
from nimbus.runner.system.output import shown_path, write_out


def command(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", parser=str, help="a task's name, or the path of its file")
    ] = None,
    *,
    seed: Seed = 0,
    index: Annotated[
        int, typer.Option("--index", metavar="N", parser=whole(0, 10**7), help="index of the episode")
    ] = 0,
    variant: Annotated[
        int, typer.Option("--variant", metavar="N", parser=whole(0, 10**6), help="visual variant of the episode")
    ] = 0,
    episode: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--episode",
            metavar="DIR ID",
            parser=str,
            help="export a stored episode, as an animation, instead of a task",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", parser=new_path, help="path of the .usda or .usdc file (<episode id>.usda)"
        ),
    ] = None,
    skills: Skills = None,
    stored_task: StoredTask = None,
) -> int:
    """Write the stage and print its path."""
    if bool(task) == bool(episode):
        raise InputError("a task or an episode is needed", instead="write a TASK, or --episode DIR ID")
    if out and out.suffix not in (".usd", ".usda", ".usdc"):
        raise InputError("not the name of a USD file", where=f"--out {out}", instead="end it with .usda or .usdc")
    from nimbus.datagen.tasks.own_tasks import name_task
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries(skill_folders=skills or [])
    if stored_task:
        name_task(stored_task, skill_folders=skills or [])
    if episode:
        path = export_episode(Path(episode[0]), episode[1], out)
    else:
        path = export_layout(task or "", out, skills=skills or [], seed=seed, index=index, variant=variant)
    write_out(f"{shown_path(path)}\n")
    return 0


def export_layout(task_name: str, out: Path | None, *, skills: list[Path], seed: int, index: int, variant: int) -> Path:
    """Write the start of one episode, or the scene of a navigation task, as a stage; return its path.

    Args:
        task_name: Name of the task, or the path of its file.
        out: Path of the stage; None for a file in the current folder, named by the episode's id.
        skills: Folders with custom skills.
        seed: Seed of the run.
        index: Index of the episode in the run.
        variant: Number of the visual variant.
    """
    from nimbus.datagen.episode.layout import EpisodeKey, Layout
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task import NavigationTask, load_any_task
    from nimbus.datagen.usd.layout_export import BodyMotion, write_layout_stage
    from nimbus.datagen.usd.scene_stage import write_scene_stage

    task = load_any_task(task_name, skill_folders=skills)
    if isinstance(task, NavigationTask):
        scene, _ = task.address(index)
        path = out or _default(f"{task.name}-scene-{scene}.usda")
        _write(path, partial(write_scene_stage, path, task.source.open(scene)))
        return path
    assets = load_assets(task)
    physical = draw_physical(task, assets, seed=seed, index=index)
    key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=seed, index=index, variant=variant)
    visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
    layout = Layout(key=key, physical=physical, visual=visual)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    simulation.load(physical)
    motion = BodyMotion(
        names=simulation.body_names, positions=simulation.body_positions()[None], wxyz=simulation.body_wxyz()[None]
    )
    path = out or _default(f"{key.id}.usda")
    _write(path, partial(write_layout_stage, path, assets.stage, assets.robot, layout, motion))
    return path


def export_episode(folder: Path, episode_id: str, out: Path | None) -> Path:
    """Write a stored episode as an animation; return the path of the stage."""
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.store.episode_file.read import EpisodeFile
    from nimbus.datagen.tasks.stored_pictures import shown_layout
    from nimbus.datagen.usd.layout_export import BodyMotion, write_layout_stage
    from nimbus.datagen.usd.stage import read_stage
    from nimbus.runner.checks.replay import check_assets, episode_paths, stored_task

    (file,) = episode_paths(folder, [episode_id])
    with EpisodeFile(file) as episode:
        layout, trajectory, task = episode.layout(), episode.trajectory(), stored_task(episode)
        check_assets(task, episode)
        layout = shown_layout(layout, episode.provenance, where=str(file))
    stage, robot = read_stage(task.scene), load_robot(task.robot)
    motion = BodyMotion(
        names=trajectory.body_names,
        positions=trajectory.body_positions,
        wxyz=trajectory.body_wxyz,
        rate=trajectory.rate,
    )
    path = out or _default(f"{episode_id}.usda")
    _write(path, partial(write_layout_stage, path, stage, robot, layout, motion))
    return path


def _default(name: str) -> Path:
    """Return a path in the current folder, which may be a foreign dataset.

    Raises:
        InputError: It is a link, through which the stage would be written.
    """
    check_own(path := start_folder() / name)
    return path


def _write(path: Path, write: Callable[[], None]) -> None:
    try:
        _check_place(path)
        write()
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise InputError(what, where=f"--out {path}", instead="choose another --out") from None


def _check_place(path: Path) -> None:
    """Raise ``OSError`` if no file can be created at a path; USD would only print a message."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    for parent in path.absolute().parents:
        if parent.exists() and not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{parent} is a file, not a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent):
        pass
