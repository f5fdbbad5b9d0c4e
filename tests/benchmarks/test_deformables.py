"""Criteria for cloth, and the chosen simulation method for a tenth of a second."""

from __future__ import annotations

import mujoco
import numpy as np

from benchmarks.deformables import VARIANTS, Result, build, measure_cloth


def test_chosen_cloth_has_vertex_contacts() -> None:
    """A flat cloth rests on the table with one contact per vertex, and stays flat and intact."""
    model = build(VARIANTS["chosen"])
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=30)
    assert data.ncon == model.nflexvert == 225
    ends = data.flexvert_xpos[model.flex_edge]
    stretch = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) / model.flexedge_length0
    assert np.abs(stretch - 1).max() < 0.01
    assert np.ptp(data.flexvert_xpos[:, 2]) < 1e-3


def test_unfinished_fold_does_not_pass() -> None:
    """A cloth whose motion has only begun is neither held nor folded."""
    found = measure_cloth(VARIANTS["chosen"], seconds=0.05)
    assert found.contacts > 0 and not found.note and not found.passes
    assert not found.is_held and not found.is_folded


def test_slow_cloth_does_not_pass() -> None:
    """A fold that works but costs too much does not pass."""
    assert Result(cpu=2.0, contacts=1, is_held=True, is_folded=True).passes
    assert not Result(cpu=2.1, contacts=1, is_held=True, is_folded=True).passes
