"""An attempt fails if a view along its path shows an area that was not captured."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.splat_path import check_views
from nimbus.datagen.splats.rasterizer import SplatRasterizer
from tests.support.driven_set import driven_episode
from tests.support.splat_room import room_cloud


def test_views_of_nothing_are_outside_capture():
    """The path turns to a wall that was not captured; the detail has the value and the limit."""
    item = driven_episode(0)
    cloud = room_cloud(30_000)
    whole = check_views(SplatRasterizer(cloud), (item.layout,), item.trajectory)
    assert whole.outcome.success
    half = SplatRasterizer(cloud.rows(np.flatnonzero(cloud.positions[:, 1] < 4.5)))
    found = check_views(half, (item.layout,), item.trajectory).outcome
    assert (found.success, found.reason, found.phase) == (False, Reason.OUTSIDE_CAPTURE, "path")
    assert found.detail.endswith("at most 10%")
