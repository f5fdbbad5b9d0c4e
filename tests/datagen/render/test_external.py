"""Programs that render through pipes: their messages are checked, and a program that ends or is silent is replaced."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Camera, Lamp, Light
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.errors import InputError
from nimbus.datagen.render.external import ExternalRenderer, ExternalSettings, _frames
from nimbus.datagen.render.external_process import ExternalProgram, ProgramLostError
from nimbus.datagen.render.render_inputs import RenderInputs
from tests.support.refusals import refusal

RENDERER = Path(__file__).parents[3] / "integrations" / "external_renderer" / "mujoco_renderer.py"
ANSWERS = """
import json, sys, time
for line in sys.stdin:
    what = json.loads(line)["what"]
    if what == "end":
        sys.exit("out of memory")
    if what == "sleep":
        time.sleep(60)
    if what == "alive":
        for _ in range(12):
            print(json.dumps({"type": "alive"}), flush=True)
            time.sleep(0.3)
    print({"words": "hello there", "list": "[1]", "error": '{"type": "error", "what": "no GPU"}'}.get(what,
          json.dumps({"type": "ready"})), flush=True)
"""


@pytest.fixture
def program():
    made = ExternalProgram([sys.executable, "-c", ANSWERS], patience=3.0)
    yield made
    made.close()


def ask(program: ExternalProgram, what: str | dict[str, Any], answer: str = "ready") -> dict[str, object]:
    return program.ask(what if isinstance(what, dict) else {"type": "test", "what": what}, answer=answer)


def test_the_program_of_a_file_starts_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The current folder may have a program of another user at the same path."""
    for name in ("mine", "foreign"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "draw.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/started_{name}\n")
        (folder / "draw.sh").chmod(0o755)
    monkeypatch.chdir(tmp_path / "foreign")
    for command in (("./draw.sh",), ("sh", "draw.sh")):
        settings = ExternalSettings(command=command).seen_from(tmp_path / "mine")
        with pytest.raises(ProgramLostError):
            ExternalRenderer(settings)._started()
        (tmp_path / "started_mine").unlink()
    assert not (tmp_path / "started_foreign").exists()


def test_answers_arrive_and_signs_of_life_extend_patience(program: ExternalProgram):
    assert ask(program, "fine") == {"type": "ready"}
    assert ask(program, "alive") == {"type": "ready"}


def test_lights_with_further_lamps_are_sent(program: ExternalProgram):
    lamp = Lamp(direction=(0, 0, -1), color=(1, 1, 1))
    light = Light(direction=(0, 0, -1), color=(1, 1, 1), sky=(0, 0, 0), ground=(0, 0, 0), lamps=(lamp,))
    assert ask(program, {"type": "scene", "what": "fine", "light": light}) == {"type": "ready"}


@pytest.mark.parametrize(("what", "reason"), [("end", "ended: out of memory"), ("sleep", "no line from it in 3 s")])
def test_programs_that_end_or_hang_are_lost(program: ExternalProgram, what: str, reason: str):
    with pytest.raises(ProgramLostError, match=reason):
        ask(program, what)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("words", "writes 'hello there' to its output"),
        ("list", "sends JSON that is not an object"),
        ("error", "reports: no GPU"),
    ],
)
def test_wrong_answers_are_refused_in_one_line(program: ExternalProgram, what: str, message: str):
    assert message in refusal(ask, program, what)
    assert "answers 'ready' to test, expected 'frames'" in refusal(ask, program, "fine", "frames")


def test_arrays_are_read_from_the_folder_alone(program: ExternalProgram, tmp_path: Path):
    name = program.write("depth", np.ones((2, 3), dtype=np.float32))
    np.testing.assert_array_equal(program.read(name, (2, 3), np.float32), np.ones((2, 3)))
    assert "not a file in the folder" in refusal(program.read, name, (2, 3), np.float32)  # it is only read once
    np.save(tmp_path / "other.npy", np.zeros(3))
    for wrong in (str(tmp_path / "other.npy"), "../x.npy", 7, None):
        assert "not a file in the folder" in refusal(program.read, wrong, (3,), np.float64)
    name = program.write("depth", np.ones((2, 3)))
    assert "as float64 (2, 3), expected float32 (2, 3)" in refusal(program.read, name, (2, 3), np.float32)


def test_programs_that_do_not_exist_are_named():
    with pytest.raises(InputError, match="'no-such-program' cannot be started"):
        ExternalProgram(["no-such-program"], patience=1.0)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 an archive", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',", b"text"]
)
def test_files_that_hold_no_array_are_refused(program: ExternalProgram, content: bytes):
    (program.folder / "depth.npy").write_bytes(content)
    assert "'depth.npy', which cannot be read" in refusal(program.read, "depth.npy", (2, 3), np.float32)


def test_shapes_are_compared_before_numbers_are_read(program: ExternalProgram):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (program.folder / "depth.npy").write_bytes(content)
    assert "as float32 (1000000000000,), expected" in refusal(program.read, "depth.npy", (2, 3), np.float32)


def test_programs_that_read_nothing_are_lost():
    made = ExternalProgram([sys.executable, "-c", "import time; time.sleep(60)"], patience=0.5)
    try:
        with pytest.raises(ProgramLostError, match="read nothing for 0.5 s"):
            made.ask({"type": "test", "what": "x" * (1 << 20)}, answer="ready")
    finally:
        made.close()


