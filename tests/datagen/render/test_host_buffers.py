"""Buffers on the host are reused only after the arrays that view them are released."""

import gc

import numpy as np
import pytest
import warp as wp

from nimbus.datagen.render.host_buffers import HostBuffers

VALUES = wp.array(np.arange(24), dtype=wp.float32, device="cpu")


def test_copies_show_the_values_and_stay():
    buffers = HostBuffers(pinned=False)
    first = buffers.fetch(VALUES, 20)
    np.testing.assert_array_equal(first, np.arange(20))
    other = buffers.fetch(wp.zeros(24, dtype=wp.float32, device="cpu"), 24)
    np.testing.assert_array_equal(first, np.arange(20))
    assert not other.any() and buffers.size == 2 * VALUES.capacity


def test_buffers_are_used_again_when_no_part_is_shown():
    buffers = HostBuffers(pinned=False)
    part = buffers.fetch(VALUES, 24).reshape(4, 6)[1:, 2:]
    gc.collect()
    buffers.fetch(VALUES, 24)
    assert buffers.size == 2 * VALUES.capacity
    del part
    gc.collect()
    one, other = (buffers.fetch(VALUES, 24) for _ in range(2))
    assert buffers.size == 2 * VALUES.capacity
    assert not np.shares_memory(one, other)


def test_beyond_the_limit_arrays_are_ordinary():
    buffers = HostBuffers(pinned=False, limit=VALUES.capacity)
    one, other = (buffers.fetch(VALUES, 24) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert buffers.size == VALUES.capacity


def test_unused_buffers_of_another_size_make_room():
    buffers = HostBuffers(pinned=False, limit=VALUES.capacity)
    buffers.fetch(wp.zeros(3, dtype=wp.uint8, device="cpu"), 3)
    shown = buffers.fetch(VALUES, 24)
    assert len(shown) == 24 and buffers.size == VALUES.capacity


def test_without_lockable_pages_arrays_are_ordinary(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("Failed to allocate 96 bytes on device 'cpu'")

    monkeypatch.setattr(wp, "empty", refuse)
    buffers = HostBuffers()
    np.testing.assert_array_equal(buffers.fetch(VALUES, 24), np.arange(24))
    assert buffers.size == 0
