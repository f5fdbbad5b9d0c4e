"""Foreign images: only some formats are read, both by Nimbus and by the libraries that it uses."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path
from typing import TypeGuard

import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError

from nimbus.datagen.media.picture_files import FORMATS, limit_formats, open_picture
from tools.sources import modules, parse

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(theirs) (w) file closefile showpage\n%%EOF\n"


@pytest.mark.parametrize("kind", ["BMP", "GIF", "JPEG", "PNG", "PPM", "TGA", "TIFF", "WEBP"])
def test_known_formats_are_read(tmp_path: Path, kind: str):
    Image.fromarray(np.full((8, 8, 3), 100, np.uint8)).save(path := tmp_path / "picture", format=kind)
    assert kind in FORMATS and open_picture(path).convert("RGB").size == (8, 8)
    assert open_picture(io.BytesIO(path.read_bytes())).format == kind


def test_eps_is_no_picture(tmp_path: Path):
    """Pillow passes EPS to Ghostscript, which would execute it as a program."""
    (tmp_path / "label.png").write_bytes(EPS)
    with pytest.raises(UnidentifiedImageError):
        open_picture(tmp_path / "label.png")


def test_libraries_read_no_other_format():
    """The test runs in a separate process, because the limit applies to the whole process: Newton and trimesh open
    images with Pillow.
    """
    code = """
import io, sys
from PIL import Image
assert Image.open(io.BytesIO(bytes.fromhex(sys.argv[1]))).format == "EPS"
from nimbus.datagen.media.picture_files import FORMATS, limit_formats
limit_formats()
assert set(Image.OPEN) <= set(FORMATS) and set(Image.ID) <= set(FORMATS)
try:
    Image.open(io.BytesIO(bytes.fromhex(sys.argv[1])))
except Image.UnidentifiedImageError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code, EPS.hex()], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_eps_texture_of_a_mesh_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from PIL import EpsImagePlugin

    from nimbus.datagen.objects.imported.read import read_surface

    ran: list[object] = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *options, **_: ran.append(options))
    (tmp_path / "label.png").write_bytes(EPS)
    (tmp_path / "cube.mtl").write_text("newmtl m\nmap_Kd label.png\n")
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1\n"
    faces = "f 1/1 3/2 2/3\nf 1/1 2/2 4/3\nf 1/1 4/2 3/3\nf 2/1 3/2 4/3\n"
    (tmp_path / "cube.obj").write_text(f"mtllib cube.mtl\n{corners}usemtl m\n{faces}")
    read_surface(tmp_path / "cube.obj")
    assert not ran


def is_open(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "open"


def test_pictures_are_opened_in_one_place():
    limit_formats()
    found = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if name != "nimbus.datagen.media.picture_files"
        for node in ast.walk(parse(path))
        if is_open(node) and ast.unparse(node.func) in ("Image.open", "PillowImage.open", "PIL.Image.open")
    ]
    assert not found


def test_videos_are_opened_as_mp4():
    """FFmpeg would interpret a text as a list of other files, and open them."""
    found = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        for node in ast.walk(parse(path))
        if is_open(node) and ast.unparse(node.func) == "av.open"
        if not any(part.arg == "format" for part in node.keywords)
    ]
    assert not found


def progressive(*, copies: int) -> bytes:
    """Return a progressive JPEG whose last scan is repeated."""
    Image.fromarray(np.full((64, 64, 3), 100, np.uint8)).save(saved := io.BytesIO(), "JPEG", progressive=True)
    data = saved.getvalue()
    return data[:-2] + copies * data[data.rindex(b"\xff\xda") : -2] + data[-2:]


def test_usual_scans_of_a_jpeg_are_read():
    random = np.random.default_rng(0).integers(0, 255, (200, 300, 3), np.uint8)
    for options in ({}, {"progressive": True, "quality": 95}, {"restart_marker_blocks": 1}):
        Image.fromarray(random).save(saved := io.BytesIO(), "JPEG", **options)
        behind = io.BytesIO(saved.getvalue() + 200 * b"\xff\xda")  # phones put a video behind the image
        assert open_picture(behind).convert("RGB").size == (300, 200)
    assert open_picture(io.BytesIO(progressive(copies=50))).convert("RGB").getpixel((0, 0)) == (100, 100, 100)


def test_a_jpeg_of_many_scans_is_refused():
    """Each scan has 200 bytes, and takes time for all pixels."""
    with pytest.raises(OSError, match="more than 100 scans"):
        open_picture(io.BytesIO(progressive(copies=100)))
    with pytest.raises(OSError, match="more than 100 scans"):
        Image.open(io.BytesIO(progressive(copies=5000)))
