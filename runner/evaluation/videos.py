"""Videos of an evaluation: some failures and some successes, rendered from stored states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import ImageArray
from nimbus.datagen.files.own_files import make_subfolder
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.evaluation.results import Evaluation, LayoutResult

if TYPE_CHECKING:
    from nimbus.datagen.render.scene_renderer import SceneRenderer
    from nimbus.datagen.tasks.scene_assets import SceneAssets
    from nimbus.datagen.tasks.task import Task

FOLDER = "videos"
_SIZE = (320, 240)
"""Width and height at which narrower cameras are rendered [px]."""


def choose_shown(evaluation: Evaluation, *, count: int) -> tuple[LayoutResult, ...]:
    """Choose the first ``count`` failures, and the first ``count`` successes."""
    judged = [one for one in evaluation.judged if one.steps]
    failures = [one for one in judged if not one.success][:count]
    return (*failures, *[one for one in judged if one.success][:count])


def video_name(result: LayoutResult) -> str:
    """Return the file name of a layout's video: its index, and the reason of a failure."""
    words = f"{result.reason}_{result.phase}" if not result.success else "success"
    return f"{result.index:06d}_{re.sub('[^A-Za-z0-9_]+', '_', words).strip('_')}.mp4"


def write_videos(folder: Path, task: Task, results: Sequence[LayoutResult], *, device: str = "cpu") -> list[Path]:
    """Render the stored episodes of some layouts from the task's first camera.

    Args:
        folder: Folder of the evaluation.
        task: Task of the evaluation, with cameras.
        results: Results of the layouts to render; existing videos are kept.
        device: Device of the renderer: ``cpu`` or ``cuda``.

    Returns:
        The video files; none if the task has no camera.
    """
    if not task.cameras or not results:
        return []
    make_subfolder(folder / FOLDER)
    paths = {result.index: folder / FOLDER / video_name(result) for result in results}
    missing = [result for result in results if not paths[result.index].is_file()]
    if missing:
        _render(folder, task, {result.index: paths[result.index] for result in missing}, device=device)
    return [path for path in paths.values() if path.is_file()]


def _render(folder: Path, task: Task, targets: dict[int, Path], *, device: str) -> None:
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.render.scene_renderer import SceneRenderer
    from nimbus.runner.media.preview import encode_video
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries(device=device)  # otherwise, Warp would report every kernel that it loads
    camera, settings = next(iter(task.cameras.items()))
    if settings.size[0] < _SIZE[0]:
        settings = settings.model_copy(update={"size": _SIZE})
    seen = replace(task, cameras={camera: settings})
    assets = load_assets(seen)
    renderer = SceneRenderer(
        assets.stage, assets.robot, libraries=tuple(assets.libraries), device=device, modalities=("rgb",)
    )
    with closing(Ledger(folder, read_only=True)) as ledger:
        stored = {attempt.idx: attempt for attempt in ledger.attempts() if attempt.path or attempt.failure}
    for index, target in targets.items():
        if attempt := stored.get(index):
            path = folder / (attempt.failure.path if attempt.failure else attempt.path)
            with EpisodeFile(path) as episode:
                encode_video(_frames(episode, seen, assets, renderer), target, rate=episode.rate)


def _frames(episode: EpisodeFile, task: Task, assets: SceneAssets, renderer: SceneRenderer) -> Iterator[ImageArray]:
    from nimbus.datagen.randomize.tabletop import draw_visual
    from nimbus.runner.media.preview import caption_band

    layout, trajectory = episode.layout(), episode.trajectory()
    segments, places = episode.segments, episode.array("skills/step")
    visual = draw_visual(task, assets.stage, assets.robot, layout.physical, key=layout.key)
    renderer.load(replace(layout, visual=visual))
    (camera,) = task.cameras
    for begin in range(0, trajectory.step_count, renderer.stack):
        rows = slice(begin, min(begin + renderer.stack, trajectory.step_count))
        rendered = renderer.render(
            trajectory.body_names,
            trajectory.body_positions[rows],
            trajectory.body_wxyz[rows],
            first_step=begin,
        )
        for step, picture in enumerate(rendered[camera].rgb, start=begin):
            segment = segments[places[step]] if places[step] >= 0 else None
            caption = f"{step} · {segment.phase} {segment.target}".strip() if segment else str(step)
            strip = caption_band(picture.shape[1], visual.instruction, caption)
            shown = np.concatenate([picture, strip])
            yield shown[: shown.shape[0] // 2 * 2, : shown.shape[1] // 2 * 2]
