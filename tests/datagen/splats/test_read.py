"""Files of splats: every format gives the same cloud, and every broken file causes one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.read import has_splats, read_splats
from nimbus.datagen.splats.training_ply import write_training_ply
from tests.support.splat_reference import random_cloud, write_compressed_ply, write_spz


def assert_close(one: SplatCloud, other: SplatCloud, *, place: float, color: float, turn: float) -> None:
    assert np.abs(one.positions - other.positions).max() <= place
    assert np.abs(np.log(one.scales / other.scales)).max() < 0.04
    assert np.abs(one.opacities - other.opacities).max() < 0.003
    assert np.abs(one.colors - other.colors).max() <= color
    assert np.abs(np.sum(one.wxyz * other.wxyz, axis=1)).min() > 1 - turn
    assert one.degree == other.degree
    if one.harmonics is not None and other.harmonics is not None:
        assert np.abs(one.harmonics.astype(float) - other.harmonics.astype(float)).max() < 0.02


def test_training_ply_gives_cloud_back(tmp_path: Path):
    cloud = random_cloud(300)
    write_training_ply(cloud, tmp_path / "room.ply")
    assert_close(cloud, read_splats(tmp_path / "room.ply"), place=0, color=1e-6, turn=1e-6)


def test_training_ply_reads_harmonics_by_channel(tmp_path: Path):
    """The columns of one color channel are consecutive, as training programs write them."""
    names = ["x", "y", "z", "nx", "ny", "nz", *(f"f_dc_{i}" for i in range(3)), *(f"f_rest_{i}" for i in range(9))]
    names += ["opacity", *(f"scale_{i}" for i in range(3)), *(f"rot_{i}" for i in range(4))]
    values = np.zeros((2, len(names)), "<f4")
    values[:, 9:18] = np.arange(9)
    values[:, -4:] = (2, 0, 0, 0)
    lines = ["ply", "format binary_little_endian 1.0", "comment made by hand", "element vertex 2"]
    lines += [f"property float {name}" for name in names] + ["end_header", ""]
    (tmp_path / "a.ply").write_bytes("\n".join(lines).encode() + values.tobytes())
    cloud = read_splats(tmp_path / "a.ply")
    assert cloud.harmonics is not None and cloud.harmonics[0].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert cloud.wxyz[0].tolist() == [1, 0, 0, 0] and cloud.opacities[0] == 0.5 and cloud.colors[0, 0] == 0.5


@pytest.mark.parametrize("degree", [0, 2])
def test_compressed_ply_gives_cloud_back(tmp_path: Path, degree: int):
    cloud = random_cloud(600, degree=degree)
    write_compressed_ply(cloud, tmp_path / "room.compressed.ply")
    assert_close(cloud, read_splats(tmp_path / "room.compressed.ply"), place=0.004, color=0.01, turn=1e-4)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_spz_gives_cloud_back(tmp_path: Path, version: int):
    cloud = replace(random_cloud(300, degree=3 if version > 2 else 0), is_antialiased=version == 3)
    write_spz(cloud, tmp_path / "room.spz", version=version)
    found = read_splats(tmp_path / "room.spz")
    assert_close(cloud, found, place=0.001, color=0.01, turn=5e-3 if version < 3 else 1e-5)
    assert found.is_antialiased == (version == 3)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _set_nan(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-4 * 17 : -4 * 16] = np.float32(np.nan).tobytes()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_cut, "is truncated"),
        (_set_nan, "positions of splat 9 are not finite numbers"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(b"ply\nformat ascii 1.0\nend_header\n"), "format ascii"),
        (lambda path: path.write_bytes(b"solid cube"), "is not a PLY file"),
        (
            lambda path: path.write_bytes(
                b"ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float x\nend_header\nabcd"
            ),
            "has no column y",
        ),
        (
            lambda path: path.write_bytes(
                b"ply\nformat binary_little_endian 1.0\nelement vertex " + b"9" * 5000 + b"\nend_header\n"
            ),
            "its header has 'element vertex 9999",
        ),
        (
            lambda path: path.write_bytes(
                b"ply\nformat binary_little_endian 1.0\nelement face 1\nproperty list uchar int v\nend_header\n"
            ),
            "property list",
        ),
    ],
)
def test_broken_ply_is_refused(tmp_path: Path, spoil: Callable[[Path], object], said: str):
    path = tmp_path / "room.ply"
    write_training_ply(random_cloud(10), path)
    spoil(path)
    with pytest.raises(InputError, match=said) as caught:
        read_splats(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [2, 4])
def test_broken_spz_is_refused(tmp_path: Path, version: int):
    path = tmp_path / "room.spz"
    write_spz(random_cloud(50), path, version=version)
    content = path.read_bytes()
    for broken in (content[:-9], content[:20], b"NGSP" + b"\xff" * 60, b"\x1f\x8b" + bytes(20), bytes(100)):
        path.write_bytes(broken)
        with pytest.raises(InputError) as caught:
            read_splats(path)
        assert "\n" not in str(caught.value)


def test_too_many_splats_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("nimbus.datagen.splats.cloud.MOST_SPLATS", 20)
    write_training_ply(random_cloud(21), tmp_path / "room.ply")
    with pytest.raises(InputError, match="21 splats; the limit is 20"):
        read_splats(tmp_path / "room.ply")


def test_splat_files_are_known_by_columns(tmp_path: Path):
    write_training_ply(random_cloud(3), tmp_path / "a.ply")
    write_compressed_ply(random_cloud(3), tmp_path / "b.ply")
    (tmp_path / "c.ply").write_bytes(b"ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nend_header\n")
    assert [has_splats(tmp_path / f"{name}.ply") for name in "abc"] == [True, True, False]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b" max_r\n", b" max_q\n", "has no column max_r"),
        (b" max_scale_y\n", b" max_scale_q\n", "has no column max_scale_y"),
        (b" f_rest_3\n", b" f_rest_x\n", "has no column f_rest_3"),
        (b"uint packed_color", b"float packed_color", "column packed_color is not of type uint"),
    ],
    ids=["bound", "scale", "harmonic", "type"],
)
def test_compressed_ply_of_other_columns_is_refused(tmp_path: Path, old: bytes, new: bytes, said: str):
    path = tmp_path / "room.compressed.ply"
    write_compressed_ply(random_cloud(300, degree=2), path)
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    with pytest.raises(InputError, match=said):
        read_splats(path)
