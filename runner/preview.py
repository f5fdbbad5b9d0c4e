"""Pictures of a dataset: a contact sheet and short videos, drawn from the stored episodes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.folder import make_subfolder
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import disk

Pixels = NDArray[np.uint8]
Drawn = TypeVar("Drawn")

FOLDER_NAME = "preview"
SHEET_NAME = "contact_sheet.png"
_TILE_HEIGHT = 150
_GAP, _MARGIN, _CAPTION = 4, 20, 30
_PAPER, _INK, _FAINT = (250, 250, 248), (32, 32, 36), (120, 120, 128)
_MOMENTS = (0.0, 0.3, 0.6, 1.0)
_TURBO = np.array(
    [[48, 18, 59], [70, 107, 227], [40, 187, 236], [49, 242, 153], [162, 252, 60], [237, 208, 58], [251, 128, 34]]
    + [[210, 49, 5], [122, 4, 3]],
    dtype=np.float64,
)
"""Nine stops of the Turbo colour map, near to far."""


def write_previews(folder: Path, *, sheet_episodes: int = 8, video_episodes: int = 4) -> list[Path]:
    """Draw the contact sheet and the videos of the first episodes of a dataset.

    Args:
        folder: The dataset's folder.
        sheet_episodes: Rows of the contact sheet at most.
        video_episodes: Videos at most.

    Returns:
        The files written; none when no stored episode has images.
    """
    paths = list(islice(episodes_with_images(folder), max(sheet_episodes, video_episodes)))
    target = folder / FOLDER_NAME
    if not paths:
        return []
    with disk(target):
        make_subfolder(target)
        sheet = target / SHEET_NAME
        contact_sheet(paths[:sheet_episodes]).save(sheet, optimize=True)
        videos = list(readable(lambda path: write_video(path, target / f"{path.stem}.mp4"), paths[:video_episodes]))
    return [sheet, *videos]


def episodes_with_images(folder: Path) -> Iterator[Path]:
    """Files of the stored episodes that have cameras, by index and variant; each is opened when it is asked for."""
    ledger = Ledger(folder, read_only=True)
    try:
        paths = [folder / attempt.path for attempt in ledger.stored()]
    finally:
        ledger.close()
    return (path for path, has_images in readable(lambda path: (path, _has_images(path)), paths) if has_images)


def readable(draw: Callable[[Path], Drawn], paths: Iterable[Path]) -> Iterator[Drawn]:
    """What can be drawn of episodes; those that cannot be read are for ``nimbus verify`` to tell."""
    for path in paths:
        with suppress(InputError):
            yield draw(path)


def contact_sheet(paths: list[Path]) -> Image.Image:
    """One row an episode: the first camera four times, the others twice, then depth, instances and normals."""
    rows = list(readable(_sheet_row, paths))
    width = max((sum(tile.width + _GAP for tile in tiles) for _, _, tiles in rows), default=0) - _GAP + 2 * _MARGIN
    height = _MARGIN + len(rows) * (_CAPTION + _TILE_HEIGHT + _MARGIN)
    sheet = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(sheet)
    top = _MARGIN
    for instruction, episode_id, tiles in rows:
        draw.text((_MARGIN, top), _drawable(instruction), font=_font(17), fill=_INK)
        draw.text((width - _MARGIN, top + 2), episode_id, font=_font(13), fill=_FAINT, anchor="ra")
        left = _MARGIN
        for tile in tiles:
            sheet.paste(tile, (left, top + _CAPTION))
            left += tile.width + _GAP
        top += _CAPTION + _TILE_HEIGHT + _MARGIN
    return sheet


def write_video(path: Path, target: Path) -> Path:
    """H.264 video of an episode, its cameras side by side over the instruction and the running skill."""
    import av

    try:
        with EpisodeFile(path) as episode, av.open(str(target), "w", options={"movflags": "+faststart"}) as container:
            stream = container.add_stream("libx264", rate=round(episode.rate))
            stream.pix_fmt = "yuv420p"
            stream.options = {"crf": "20", "preset": "veryfast", "threads": "1"}
            for picture in _video_frames(episode):
                if not stream.codec_context.is_open:
                    stream.height, stream.width = picture.shape[:2]
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
    except InputError:
        target.unlink(missing_ok=True)
        raise
    return target


def camera_order(episode: EpisodeFile) -> list[str]:
    """Cameras as they are shown: those fixed in the world first."""
    mounts = {camera.name: camera.mount for camera in episode.layout().visual.cameras}
    return sorted(episode.cameras, key=lambda name: (mounts.get(name, "") != "", name))


def depth_colors(depth: NDArray[np.uint16]) -> Pixels:
    """Colours from near (blue) to far (red), over the range of the picture; black where nothing was hit."""
    hit = depth > 0
    near, far = np.percentile(depth[hit], (1, 99)) if hit.any() else (0.0, 1.0)
    place = np.clip((depth - near) / max(far - near, 1.0), 0, 1) * (len(_TURBO) - 1)
    stops = np.arange(len(_TURBO))
    colors = np.stack([np.interp(place, stops, _TURBO[:, channel]) for channel in range(3)], axis=-1)
    return np.where(hit[..., None], colors, 0).astype(np.uint8)


def mask_colors(mask: NDArray[np.uint8], rgb: Pixels) -> Pixels:
    """Each instance in its own colour over a grey picture."""
    hues = (np.arange(256) * 0.381966) % 1.0
    palette = 255 * np.clip(np.abs((hues[:, None] * 6 + np.array([0, 4, 2])) % 6 - 3) - 1, 0, 1)
    grey = np.repeat(rgb.mean(axis=-1, keepdims=True), 3, axis=-1)
    return np.where(mask[..., None] > 0, 0.3 * grey + 0.7 * palette[mask], 0.5 * grey + 60).astype(np.uint8)


def _has_images(path: Path) -> bool:
    with EpisodeFile(path) as episode:
        return bool(episode.cameras)


def _sheet_row(path: Path) -> tuple[str, str, list[Image.Image]]:
    with EpisodeFile(path) as episode:
        first, *others = camera_order(episode)
        last = episode.step_count - 1
        tiles = [_image(episode, first, round(moment * last)) for moment in _MOMENTS]
        tiles += [_image(episode, camera, round(moment * last)) for camera in others for moment in _MOMENTS[1:3]]
        step = round(_MOMENTS[1] * last)
        rgb = episode.rows(f"observations/images/{first}", step)
        tiles.append(depth_colors(episode.rows(f"observations/depth/{first}", step)))
        tiles.append(mask_colors(episode.rows(f"observations/instance/{first}", step), rgb))
        tiles.append((episode.rows(f"observations/normals/{first}", step).astype(np.int16) + 128).astype(np.uint8))
        return episode.instruction, episode.episode_id, [_tile(pixels) for pixels in tiles]


def _image(episode: EpisodeFile, camera: str, step: int) -> Pixels:
    return episode.rows(f"observations/images/{camera}", step)


def _tile(pixels: Pixels) -> Image.Image:
    image = Image.fromarray(pixels)
    width = round(image.width * _TILE_HEIGHT / image.height)
    return image.resize((width, _TILE_HEIGHT), Image.Resampling.LANCZOS)


def _video_frames(episode: EpisodeFile) -> Iterator[Pixels]:
    cameras = camera_order(episode)
    segments, rows = episode.segments, episode.array("skills/step")
    for step in range(episode.step_count):
        pictures = [_image(episode, camera, step) for camera in cameras]
        height = max(picture.shape[0] for picture in pictures)
        picture = np.concatenate([_pad(picture, height) for picture in pictures], axis=1)
        segment = segments[rows[step]] if rows[step] >= 0 else None
        caption = f"{segment.skill} {segment.target} · {segment.phase}" if segment else ""
        picture = np.concatenate([picture, _band(picture.shape[1], episode.instruction, caption)])
        # H.264 wants even sizes.
        yield picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2]


def _pad(picture: Pixels, height: int) -> Pixels:
    return np.pad(picture, ((0, height - picture.shape[0]), (0, 0), (0, 0)))


@cache
def _band(width: int, instruction: str, caption: str) -> Pixels:
    band = Image.new("RGB", (width, 44), _INK)
    draw = ImageDraw.Draw(band)
    draw.text((10, 4), _drawable(instruction), font=_font(14), fill=_PAPER)
    draw.text((10, 23), caption, font=_font(13), fill=(150, 190, 230))
    return np.asarray(band)


def _drawable(text: str) -> str:
    """Letters without accents: the font that comes with Pillow has no others."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)
