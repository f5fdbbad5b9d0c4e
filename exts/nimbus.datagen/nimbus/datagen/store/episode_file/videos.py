"""Videos of an episode: one MP4 per camera beside the HDF5 file, and its record in that file."""

from __future__ import annotations

import hashlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from nimbus.datagen.files.bounded import Count, Pixels, check_regular
from nimbus.datagen.files.own_files import remove_file
from nimbus.datagen.store.episode_file.fault_tolerant_file import FaultTolerantFile
from nimbus.datagen.store.episode_file.h264 import CODEC, ENCODER, FRAGMENTED, PIXELS, Encoder, check_size, whole_rate
from nimbus.datagen.store.episode_file.statistics import histogram
from nimbus.datagen.store.ledger.attempt import Video
from nimbus.datagen.store.publish import storage_error

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import BaseTask

SUFFIX = ".mp4"
IMAGE_SETTINGS = ("images", "video encoder")
"""Names of the settings returned by :func:`image_settings`."""


@dataclass(frozen=True, kw_only=True)
class VideoRecord:
    """Record of one camera's video in an episode."""

    byte_count: Count
    sha256: str
    """SHA-256 of the file."""
    frame_count: Count
    width: Pixels
    height: Pixels
    fps: Annotated[int, Meta(ge=1, le=100_000)]
    codec: str
    pixel_format: str
    encoder: dict[str, str]
    """Settings of the encoder."""
    rendered_sha256: str
    """SHA-256 of the rendered images, (T, H, W, 3) bytes, for exact comparison with a new rendering."""


class CameraVideo:
    """Encoder of one camera's video as its images arrive.

    Args:
        path: File to create; it must not exist.
        camera: Name of the camera.
        rate: Steps per second [Hz].
        size: Width and height [px].

    Raises:
        InputError: H.264 cannot hold images of this size, or the rate is not a whole number.
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
        """Finish and sync the file; call :meth:`check` for write errors."""
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
        """Raise the first write error.

        Raises:
            StorageError: A write failed; the file is unusable.
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
    """Return the path of a video in a dataset.

    Args:
        episode: Id of the episode.
        camera: Name of the camera.
    """
    return f"episodes/{episode}.{camera}{SUFFIX}"


def staged_video_path(staged: Path, episode: str, path: str) -> Path:
    """Return the staged path of an episode's file.

    Args:
        staged: Staged path of its HDF5 file, which begins with the episode's id.
        episode: Id of the episode.
        path: Final path of the file, relative to the dataset.
    """
    if not path.endswith(SUFFIX):
        return staged
    name = path.rpartition("/")[2].removesuffix(SUFFIX)
    return staged.with_name(name + staged.name.removeprefix(episode))


def stored_video(record: VideoRecord, *, episode: str, camera: str) -> Video:
    """Return the ledger's record of a video."""
    return Video(path=video_path(episode, camera), byte_count=record.byte_count, sha256=record.sha256)


NO_IMAGES = "none"
"""Value of the setting for a run without rendering, whose layouts have no cameras."""


def image_settings(images: str) -> dict[str, str]:
    """Return the image settings for a dataset's origin and provenance; empty for lossless images."""
    if images == NO_IMAGES:
        return {"images": images}
    return {} if images == "lossless" else {"images": images, "video encoder": f"av {importlib.metadata.version('av')}"}


def check_cameras(task: BaseTask) -> None:
    """Refuse a task whose images cannot be stored as video, before anything is made.

    Raises:
        InputError: A camera's size is odd, or the rate is not a whole number.
    """
    whole_rate(task.rate, where=task.where("rate"))
    for name, camera in task.cameras.items():
        check_size(name, camera.size, where=task.where("cameras", name))


def file_hash(path: Path) -> tuple[int, str]:
    """Return the size of a file [bytes] and its SHA-256.

    Raises:
        InputError: It is not a regular file, or a link out of its dataset.
    """
    check_regular(path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest
