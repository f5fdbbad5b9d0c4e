"""Recordings of a dataset's episodes for Rerun: cameras, joints, actions, poses of bodies, skills."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.native import NativeView
from nimbus.datagen.datasets.quality.signals import ACTION, STATE
from nimbus.datagen.datasets.quality.view import EpisodeView, View
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.files.installation import add_extra
from nimbus.datagen.render.camera_model.point_cloud import point_cloud
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.media.rerun_window import finish_window, start_window

_QUALITY = 85
_CLOUD_EVERY, _CLOUD_STRIDE, _POINT = 5, 4, 0.004
"""Steps between two point clouds, pixels between two of a cloud's points, and radius of a point [m]."""


def load_rerun() -> Any:
    """Import Rerun.

    Raises:
        InputError: Rerun is not installed.
    """
    try:
        import rerun  # pyright: ignore[reportMissingImports]
    except ImportError:
        instead = f"give --sheet FILE.png, or {add_extra('view')}"
        raise InputError("Rerun is not installed", where="nimbus view", instead=instead) from None
    return rerun


def show(folder: Path, view: View, numbers: Iterable[int], *, save: Path | None) -> list[int]:
    """Log episodes to a window or a file; return the logged episodes.

    Args:
        folder: Folder of the dataset.
        view: The dataset.
        numbers: Numbers of the episodes.
        save: Path of the file; None for a window.

    Returns:
        The numbers of the logged episodes.

    Raises:
        InputError: Rerun is not installed, there is no such episode, or one is damaged.
    """
    rerun, wanted, shown = load_rerun(), set(numbers), []
    panels: list[Any] = []
    window: subprocess.Popen[bytes] | None = None
    for clip in view.clips():
        if isinstance(clip, Diagnostic):
            continue
        if clip.number not in wanted:
            continue
        if not shown:
            rerun.init(f"nimbus: {folder.resolve().name}")
            if save:
                rerun.save(str(save))
            else:
                window = start_window()
                assert window.stdin
                rerun.save(f"/dev/fd/{window.stdin.fileno()}")
        if isinstance(view, NativeView):
            _log_poses(rerun, view, clip)
        _log(rerun, clip, view)
        panels.append(_panel(clip, has_world=isinstance(view, NativeView)))
        rerun.send_blueprint(_blueprint(panels))
        shown.append(clip.number)
        if wanted == set(shown):
            break
    if window is not None:
        finish_window(window, rerun.disconnect)
    if missing := sorted(wanted - set(shown)):
        what = f"no readable episode {missing[0]}; there are {view.episode_count}"
        raise InputError(what, where=str(folder), instead="run 'nimbus qa' for details")
    return shown


def _blueprint(panels: list[Any]) -> Any:
    """Return a layout with one tab per episode and a collapsed selection panel."""
    import rerun.blueprint as layout  # pyright: ignore[reportMissingImports]

    return layout.Blueprint(layout.Tabs(*panels), layout.SelectionPanel(state="collapsed"))


def _panel(clip: EpisodeView, *, has_world: bool) -> Any:
    """Return a layout with the 3D view and cameras above, joints and actions below, and texts at the side."""
    import rerun.blueprint as layout  # pyright: ignore[reportMissingImports]

    root = f"episode_{clip.number}"
    seen = [layout.Spatial2DView(origin=f"{root}/cameras/{name}", name=name) for name in clip.images]
    drawn = [layout.TimeSeriesView(origin=f"{root}/{name}", name=name) for name in ("state", "action")]
    if not has_world:
        return layout.Vertical(layout.Horizontal(*seen), layout.Horizontal(*drawn), name=clip.name)
    space = layout.Spatial3DView(
        origin=f"{root}/world",
        name="space",
        eye_controls=layout.EyeControls3D(position=(1.7, -1.1, 1.1), look_target=(0.35, 0.0, 0.2)),
    )
    told = [layout.TextDocumentView(origin=f"{root}/instruction", name="instruction")]
    told += [layout.TextLogView(origin=f"{root}/skill", name="skills")]
    above = layout.Horizontal(
        space, layout.Vertical(*seen), layout.Vertical(*told, row_shares=[1, 4]), column_shares=[3, 2, 2]
    )
    return layout.Vertical(above, layout.Horizontal(*drawn), row_shares=[2, 1], name=clip.name)


def _log(rerun: Any, clip: EpisodeView, view: View) -> None:
    """Log the images and signals of an episode."""
    root = f"episode_{clip.number}"
    for name, label in ((STATE, "state"), (ACTION, "action")):
        values = clip.columns.get(name)
        if values is None:
            continue
        for column in range(values.shape[1]):
            known = view.joint_names[column] if column < len(view.joint_names) else str(column)
            rerun.send_columns(
                f"{root}/{label}/{known}",
                indexes=[rerun.TimeColumn("time", duration=np.arange(len(values)) / view.fps)],
                columns=rerun.Scalars.columns(scalars=values[:, column].astype(np.float64)),
            )
    try:
        for camera, pictures in clip.images.items():
            for step, picture in enumerate(pictures.read(0, clip.length)):
                rerun.set_time("time", duration=step / view.fps)
                rerun.log(f"{root}/cameras/{camera}", rerun.Image(picture).compress(jpeg_quality=_QUALITY))
    except Unreadable as error:
        raise InputError(error.what, where=error.where, instead="run 'nimbus qa' for details") from None


def _log_poses(rerun: Any, view: NativeView, clip: EpisodeView) -> None:
    """Log the poses of bodies and cameras, and the skills."""
    root = f"episode_{clip.number}"
    with EpisodeFile(view.path_of(clip.number)) as episode:
        rerun.log(f"{root}/instruction", rerun.TextDocument(episode.instruction), static=True)
        names, rate = episode.texts("names/bodies"), episode.rate
        positions, wxyz = episode.array("observations/body_positions"), episode.array("observations/body_wxyz")
        times = [rerun.TimeColumn("time", duration=np.arange(len(positions)) / rate)]
        things = set(episode.labels.instance_bodies) if episode.labels else set()
        for row, name in enumerate(names):
            rerun.send_columns(
                f"{root}/world/{name}",
                indexes=times,
                columns=rerun.Transform3D.columns(
                    translation=positions[:, row], quaternion=np.roll(wxyz[:, row], -1, axis=1)
                ),
            )
            point = rerun.Points3D([[0.0, 0.0, 0.0]], radii=0.012, labels=[name], show_labels=name in things)
            rerun.log(f"{root}/world/{name}", point, static=True)
        for camera in episode.cameras:
            _log_camera(rerun, f"{root}/world/camera_{camera}", episode, camera, times)
        for camera in episode.layout().visual.cameras:
            if "depth" in episode.modalities(camera.name):
                _log_cloud(rerun, f"{root}/world/points_{camera.name}", episode, camera)
        for step, text in _skills(episode):
            rerun.set_time("time", duration=step / rate)
            rerun.log(f"{root}/skill", rerun.TextLog(text))


def _log_camera(rerun: Any, path: str, episode: EpisodeFile, camera: str, times: list[Any]) -> None:
    poses = episode.array(f"observations/world_T_camera/{camera}")
    _, height, width, _ = episode.shape(f"observations/images/{camera}")
    rerun.send_columns(
        path,
        indexes=times,
        columns=rerun.Transform3D.columns(translation=poses[:, :3, 3], mat3x3=poses[:, :3, :3]),
    )
    matrix = episode.array(f"observations/intrinsics/{camera}")
    shape = rerun.Pinhole(image_from_camera=matrix, resolution=[width, height], image_plane_distance=0.12)
    rerun.log(path, shape, static=True)


def _log_cloud(rerun: Any, path: str, episode: EpisodeFile, camera: Camera) -> None:
    """Log the points that a camera sees, every few steps."""
    for step in range(0, episode.step_count, _CLOUD_EVERY):
        cloud = point_cloud(episode.frames(camera.name, step, step + 1), camera, stride=_CLOUD_STRIDE)
        rerun.set_time("time", duration=step / episode.rate)
        rerun.log(path, rerun.Points3D(cloud.points, colors=cloud.colors, radii=_POINT))


def _skills(episode: EpisodeFile) -> Iterator[tuple[int, str]]:
    for segment in episode.segments:
        yield segment.start, " ".join(part for part in (segment.skill, segment.target, segment.phase) if part)
