"""All checks of a dataset, in one reading of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.appearance import check_looks
from nimbus.datagen.datasets.quality.cross_episode import CrossEpisodeChecks, spread_of
from nimbus.datagen.datasets.quality.finding import Unreadable, fail
from nimbus.datagen.datasets.quality.limits import find_joint_limits
from nimbus.datagen.datasets.quality.pictures import CameraStatistics, PictureChecks
from nimbus.datagen.datasets.quality.row_checks import check_rows
from nimbus.datagen.datasets.quality.signals import SignalChecks
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import View
from nimbus.datagen.errors import Diagnostic, Severity

_STRIPS = 6
"""Episodes whose pictures a page shows."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What came of reading a dataset once."""

    findings: tuple[Diagnostic, ...]
    episode_count: int
    frame_count: int
    picture_count: int
    """Of all cameras."""
    pictures_looked_at: int
    lengths: Mapping[int, int] = field(default_factory=dict)
    """Rows by episode."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Episodes by instruction."""
    ranges: Mapping[str, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = field(default_factory=dict)
    """Lowest, mean and highest value of each column, by feature."""
    drawn: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """What was drawn, one value a plan."""
    looks: tuple[CameraStatistics, ...] = ()
    """Of the first episodes, with pictures."""

    @property
    def is_fit(self) -> bool:
        """Whether nothing fails the dataset."""
        return not any(finding.severity is Severity.FAIL for finding in self.findings)


def check(view: View, thresholds: Thresholds | None = None) -> list[Diagnostic]:
    """Everything that is wrong with a dataset."""
    return list(examine(view, thresholds).findings)


def examine(
    view: View,
    thresholds: Thresholds | None = None,
    *,
    robot: str = "",
    strips: bool = False,
    tell: Callable[[int], None] = lambda left: None,
) -> Examination:
    """Read a dataset once and check everything.

    Args:
        view: The dataset.
        thresholds: What is judged by.
        robot: Name or file of the robot, for its limits; that of the dataset when not given.
        strips: Whether pictures are kept for a page.
        tell: Called with how many episodes are yet to come.
    """
    thresholds = thresholds or Thresholds()
    found = list(view.structure())
    limits = find_joint_limits(robot or view.robot, view.joint_names)
    signals = SignalChecks(view.stats, thresholds, limits=limits, frame_count=view.frame_count, fps=view.fps)
    pictures, together = PictureChecks(view, thresholds), CrossEpisodeChecks()
    camera_count = 0
    for done, clip in enumerate(view.clips(), start=1):
        tell(view.episode_count - done)
        if isinstance(clip, Diagnostic):
            found.append(clip)
            continue
        camera_count = max(camera_count, len(clip.images))
        found += check_rows(clip, view, thresholds)
        found += signals.add(clip)
        together.add(clip)
        try:
            found += pictures.add(clip, strips=strips and clip.number < _STRIPS)
        except Unreadable as error:
            found.append(fail("files", error.where, error.what))
    found += signals.end()
    found += check_looks(pictures.looks, stats=view.stats, motions=together.motions, thresholds=thresholds)
    found += together.end(view, thresholds)
    return Examination(
        findings=tuple(found),
        episode_count=len(together.lengths),
        frame_count=sum(together.lengths.values()),
        picture_count=sum(together.lengths.values()) * camera_count,
        pictures_looked_at=pictures.looked_at,
        lengths=together.lengths,
        tasks={str(view.wordings.get(number, number)): count for number, count in together.tasks.most_common()},
        ranges={
            name: (known["low"], known["sum"] / known["count"], known["high"]) for name, known in signals.totals.items()
        },
        drawn=spread_of(together.drawn),
        looks=tuple(look for look in pictures.looks if look.strip),
    )
