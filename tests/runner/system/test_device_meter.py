from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from nimbus.runner.system.device_meter import DISK, DeviceMeter, DiskCounters, own_share, parse_disk_statistics

STATISTICS = """   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
 259       1 nvme0n1 2691540 136730 1000 4829530 4897656 3530974 3000 4592119 0 61500 10159412
 254       0 vda 1
"""
DRIVER = """#!{python}
import time
print("GPU-aa, 50\\nGPU-aa, 100\\nGPU-bb, [N/A]\\nGPU-cc, 90", flush=True)
time.sleep(60)
"""


def test_counters_of_a_disk_are_read_by_its_numbers() -> None:
    assert parse_disk_statistics(STATISTICS, (259, 1)) == DiskCounters(busy_seconds=61.5, byte_count=4000 * 512)
    assert parse_disk_statistics(STATISTICS, (254, 0)) is None, "an old kernel reports fewer columns"
    assert parse_disk_statistics(STATISTICS, (0, 21)) is None


@pytest.mark.parametrize(("own", "expected"), [(0, 0.0), (250, 2.0), (1000, 8.0), (5000, 8.0)])
def test_a_run_is_charged_by_its_bytes(own: int, expected: float) -> None:
    start, now = DiskCounters(busy_seconds=1.0, byte_count=0), DiskCounters(busy_seconds=9.0, byte_count=1000)
    assert own_share(start, now, own) == expected
    assert own_share(start, start, own) == 0.0


def test_busy_seconds_of_gpus_are_those_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(DRIVER.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    meter = DeviceMeter(("GPU-aa", "GPU-bb", "MIG-dd"), tmp_path)
    pid, deadline = meter.pid, time.monotonic() + 60
    while "GPU-aa" not in (times := meter.read(own_bytes=0)) and time.monotonic() < deadline:
        time.sleep(0.01)
    meter.close()
    assert times.pop(DISK, 0.0) == 0.0
    assert times == {"GPU-aa": 1.5} and meter.read(own_bytes=0)["GPU-aa"] == 1.5
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_a_driver_no_gpu_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    meter = DeviceMeter(("GPU-aa",), tmp_path)
    assert meter.pid == 0 and "GPU-aa" not in meter.read(own_bytes=0)
    meter.close()
