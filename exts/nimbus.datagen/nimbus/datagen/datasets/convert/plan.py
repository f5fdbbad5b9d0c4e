"""Plan of a conversion: the episodes of the new dataset, their order and their new indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from nimbus.datagen.datasets.convert.lerobot_set import LeRobotEpisode, LeRobotSet
from nimbus.datagen.datasets.convert.meta_files import split_range
from nimbus.datagen.datasets.convert.remux import Cut

_IMAGE_STATS = {"min", "max", "mean", "std", "count"}


@dataclass(frozen=True, kw_only=True)
class ConversionPlan:
    """Plan of a conversion; item ``i`` becomes episode ``i`` of the new dataset."""

    source: LeRobotSet
    items: tuple[LeRobotEpisode, ...]

    @cached_property
    def starts(self) -> list[int]:
        """Number of frames before each episode; the last entry is the total number."""
        return [0, *np.cumsum([item.length for item in self.items]).tolist()]

    @property
    def frame_count(self) -> int:
        """Number of frames of one camera in all episodes."""
        return sum(item.length for item in self.items)

    @cached_property
    def tasks(self) -> dict[int, int]:
        """New number by old number of each instruction that remaining episodes use."""
        if len(self.items) == len(self.source.items):
            return {number: number for number in self.source.wordings}
        kept = {text for item in self.items for text in item.tasks}
        numbers = [number for number, text in sorted(self.source.wordings.items()) if text in kept]
        return {number: position for position, number in enumerate(numbers)}

    @property
    def wordings(self) -> dict[int, str]:
        """Instruction by new number."""
        return {new: self.source.wordings[old] for old, new in self.tasks.items()}

    @property
    def splits(self) -> dict[str, str]:
        """Splits of the source, reduced to the remaining episodes.

        If the source has no splits, or a split that is not a range, all episodes are in the split ``train``.
        """
        found: dict[str, str] = {}
        numbers = [item.number for item in self.items]
        for name, text in (self.source.info.get("splits") or {}).items():
            if (split := split_range(text)) is None:
                return {"train": f"0:{len(numbers)}"}
            first, last = (int(np.searchsorted(numbers, end)) for end in (split.start, split.stop))
            found[name] = f"{first}:{last}"
        return found or {"train": f"0:{len(numbers)}"}

    @cached_property
    def keeps_image_stats(self) -> bool:
        """True if every episode has statistics of all its videos."""
        names = self.source.videos
        return all(item.image_stats.get(name, {}).keys() >= _IMAGE_STATS for item in self.items for name in names)

    def cuts(self, feature: str, positions: Sequence[int]) -> list[Cut]:
        """Return the video segments of some episodes.

        Args:
            feature: Feature of the video.
            positions: New indices of the episodes.
        """
        return [self._cut(self.items[position], feature) for position in positions]

    def row_sizes(self) -> list[int]:
        """Return the approximate size of each episode's rows in a file [bytes]."""
        return self._sizes([item.rows for item in self.source.items], [item.rows for item in self.items])

    def video_sizes(self, feature: str) -> list[int]:
        """Return the approximate size of each episode's video [bytes]."""
        every = [item.clips[feature].path for item in self.source.items]
        return self._sizes(every, [item.clips[feature].path for item in self.items])

    def _sizes(self, every: list[Path], mine: list[Path]) -> list[int]:
        """Return the size of each episode, in proportion to its frames in the file [bytes].

        Args:
            every: File of each episode of the source.
            mine: File of each episode of the plan.
        """
        frames: Counter[Path] = Counter()
        for path, item in zip(every, self.source.items, strict=True):
            frames[path] += item.length
        sizes = {path: path.stat().st_size for path in set(mine)}
        return [round(sizes[path] * item.length / frames[path]) for path, item in zip(mine, self.items, strict=True)]

    def _cut(self, item: LeRobotEpisode, feature: str) -> Cut:
        clip = item.clips[feature]
        name = clip.path.relative_to(self.source.folder).as_posix()
        return Cut(clip=clip, length=item.length, name=f"{name}, episode {item.number}")
