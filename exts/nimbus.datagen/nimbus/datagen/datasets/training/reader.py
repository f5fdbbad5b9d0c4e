"""Random access to the samples of a dataset: frames with windows of past and future frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.training.frames import IMAGES, Frames, open_frames
from nimbus.datagen.datasets.training.order import FrameBlock
from nimbus.datagen.errors import suggest
from nimbus.datagen.policies.signal_view import SignalView

Sample = dict[str, Any]
"""Array of each feature, ``<feature>_is_pad`` for each feature with a window, and ``task``, ``episode_index``,
``frame_index``, ``index`` and ``timestamp`` [s]."""


class Reader:
    """Random access to samples, by row or by episode and frame.

    An image has the shape (H, W, 3) and the type uint8, a signal (D,) and float32. A feature with a window has an
    additional first axis for the offsets of the window. An offset beyond an end of the episode gives the frame at that
    end, and ``<feature>_is_pad`` is then True.

    Args:
        data: Folder or address of a Nimbus dataset, of shards, or of a LeRobot v3.0 dataset; or an open dataset.
        windows: Offsets [frames] by feature, such as
            ``{"action": range(16), "observation.images.front": (-1, 0)}``.
        features: Features to read; all by default.
        open_files: Number of episodes or videos that stay open.
        view: Form of states and actions, such as ``SignalView(actions="tool_pose")``; the stored form by default.

    Raises:
        InputError: There is no dataset, it cannot be read, or it does not support the view.
        ValueError: A feature does not exist, or a window has no offsets.
    """

    def __init__(
        self,
        data: Path | str | Frames,
        *,
        windows: Mapping[str, Sequence[int]] | None = None,
        features: Sequence[str] | None = None,
        open_files: int = 16,
        view: SignalView | None = None,
    ) -> None:
        is_folder = isinstance(data, Path | str)
        self.frames = open_frames(data, open_files=open_files, view=view) if is_folder else data
        self._arguments: dict[str, Any] = {
            "windows": windows,
            "features": features,
            "open_files": open_files,
            "view": view,
        }
        self._data = data
        known = (*self.frames.columns, *(f"{IMAGES}{name}" for name in self.frames.cameras))
        self.features = tuple(features or known)
        self.windows = {name: np.array(list(offsets), np.int64) for name, offsets in (windows or {}).items()}
        for name in (*self.features, *self.windows):
            if name not in known:
                raise ValueError(f"no feature '{name}'; {suggest(name, known)}")
        if empty := [name for name, offsets in self.windows.items() if not len(offsets)]:
            raise ValueError(f"the window of '{empty[0]}' has no offsets")
        self.features = tuple(dict.fromkeys((*self.features, *self.windows)))
        self.starts = np.concatenate([[0], np.cumsum(self.frames.lengths)]).astype(np.int64)

    def again(self) -> Reader:
        """Return a reader of the same data with separate open files, for another thread or process."""
        return _opened(self._folder(), self._arguments)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, row: int) -> Sample:
        """Return the sample of a row; rows count the frames of all episodes in order."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        episode = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.sample(episode, row - int(self.starts[episode]))

    def sample(self, episode: int, frame: int) -> Sample:
        """Return the sample of one frame of an episode."""
        return self.samples(episode, [frame])[0]

    def samples(self, episode: int, frames: Sequence[int] | NDArray[np.int64]) -> list[Sample]:
        """Return the samples of several frames of an episode, in the given order; each image is decoded once."""
        if not 0 <= episode < len(self.frames.lengths):
            raise IndexError(f"episode {episode} of {len(self.frames.lengths)}")
        length = int(self.frames.lengths[episode])
        wanted = np.asarray(frames, np.int64)
        if wanted.min() < 0 or wanted.max() >= length:
            raise IndexError(f"frames {wanted.min()} to {wanted.max()} of episode {episode}, which has {length}")
        samples = [self._named(episode, int(frame)) for frame in wanted]
        signals = self.frames.signals(episode)
        for name in self.features:
            offsets = self.windows.get(name)
            places = wanted[:, None] + (np.zeros(1, np.int64) if offsets is None else offsets)
            inside = np.clip(places, 0, length - 1)
            values, base = signals.get(name), 0
            is_kept = values is not None  # a sample gets a copy, because signals are cached
            if values is None:
                base = int(inside.min())
                values = self.frames.images(episode, name.removeprefix(IMAGES), base, int(inside.max()) + 1)
            for row, sample in enumerate(samples):
                here = inside[row] - base
                if offsets is not None:
                    sample[name], sample[f"{name}_is_pad"] = values[here], inside[row] != places[row]
                else:
                    sample[name] = values[int(here[0])].copy() if is_kept else values[int(here[0])]
        return samples

    def fetch(self, blocks: Sequence[FrameBlock]) -> None:
        """Fetch the data for some blocks from a store; frames of windows outside the blocks are omitted."""
        cameras = [name.removeprefix(IMAGES) for name in self.features if name.startswith(IMAGES)]
        self.frames.fetch(blocks, cameras)

    def close(self) -> None:
        """Close all files."""
        self.frames.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return _opened, (self._folder(), self._arguments)

    def _folder(self) -> Path | str:
        if not isinstance(self._data, Path | str):
            raise ValueError("a reader of an open dataset cannot be opened again: give the folder of the dataset")
        return self._data

    def _named(self, episode: int, frame: int) -> Sample:
        return {
            "task": self.frames.task(episode),
            "episode_index": episode,
            "frame_index": frame,
            "index": int(self.starts[episode]) + frame,
            "timestamp": frame / self.frames.fps,
        }


def _opened(folder: Path | str, arguments: dict[str, Any]) -> Reader:
    return Reader(folder, **arguments)


def collate(samples: Sequence[Sample]) -> dict[str, NDArray[Any] | list[str]]:
    """Combine samples into a batch: arrays are stacked along a new first axis, texts form a list."""
    return {
        name: [sample[name] for sample in samples] if isinstance(value, str) else np.stack([s[name] for s in samples])
        for name, value in samples[0].items()
    }
