"""Contact sheets and short videos of datasets, made from the stored episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image, ImageDraw

from nimbus.datagen.arrays import ImageArray
from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.view import EpisodeView, View
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.own_files import make_subfolder
from nimbus.datagen.media.colormaps import depth_colors, mask_overlay, normal_colors
from nimbus.datagen.media.contact_sheet import INK, PAPER, SheetRow, draw_contact_sheet, fit_text, load_font
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import disk
from nimbus.runner.media.top_down import is_driven, view_from_above

Drawn = TypeVar("Drawn")

FOLDER_NAME = "preview"
SHEET_NAME = "contact_sheet.png"
_MOMENTS = (0.0, 0.3, 0.6, 1.0)
_VIEW_MOMENTS = 6
"""Number of images per row in the contact sheet of a view, evenly spaced in time."""


def write_previews(folder: Path, *, sheet_episodes: int = 8, video_episodes: int = 4) -> list[Path]:
    """Write the contact sheet and the videos of a dataset's first episodes.

    Args:
        folder: The dataset's folder.
        sheet_episodes: Largest number of rows of the contact sheet.
        video_episodes: Largest number of videos.

    Returns:
        The written files; none if no stored episode has images.
    """
    paths = list(islice(episodes_with_images(folder), max(sheet_episodes, video_episodes)))
    target = folder / FOLDER_NAME
    if not paths:
        return []
    with disk(target):
        make_subfolder(target)
        sheet = target / SHEET_NAME
        _save(contact_sheet(paths[:sheet_episodes]), sheet)
        videos = list(readable(lambda path: write_video(path, target / f"{path.stem}.mp4"), paths[:video_episodes]))
    return [sheet, *videos]


def episodes_with_images(folder: Path) -> Iterator[Path]:
    """Yield the files of stored episodes with cameras, by index and variant; each is only opened when it is reached."""
    ledger = Ledger(folder, read_only=True)
    try:
        paths = [folder / attempt.path for attempt in ledger.stored()]
    finally:
        ledger.close()
    return (path for path, has_images in readable(lambda path: (path, _has_images(path)), paths) if has_images)


def readable(draw: Callable[[Path], Drawn], paths: Iterable[Path]) -> Iterator[Drawn]:
    """Yield the drawings of readable episodes; ``nimbus verify`` reports the others."""
    for path in paths:
        with suppress(InputError):
            yield draw(path)


def contact_sheet(paths: list[Path]) -> Image.Image:
    """Draw one row per episode: the first camera four times, the others twice, then depth, instances and normals."""
    return draw_contact_sheet(list(readable(_sheet_row, paths)))


def write_view_sheet(view: View, path: Path, *, episodes: int = 6) -> bool:
    """Save a contact sheet of any dataset: one row per episode and camera, from beginning to end.

    Args:
        view: The dataset.
        path: File of the image.
        episodes: Number of episodes to show, from the first.

    Returns:
        False if no image can be read; nothing is then written.
    """
    clips = islice((clip for clip in view.clips() if not isinstance(clip, Diagnostic)), episodes)
    rows = [row for clip in clips for camera in clip.images if (row := _view_row(clip, camera)).pictures]
    if rows:
        _save(draw_contact_sheet(rows, tile_height=120), path)
    return bool(rows)


def write_video(path: Path, target: Path) -> Path:
    """Write an H.264 video of an episode: its cameras side by side, above the instruction and the current skill.

    For a driving body, a view of its path from above is added beside the cameras.
    """
    with EpisodeFile(path) as episode:
        return encode_video(_video_frames(episode), target, rate=episode.rate)


def encode_video(pictures: Iterable[ImageArray], target: Path, *, rate: float) -> Path:
    """Write images (H, W, 3) as an H.264 video; height and width must be even, and the rate is in Hz."""
    from nimbus.datagen.files.av_library import av

    with replacing(target, durable=False, shared=True) as temporary:
        options = {"movflags": "+faststart"}
        with av.open(str(temporary), "w", format="mp4", options=options) as container:
            stream = container.add_stream("libx264", rate=round(rate))
            stream.pix_fmt = "yuv420p"
            stream.options = {"crf": "20", "preset": "veryfast", "threads": "1"}
            for picture in pictures:
                if not stream.codec_context.is_open:
                    stream.height, stream.width = picture.shape[:2]
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
    return target


def _save(picture: Image.Image, path: Path) -> None:
    kind = Image.registered_extensions().get(path.suffix.lower(), "PNG")
    with replacing(path, durable=False, shared=True) as temporary:
        picture.save(temporary, format=kind)


def camera_order(episode: EpisodeFile) -> list[str]:
    """Return the cameras in the order in which they are shown: those fixed in the world first."""
    mounts = {camera.name: camera.mount for camera in episode.layout().visual.cameras}
    return sorted(episode.cameras, key=lambda name: (mounts.get(name, "") != "", name))


def _has_images(path: Path) -> bool:
    with EpisodeFile(path) as episode:
        return bool(episode.cameras)


def _sheet_row(path: Path) -> SheetRow:
    with EpisodeFile(path) as episode:
        first, *others = camera_order(episode)
        last = episode.step_count - 1
        pictures = [_image(episode, first, round(moment * last)) for moment in _MOMENTS]
        pictures += [_image(episode, camera, round(moment * last)) for camera in others for moment in _MOMENTS[1:3]]
        step = round(_MOMENTS[1] * last)
        rgb = episode.rows(f"observations/images/{first}", step)
        stored = episode.modalities(first)
        if "depth" in stored:
            pictures.append(depth_colors(episode.rows(f"observations/depth/{first}", step)))
        if "instance" in stored:
            pictures.append(mask_overlay(episode.rows(f"observations/instance/{first}", step), rgb))
        if "normals" in stored:
            pictures.append(normal_colors(episode.rows(f"observations/normals/{first}", step)))
        return SheetRow(caption=episode.instruction, note=episode.episode_id, pictures=pictures)


def _view_row(clip: EpisodeView, camera: str) -> SheetRow:
    moments = np.unique(np.linspace(0, clip.length - 1, _VIEW_MOMENTS).round().astype(int)).tolist()
    pictures: list[ImageArray] = []
    with suppress(Unreadable):  # QA reports damaged images
        for moment in moments:
            pictures += clip.images[camera].read(moment, moment + 1)
    return SheetRow(caption=f"{clip.name}, {camera}, {clip.length} frames", pictures=pictures)


def _image(episode: EpisodeFile, camera: str, step: int) -> ImageArray:
    return episode.rows(f"observations/images/{camera}", step)


def _video_frames(episode: EpisodeFile) -> Iterator[ImageArray]:
    cameras = camera_order(episode)
    segments, rows = episode.segments, episode.array("skills/step")
    above = None
    if is_driven(episode):
        above = view_from_above(
            episode, height=max(episode.shape(f"observations/images/{name}")[1] for name in cameras)
        )
    for step in range(episode.step_count):
        pictures = [_image(episode, camera, step) for camera in cameras]
        pictures += [above.draw(step)] if above else []
        height = max(picture.shape[0] for picture in pictures)
        picture = np.concatenate([_pad(picture, height) for picture in pictures], axis=1)
        segment = segments[rows[step]] if rows[step] >= 0 else None
        caption = f"{segment.skill} {segment.target} · {segment.phase}" if segment else ""
        picture = np.concatenate([picture, caption_band(picture.shape[1], episode.instruction, caption)])
        # H.264 with subsampled chroma needs an even width and height.
        yield picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2]


def _pad(picture: ImageArray, height: int) -> ImageArray:
    return np.pad(picture, ((0, height - picture.shape[0]), (0, 0), (0, 0)))


@cache
def caption_band(width: int, instruction: str, caption: str) -> ImageArray:
    """Return a strip (44, width, 3) with two lines of text, to be placed below an image."""
    band = Image.new("RGB", (width, 44), INK)
    draw = ImageDraw.Draw(band)
    draw.text((10, 4), fit_text(instruction, width - 20, size=14), font=load_font(14), fill=PAPER)
    draw.text((10, 23), caption, font=load_font(13), fill=(150, 190, 230))
    return np.asarray(band)
