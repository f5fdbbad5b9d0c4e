"""Images of an episode as video: an MP4 beside its HDF5 file for each camera, and what that file says of it."""

from __future__ import annotations

import hashlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from nimbus.datagen.files.bounded import Count, Pixels
from nimbus.datagen.files.own_files import remove_file
from nimbus.datagen.store.episode_file.fault_tolerant_file import FaultTolerantFile
from nimbus.datagen.store.episode_file.h264 import CODEC, ENCODER, FRAGMENTED, PIXELS, Encoder, check_size, whole_rate
from nimbus.datagen.store.episode_file.statistics import histogram
from nimbus.datagen.store.ledger.attempt import Video
from nimbus.datagen.store.publish import storage_error

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import Task

SUFFIX = ".mp4"
IMAGE_SETTINGS = ("images", "video encoder")
"""Names that :func:`image_settings` gives."""


@dataclass(frozen=True, kw_only=True)
class VideoRecord:
    """What an episode says of the file that holds what one camera saw."""

    byte_count: Count
    sha256: str
    """Of the file's bytes."""
    frame_count: Count
    width: Pixels
    height: Pixels
    fps: Annotated[int, Meta(ge=1, le=100_000)]
    codec: str
    pixel_format: str
    encoder: dict[str, str]
    """Its settings."""
    rendered_sha256: str
    """Of the rendered images, (T, H, W, 3) bytes: a fresh rendering can be compared with it to the last bit."""


class CameraVideo:
    """Writes the video of one camera while its images come.

    Args:
        path: The file to make; must not exist.
        camera: Its name.
        rate: [Hz] steps a second.
        size: Width and height.

    Raises:
        InputError: H.264 cannot hold such images, or the rate is no whole number.
    """

    def __init__(self, path: Path, camera: str, *, rate: float, size: tuple[int, int]) -> None:
        self.path = path
        self._size = size
        self._fps = whole_rate(rate, where=f"camera '{camera}'")
        check_size(camera, size, where=path.parent.parent)
        self._rendered = hashlib.sha256()
        self._frame_count = 0
        self.histogram: NDArray[np.int64] = np.zeros((3, 256), np.int64)
        self._sink = FaultTolerantFile(path)
        self._encoder = Encoder(self._sink, fps=self._fps, size=size, flags=FRAGMENTED)
        self._is_open = True

    def write(self, images: NDArray[np.uint8]) -> None:
        """Append (T, H, W, 3) sRGB images."""
        images = np.ascontiguousarray(images, np.uint8)
        self._encoder.write(images)
        self._rendered.update(images.data)
        self.histogram += histogram(images)
        self._frame_count += len(images)

    def finish(self) -> VideoRecord:
        """End the file and put it on the disk; ask :meth:`check` whether that went well."""
        self._encoder.finish()
        self._close()
        byte_count, sha256 = file_hash(self.path)
        return VideoRecord(
            byte_count=byte_count,
            sha256=sha256,
            frame_count=self._frame_count,
            width=self._size[0],
            height=self._size[1],
            fps=self._fps,
            codec=CODEC,
            pixel_format=PIXELS,
            encoder=ENCODER,
            rendered_sha256=self._rendered.hexdigest(),
        )

    def check(self) -> None:
        """Ask whether all went well so far.

        Raises:
            StorageError: A write failed; the file is worthless.
        """
        if self._sink.error is not None:
            raise storage_error(self._sink.error, self.path)

    def discard(self) -> None:
        """Close and remove the file."""
        if self._is_open:
            self._encoder.abandon()
            self._close()
        remove_file(self.path)

    def _close(self) -> None:
        self._is_open = False
        self._sink.close()


def video_path(episode: str, camera: str) -> str:
    """Path of a video in a dataset.

    Args:
        episode: Id of its episode.
        camera: Name of the camera.
    """
    return f"episodes/{episode}.{camera}{SUFFIX}"


def staged_video_path(staged: Path, episode: str, path: str) -> Path:
    """Where a file of an episode is staged.

    Args:
        staged: Where its HDF5 file is staged, under the episode's id and more.
        episode: Its id.
        path: Where the file will be, relative to the dataset.
    """
    if not path.endswith(SUFFIX):
        return staged
    name = path.rpartition("/")[2].removesuffix(SUFFIX)
    return staged.with_name(name + staged.name.removeprefix(episode))


def stored_video(record: VideoRecord, *, episode: str, camera: str) -> Video:
    """What the ledger knows of a video."""
    return Video(path=video_path(episode, camera), byte_count=record.byte_count, sha256=record.sha256)


NO_IMAGES = "none"
"""Choice of a run that renders nothing: its layouts have no cameras."""


def image_settings(images: str) -> dict[str, str]:
    """What a dataset's origin and provenance say of how images are stored; nothing of lossless ones."""
    if images == NO_IMAGES:
        return {"images": images}
    return {} if images == "lossless" else {"images": images, "video encoder": f"av {importlib.metadata.version('av')}"}


def check_cameras(task: Task) -> None:
    """Refuse, before anything is made, a task whose images no video can hold.

    Raises:
        InputError: A camera's size is odd, or the rate is no whole number.
    """
    whole_rate(task.rate, where=task.where("rate"))
    for name, camera in task.cameras.items():
        check_size(name, camera.size, where=task.where("cameras", name))


def file_hash(path: Path) -> tuple[int, str]:
    """Bytes of a file, and their SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest
