"""A cell spreads its workers over GPUs, and continues without a GPU that fails."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nimbus.runner.cell.transport.spec import CudaDevices
from tests.support.cells import Run, finish_here, make_spec, until

EPISODES = 12
EVERYWHERE = {f"plan {index}": "gpu" for index in range(EPISODES)}


@pytest.mark.slow
def test_workers_are_spread_over_gpus(tmp_path: Path):
    devices = CudaDevices(uuids=("GPU-a", "GPU-b"), worker_counts=(2, 1))
    spec = make_spec(tmp_path / "data", episodes=4, workers=(2, 2), gpus=devices, mishaps={"plan 1": "hold"})
    run = Run(spec)
    until(lambda: (status := run.status()) is not None and len(status.workers) == 3)
    status = run.status()
    assert status is not None
    assert Counter(worker.gpu for worker in status.workers) == {"GPU-a": 2, "GPU-b": 1}, (
        "four were asked for, three fit"
    )
    run.let_go()
    run.finish()


@pytest.mark.slow
def test_a_gpu_that_fails_loses_its_workers_not_the_run(tmp_path: Path):
    devices = CudaDevices(uuids=("GPU-bad", "GPU-good"), worker_counts=(1, 2))  # the planner gets the first one
    spec = make_spec(
        tmp_path / "data", episodes=EPISODES, workers=(1, 1), fixed_roles=True, mishaps=EVERYWHERE, gpus=devices
    )
    run = Run(spec)
    hashes = run.finish()
    assert [fault.kind for fault in run.faults()] == ["gpu", "gpu"], "two in a row take a GPU out"
    assert hashes == finish_here(make_spec(tmp_path / "serial" / "data", episodes=EPISODES))


@pytest.mark.slow
def test_a_run_without_gpus_left_ends_with_its_reason(tmp_path: Path):
    devices = CudaDevices(uuids=("GPU-bad",), worker_counts=(2,))
    spec = make_spec(tmp_path / "data", episodes=EPISODES, workers=(1, 1), mishaps=EVERYWHERE, gpus=devices)
    done = Run(spec).end(1)
    assert "every GPU of the run failed, the last one GPU-bad" in done.err + done.out
