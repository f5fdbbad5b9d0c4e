"""Signals of the episodes that were read last are kept, up to a number and a size."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.datasets.export.source import Signals
from nimbus.datagen.datasets.training import frames
from nimbus.datagen.datasets.training.frames import KeptSignals


def signals(episode: int) -> Signals:
    rows = np.full((10, 10), episode, np.float32)
    return Signals(state=rows, velocity=rows, action=rows, instruction="")


@pytest.mark.parametrize(("limit", "value"), [("_KEPT", 2), ("_KEPT_BYTES", 3000)])
def test_the_oldest_episode_is_read_again(monkeypatch: pytest.MonkeyPatch, limit: str, value: int):
    monkeypatch.setattr(frames, limit, value)
    read: list[int] = []
    kept = KeptSignals(lambda episode: read.append(episode) or signals(episode))
    for episode in (0, 1, 0, 2, 0, 1):
        assert kept(episode).state[0, 0] == episode
    assert read == [0, 1, 2, 1]


def test_one_large_episode_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(frames, "_KEPT_BYTES", 1)
    read: list[int] = []
    kept = KeptSignals(lambda episode: read.append(episode) or signals(episode))
    assert kept(3) is kept(3) and read == [3]
