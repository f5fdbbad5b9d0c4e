"""GPUs of a run, by its flags."""

from __future__ import annotations

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.cell import devices
from nimbus.runner.cell.devices import select_devices
from nimbus.runner.system.gpus import parse_gpus

TABLE = "0, GPU-5e2b, H100, 9.0, 81000, 580.65.06\n1, GPU-77aa, L40S, 8.9, 45000, 580.65.06\n"


def select(gpus: str | None, *, device: str = "cpu", planner: str = "ompl") -> tuple[str, ...]:
    return select_devices(gpus, device=device, simulator="newton", planner=planner).uuids


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices, "list_gpus", lambda: parse_gpus(TABLE))


def test_a_renderer_on_gpus_uses_all_of_them():
    assert select(None, device="cuda") == ("GPU-5e2b", "GPU-77aa")
    assert select("1", device="cuda") == ("GPU-77aa",)


def test_planners_are_spread_over_gpus_beside_a_renderer_on_the_cpu():
    """``--planner curobo --gpus all`` was once refused, because the renderer used no GPU."""
    assert select("all", planner="curobo") == ("GPU-5e2b", "GPU-77aa")
    assert select(None, planner="curobo") == ()


def test_gpus_of_a_run_without_a_use_for_them_are_refused():
    with pytest.raises(InputError, match="no part of this run uses a GPU"):
        select("0")