def test_a_script_imports_the_files_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Commands of Nimbus set ``PYTHONSAFEPATH``, which would remove the folder of the script."""
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    (tmp_path / "beside.py").write_text('answer = \'{"type": "ready"}\'')
    (tmp_path / "script.py").write_text("import beside, sys\nsys.stdin.readline()\nprint(beside.answer, flush=True)")
    made = ExternalProgram(["python", str(tmp_path / "script.py")], patience=5.0)
    try:
        assert ask(made, "anything") == {"type": "ready"}
    finally:
        made.close()


def test_a_scene_is_sent_for_each_episode():
    """The object of an episode may be created at the memory address of the previous one, and then has the same
    ``id()``.
    """
    renderer, asked = ExternalRenderer(ExternalSettings(command=("python",))), []
    program = SimpleNamespace(ask=lambda message, answer: asked.append(message["type"]))
    labels = Labels(
        instance_names=("background",),
        instance_bodies=("",),
        instance_semantics=np.zeros(1, np.uint8),
        semantic_names=("background",),
        boxes_3d=np.full((1, 2, 3), np.nan),
    )
    visual = SimpleNamespace(surfaces={}, light={})
    for _ in range(3):
        inputs = RenderInputs(parts=(), labels=labels, visual=visual)  # type: ignore[arg-type]
        for _ in range(2):
            renderer._send_scene(program, inputs)  # type: ignore[arg-type]
    assert asked == ["scene"] * 3


def test_boxes_are_those_of_other_renderers(program: ExternalProgram):
    """The background has no box."""
    camera = Camera(name="c", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=1.0, width=8, height=6)
    instance = np.zeros((1, 6, 8), dtype=np.uint8)
    instance[0, 2:4, 3:7] = 1
    pictures = {"rgb": np.zeros((1, 6, 8, 3), np.uint8), "depth": np.ones((1, 6, 8), np.float32), "instance": instance}
    files = {name: program.write(name, values) for name, values in pictures.items()}
    labels = Labels(
        instance_names=("background", "cup"),
        instance_bodies=("", ""),
        instance_semantics=np.array([0, 1], np.uint8),
        semantic_names=("background", "cup"),
        boxes_3d=np.full((2, 2, 3), np.nan),
    )
    frames = _frames(program, files, camera, np.eye(4)[None], labels)
    np.testing.assert_array_equal(frames.boxes_2d, [[[np.nan] * 4, (3, 2, 7, 4)]])


def test_the_mujoco_renderer_masks_each_thing():
    """The compiler of MuJoCo sorts meshes by body: a moving part comes after all static ones."""
    program = ExternalProgram([sys.executable, str(RENDERER)], patience=60.0)
    square = np.array([(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 1.0, 0.0)])
    arrays = {"faces": np.array([[0, 1, 2], [0, 2, 3]]), "normals": np.zeros((4, 3)), "uvs": np.zeros((4, 2))}
    looks = {"ball": (0.2, (250, 0, 0)), "floor": (1.0, (0, 250, 0))}
    try:
        ask(program, {"type": "hello", "protocol": 1, "folder": str(program.folder), "options": {}}, "ready")
        parts = []
        for name, (size, color) in looks.items():
            files = arrays | {"vertices": size * square, "image": np.full((1, 1, 3), color, np.uint8)}
            written = {kind: program.write(f"{name}_{kind}", values) for kind, values in files.items()}
            parts.append({"instance": name, "body": "ball" if name == "ball" else ""} | written)
        ask(program, {"type": "scene", "instances": ["background", *looks], "parts": parts}, "ready")
        pose = np.diag([1.0, -1.0, -1.0, 1.0])  # 3 m above the floor, looking down
        pose[2, 3] = 3.0
        view = {"name": "top", "width": 9, "height": 9, "intrinsics": [[9.0, 0, 4.5], [0, 9.0, 4.5], [0, 0, 1]]}
        view["world_T_camera"] = program.write("pose", pose[None])
        places = {"body_positions": np.array([[(0.0, 0.0, 1.0)]]), "body_wxyz": np.array([[(1.0, 0.0, 0.0, 0.0)]])}
        request = {"type": "render", "start": 0, "count": 1, "bodies": ["ball"], "cameras": [view]}
        request |= {name: program.write(name, values) for name, values in places.items()}
        files = program.ask(request, answer="frames")["cameras"]["top"]
        instance = program.read(files["instance"], (1, 9, 9), np.uint8)[0]
        depth = program.read(files["depth"], (1, 9, 9), np.float32)[0]
        rgb = program.read(files["rgb"], (1, 9, 9, 3), np.uint8)[0]
    finally:
        program.close()
    assert (instance[4, 4], instance[4, 2], instance[0, 0]) == (1, 2, 0)
    np.testing.assert_allclose((depth[4, 4], depth[4, 2], depth[0, 0]), (2.0, 3.0, 0.0), atol=1e-5)
    assert rgb[4, 4, 0] > 0 == rgb[4, 4, 1] and rgb[4, 2, 1] > 0 == rgb[4, 2, 0]


TALKATIVE = """
import json, sys
for line in sys.stdin:
    for _ in range(64):
        sys.stderr.write("x" * (1 << 16) + "\\n")
    sys.stderr.write("out of film\\n")
    print(json.dumps({"type": "ready"}), flush=True)
    if json.loads(line)["what"] == "end":
        sys.exit(3)
"""


def test_programs_that_write_much_are_not_held_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Only the end of 4 MiB on standard error is kept, and only in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = ExternalProgram([sys.executable, "-c", TALKATIVE], patience=20.0)
    try:
        assert ask(made, "fine") == ask(made, "end") == {"type": "ready"}
        with pytest.raises(ProgramLostError, match="ended: out of film"):
            ask(made, "more")
        assert not list(made.folder.iterdir())
    finally:
        made.close()
    assert not list(tmp_path.iterdir())
