"""Foreign layouts: values that determine the amount of computation are limited."""

from __future__ import annotations

from typing import Any

import pytest

from nimbus.datagen.episode.layout import Camera, RobotSetup, Sensor
from nimbus.datagen.files.codec import from_plain

CAMERA = {"name": "front", "mount": "", "position": [0, 0, 1], "wxyz": [1, 0, 0, 0], "vertical_fov": 1.0}


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (Camera, CAMERA | {"width": 10**6, "height": 240}),
        (Camera, CAMERA | {"width": 320, "height": 0}),
        (Sensor, {"antialiasing": 1000}),
        (Sensor, {"blur": 1e9}),
        (RobotSetup, {"delay": 1e9}),
    ],
)
def test_a_layout_decides_a_limited_effort(kind: type, plain: dict[str, Any]):
    with pytest.raises(ValueError):
        from_plain(kind, plain)
