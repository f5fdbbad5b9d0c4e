"""Images of the live cameras are rendered again only when something has moved."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.ui.browser.live_cameras import is_still


def test_an_idle_arm_is_still_and_a_slow_one_is_not():
    poses = np.zeros((3, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    assert is_still(poses, poses[0] + 2e-6, poses[1] + 1e-3)
    assert not is_still(poses, poses[0] + [0.0, 0.0, 2e-4], poses[1])
    assert not is_still(poses, poses[0], poses[1] + [0.0, 1e-2, 0.0, 0.0])
