"""Blender as renderer: its interpreter is found, its files are read, and its depth equals the default renderer's."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.pipeline import RunContext
from nimbus.datagen.render.blender import VARIABLE, BlenderRenderer, BlenderSettings, blender_python
from nimbus.datagen.render.blender_program import read_exr
from nimbus.datagen.render.external_process import ExternalProgram, ProgramLostError
from tests.support.refusals import refusal

SQUARE = np.array([[(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 1.0, 0.0)]])
SUN = {"light": {"direction": (0, 0, -1), "color": (1, 1, 1), "sky": (0.3, 0.3, 0.3), "ground": (0, 0, 0)}}
DARK = {"light": {"direction": (0, 0, -1), "color": (0, 0, 0), "sky": (0, 0, 0), "ground": (0, 0, 0)}}
PROGRAM = Path(sys.modules[BlenderRenderer.__module__].__file__ or "").with_name("blender_program.py")


def exr(parts: list[dict[str, np.ndarray]]) -> bytes:
    """Return parts of channels (H, W) as written by Blender, without compression."""
    content = struct.pack("<2I", 20000630, 2 | (0x1000 if len(parts) > 1 else 0))
    for channels in parts:
        height, width = next(iter(channels.values())).shape
        rows = b"".join(name.encode() + struct.pack("<B4i", 0, 2, 0, 1, 1) for name in channels) + b"\0"
        window = struct.pack("<4i", 0, 0, width - 1, height - 1)
        attributes = {b"channels\0chlist": rows, b"compression\0compression": b"\0", b"dataWindow\0box2i": window}
        content += b"".join(key + b"\0" + struct.pack("<i", len(raw)) + raw for key, raw in attributes.items()) + b"\0"
    content += b"\0" if len(parts) > 1 else b""
    place, chunks = len(content) + sum(8 * len(next(iter(one.values()))) for one in parts), []
    table = b""
    for number, channels in enumerate(parts):
        for row in range(len(next(iter(channels.values())))):
            data = b"".join(values[row].astype("<f4").tobytes() for values in channels.values())
            chunk = struct.pack("<2i", row, len(data)) + data
            chunks.append((struct.pack("<i", number) if len(parts) > 1 else b"") + chunk)
            table += struct.pack("<q", place)
            place += len(chunks[-1])
    return content + table + b"".join(chunks)


@pytest.mark.parametrize("names", [[["A", "B"]], [["A"], ["B"]]], ids=["one part", "two parts"])
def test_channels_of_exr_files_are_read(tmp_path: Path, names: list[list[str]]):
    values = {"A": np.arange(12.0).reshape(3, 4), "B": np.linspace(0, 1, 12).reshape(3, 4)}
    file = tmp_path / "x.exr"
    file.write_bytes(exr([{name: values[name] for name in part} for part in names]))
    found = read_exr(file)
    assert set(found) == {"A", "B"}
    for name, wanted in values.items():
        np.testing.assert_allclose(found[name], wanted, atol=1e-6)


def test_interpreters_that_do_not_exist_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert "needs a separate Python interpreter; install requirements/blender.txt" in refusal(blender_python)
    monkeypatch.setenv(VARIABLE, "/no/such/python")
    with pytest.raises(InputError, match="'/no/such/python' is not a program"):
        BlenderRenderer.create(RunContext(), BlenderSettings())


def test_blender_starts_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A start script of a version manager reads settings of the current folder, which may be a dataset of others."""
    python = tmp_path / "blender-python"
    python.write_text(f"#!/bin/sh\npwd > {tmp_path}/folder\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv(VARIABLE, python.name)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProgramLostError):
        BlenderRenderer.create(RunContext(), BlenderSettings())._started()
    assert (tmp_path / "folder").read_text() == "/\n"


def test_interpreters_without_blender_say_so():
    """A Python without Blender causes an error of one line, not a fault that would be retried."""
    program = ExternalProgram([sys.executable, "-I", str(PROGRAM)], patience=60.0)
    hello = {"type": "hello", "protocol": 1, "folder": str(program.folder), "options": {}}
    try:
        message = refusal(program.ask, hello, answer="ready")
    finally:
        program.close()
    assert "has no Blender: No module named 'bpy'" in message


def start(device: str) -> tuple[ExternalProgram, dict[str, Any]]:
    """Start Blender; return the program and the first request."""
    program = ExternalProgram([str(blender_python()), "-I", str(PROGRAM)], patience=300.0)
    return program, {"type": "hello", "protocol": 1, "folder": str(program.folder), "options": {"device": device}}


def look_down(program: ExternalProgram, corners: FloatArray, light: dict[str, Any], *, pixels: int):
    """Return color, depth and instance of quadrilaterals (n, 4, 3), seen from 3 m above the origin [m]."""
    count = len(corners)
    arrays = {
        "vertices": corners.reshape(-1, 3),
        "faces": (np.array([[0, 1, 2], [0, 2, 3]]) + 4 * np.arange(count)[:, None, None]).reshape(-1, 3),
        "normals": np.tile((0.0, 0.0, 1.0), (4 * count, 1)),
        "uvs": np.zeros((4 * count, 2)),
        "image": np.full((1, 1, 3), (0, 250, 0), np.uint8),
    }
    part = {"instance": "floor", "body": ""} | {name: program.write(name, one) for name, one in arrays.items()}
    program.ask({"type": "scene", "instances": ["b", "floor"], "parts": [part]} | light, answer="ready")
    pose = np.diag([1.0, -1.0, -1.0, 1.0])
    pose[2, 3] = 3.0
    middle = pixels / 2
    matrix = [[pixels - 0.5, 0, middle], [0, pixels - 0.5, middle], [0, 0, 1]]
    view = {"name": "top", "width": pixels, "height": pixels, "intrinsics": matrix}
    view["world_T_camera"] = program.write("pose", pose[None])
    request = {"type": "render", "start": 0, "count": 1, "bodies": [], "cameras": [view]}
    request |= {name: program.write(name, np.zeros((1, 0, 3))) for name in ("body_positions", "body_wxyz")}
    files = program.ask(request, answer="frames")["cameras"]["top"]
    shape = (1, pixels, pixels)
    kinds = {"rgb": ((*shape, 3), np.uint8), "depth": (shape, np.float32), "instance": (shape, np.uint8)}
    return tuple(program.read(files[name], *kind)[0] for name, kind in kinds.items())


@pytest.mark.skipif(not os.environ.get(VARIABLE), reason="Blender is not installed")
def test_faces_in_one_plane_are_lit():
    """A lamp lights both of two faces in one plane, whichever the rays meet first."""
    program, hello = start("cpu")
    lamps = [{"position": (0.4, 0.3, 2.0), "color": (1.0, 1.0, 1.0)}]
    try:
        program.ask(hello, answer="ready")
        both = np.concatenate([SQUARE, SQUARE * (0.5, 0.5, 1.0) + (0.13, 0.07, 0.0)])
        pictures = [look_down(program, one, DARK | {"lamps": lamps}, pixels=24)[0] for one in (SQUARE, both)]
    finally:
        program.close()
    one, other = (picture[6:18, 6:18, 1].astype(float) for picture in pictures)
    assert np.abs(one - other).mean() < 4.0


@pytest.mark.skipif(not os.environ.get(VARIABLE), reason="Blender is not installed")
@pytest.mark.parametrize("device", ["cpu", "metal"])
def test_blender_sees_what_is_there(device: str):
    """A missing device is an error, because Cycles would silently render on the CPU."""
    program, hello = start(device)
    try:
        if device == "metal" and sys.platform != "darwin":
            assert "finds no device for metal, and would render on the CPU" in refusal(
                program.ask, hello, answer="ready"
            )
            return
        program.ask(hello, answer="ready")
        _, depth, instance = look_down(program, SQUARE, SUN, pixels=9)
    finally:
        program.close()
    assert instance[2:7, 2:7].all() and not instance[0].any()
    np.testing.assert_allclose(depth, 3.0 * instance, atol=1e-4)
