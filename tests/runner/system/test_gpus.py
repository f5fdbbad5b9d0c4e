"""GPUs of a machine, as the driver lists them, and their selection by ``--gpus``."""

from __future__ import annotations

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.system.gpus import Gpu, list_gpus, parse_gpus, select_gpus

TABLE = """\
0, GPU-5e2b, NVIDIA H100 80GB HBM3, 9.0, 81000, 580.65.06
1, GPU-77aa, NVIDIA L40S, 8.9, 45000, 580.65.06
2, GPU-1234, NVIDIA GeForce RTX 4080, 8.9, 900, 580.65.06
some warning
"""
MIG = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5e2b)
  MIG 3g.40gb     Device  0: (UUID: MIG-aaaa-1)
  MIG 1g.10gb     Device  1: (UUID: MIG-bbbb-2)
GPU 1: NVIDIA L40S (UUID: GPU-77aa)
"""


def uuids(text: str, table: str = TABLE, listing: str = "") -> list[str]:
    return [gpu.uuid for gpu in select_gpus(text, parse_gpus(table, listing))]


def test_gpus_are_read_with_their_rt_cores():
    gpus = parse_gpus(TABLE)
    assert [(gpu.uuid, gpu.has_rt_cores, gpu.worker_count) for gpu in gpus] == [
        ("GPU-5e2b", False, 39),
        ("GPU-77aa", True, 21),
        ("GPU-1234", True, 0),
    ]
    expected = Gpu(number=1, uuid="GPU-77aa", name="NVIDIA L40S", capability=(8, 9), free_bytes=45000 << 20)
    (old,) = parse_gpus("1, GPU-77aa, NVIDIA L40S, 8.9, 45000")
    assert old == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", ["GPU-5e2b", "GPU-77aa"]),  # the third has no memory for a worker
        ("1", ["GPU-77aa"]),
        ("1, GPU-5e2b", ["GPU-77aa", "GPU-5e2b"]),
    ],
)
def test_gpus_are_selected_by_number_and_uuid(text: str, expected: list[str]):
    assert uuids(text) == expected


def test_mig_slices_stand_in_for_their_gpu():
    assert uuids("all", listing=MIG) == ["MIG-aaaa-1", "MIG-bbbb-2", "GPU-77aa"]
    assert uuids("MIG-bbbb-2", listing=MIG) == ["MIG-bbbb-2"]
    assert parse_gpus(TABLE, MIG)[1].worker_count == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7", "--gpus: unknown GPU '7'; known: 0, 1, 2"),
        ("0,0", "GPU GPU-5e2b is named 2 times; name each GPU once"),
        ("0,GPU-5e2b", "GPU GPU-5e2b is named 2 times"),
        ("2", "GPU 2 has 0.9 GB free, but a worker needs 2.1 GB; stop the programs on it"),
        ("", "unknown GPU ''"),
    ],
)
def test_a_wrong_selection_is_one_line(text: str, message: str):
    with pytest.raises(InputError, match=message):
        uuids(text)


def test_a_mig_parent_is_refused_with_its_slices():
    with pytest.raises(InputError, match="GPU 0 is split into MIG slices; name slices: MIG-aaaa-1,MIG-bbbb-2"):
        uuids("0", listing=MIG)


def test_an_old_driver_is_refused():
    with pytest.raises(InputError, match="driver 470.82.01 is too old for CUDA 13; install driver 580"):
        uuids("0", TABLE.replace("580.65.06", "470.82.01"))


def test_no_gpu_is_one_line(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_gpus() == []
    with pytest.raises(InputError, match="no NVIDIA GPU was found; check 'nvidia-smi'"):
        select_gpus("all", list_gpus())


def test_the_driver_is_asked_by_its_program(tmp_path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\nif [ "$1" = -L ]; then cat <<E\n{MIG}E\nelse cat <<E\n{TABLE}E\nfi\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert [gpu.uuid for gpu in list_gpus()] == ["GPU-5e2b", "MIG-aaaa-1", "MIG-bbbb-2", "GPU-77aa", "GPU-1234"]
