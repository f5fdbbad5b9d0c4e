"""Workers are spread over GPUs, and a GPU that fails is left out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.runner.cell.queue.gpu_allocation import GpuAllocation, is_device_error
from nimbus.runner.cell.queue.scheduler import limit_split


@settings(max_examples=50)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_every_gpu_is_filled_and_none_is_overfull(counts: list[int]):
    allocation = GpuAllocation([f"GPU-{number}" for number in range(len(counts))], counts)
    occupied: list[str] = []
    while gpu := allocation.choose(occupied):
        occupied.append(gpu)
    assert [occupied.count(f"GPU-{number}") for number in range(len(counts))] == counts


def test_larger_gpus_get_more_workers():
    allocation = GpuAllocation(["small", "large"], [2, 6])
    occupied: list[str] = []
    for _ in range(4):
        occupied.append(allocation.choose(occupied))
    assert occupied.count("large") == 3


def test_a_gpu_is_lost_after_two_failures_in_a_row():
    allocation = GpuAllocation(["a", "b"], [2, 2])
    assert not allocation.record_failure("a")
    allocation.record_result("a")
    assert not allocation.record_failure("a")
    assert allocation.record_failure("a")
    assert allocation.lost == ["a"] and allocation.worker_count == 2
    assert allocation.choose([]) == "b"
    assert not allocation.record_failure("a"), "it is lost once"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RuntimeError: CUDA error 719: unspecified launch failure", True),
        ("Warp CUDA error 2: out of memory (in function wp_alloc_device_async)", True),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", True),
        ("no CUDA-capable device is detected", True),
        ("KeyError: 'cup'", False),
        ("MemoryError", False),
    ],
)
def test_errors_of_a_device_are_recognized(text: str, expected: bool):
    assert is_device_error(text) is expected


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 20))
def test_limited_splits_fit_and_keep_both_roles(planners: int, renderers: int, most: int):
    split = limit_split((planners, renderers), most)
    assert sum(split) <= max(1, most) or sum(split) == planners + renderers <= most
    assert split[0] <= planners and split[1] <= renderers
    if planners and renderers and most >= 2:
        assert min(split) >= 1
    if planners + renderers <= most:
        assert split == (planners, renderers)
