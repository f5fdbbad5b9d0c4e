"""Foreign scenes: a child process refuses those that need too much memory, block, or run code in Isaac Sim."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from pathlib import Path

import pytest
import trimesh

from nimbus.datagen.files import checked_files
from nimbus.datagen.files.checked_files import check_once
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.objects.imported.gltf_sizes import gltf_files, missing_files
from nimbus.datagen.objects.imported.read import read_nodes
from nimbus.datagen.rooms.settings import StageFileSettings
from nimbus.datagen.usd.stage import _file_hash, read_stage
from tests.support.refusals import refusal
from tools.sources import modules

HEAD = '#usda 1.0\n(\n    defaultPrim = "World"\n)\n'
ROLE = 'customData = {\n dictionary nimbus = {\n string role = "robot_mount"\n }\n }'
MOUNT = f'def Xform "mount" (\n {ROLE}\n)\n{{\n}}\n'
TEXTURE = 'def Shader "paint"\n{{\n asset inputs:file = @{}@\n}}\n'
NODE = 'def OmniGraphNode "node"\n{\n token node:type = "omni.graph.scriptnode.ScriptNode"\n}\n'
REFERENCE = 'def "part" (\n references = @{}@\n)\n{{\n}}\n'
CLIPS = """def "part" (
 clips = {
  dictionary default = {
   string templateAssetPath = "http://evil/x.###.usd"
   double templateStartTime = 1
   double templateEndTime = 2
   double templateStride = 1
  }
 }
)
{
}
"""
BEHAVIOR = 'def Xform "thing" (\n prepend apiSchemas = ["OmniScriptingAPI"]\n)\n{\n}\n'
FACES = 'def Mesh "mesh"\n{\n int[] faceVertexCounts = [3]\n int[] faceVertexIndices = [0, 1, 9]\n}\n'


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))


def stage(folder: Path, inside: str) -> Path:
    path = folder / "foreign.usda"
    path.write_text(f'{HEAD}def Xform "World"\n{{\n{MOUNT}{inside}}}\n')
    return path


def doubled(levels: int) -> str:
    """Write a prim whose references double the number of prims at each level."""
    twice = 'def "a" (\n references = </{0}>\n)\n{{\n}}\ndef "b" (\n references = </{0}>\n)\n{{\n}}\n'
    below = [f'def "L{number}"\n{{\n{twice.format(f"L{number - 1}")}}}\n' for number in range(1, levels)]
    return HEAD + 'def "L0"\n{\n}\n' + "".join(below) + f'def "World" (\n references = </L{levels - 1}>\n)\n{{\n}}\n'


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (TEXTURE.format("/dev/zero"), "is not a regular file"),
        (TEXTURE.format("./pipe"), "is not a regular file"),
        (
            NODE.replace("omni.graph.scriptnode.ScriptNode", "omni.warp.WarpKernel"),
            "belongs to an OmniGraph, which Isaac Sim would execute",
        ),
        ('def Xform "graph" (\n prepend apiSchemas = ["OmniGraphAPI"]\n)\n{\n}\n', "belongs to an OmniGraph"),
        ('def BehaviorTreeNodeLibrary "library"\n{\n}\n', "belongs to a behavior tree, which Isaac Sim would execute"),
        (BEHAVIOR.replace("OmniScriptingAPI", "BehaviorTreeAPI:main"), "belongs to a behavior tree"),
        (BEHAVIOR.replace("OmniScriptingAPI", "NewtonSDFCollisionAPI"), "has a distance field"),
        ('def Cube "thing"\n{\n bool newton:hydroelasticEnabled = 1\n}\n', "has a distance field"),
        (REFERENCE.format("http://evil/x.usda"), "refers to the address 'http://evil/x.usda'"),
        (CLIPS, "refers to the address 'http://evil/x.###.usd'"),
        (REFERENCE.format("./robot.urdf"), "'./robot.urdf', which is not USD"),
        (REFERENCE.format("./part.usda:SDF_FORMAT_ARGS:a=b.usda"), "which Isaac Sim may take for another file"),
        (BEHAVIOR, "has a Python script, which Isaac Sim would run"),
        (FACES, "a face refers to a missing point"),
        (
            FACES.replace("int[] faceVertexCounts = [3]", 'string[] faceVertexCounts = ["x"]'),
            "are not numbers|cannot open",
        ),
    ],
)
def test_a_hostile_stage_is_one_line(tmp_path: Path, inside: str, told: str):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "http:/evil").mkdir(parents=True)
    for name in ("http:/evil/x.usda", "part.usda", "robot.urdf"):
        (tmp_path / name).write_text('#usda 1.0\n(\n    defaultPrim = "a"\n)\ndef "a"\n{\n}\n')
    assert re.search(told, refusal(read_stage, str(stage(tmp_path, inside))))


def test_a_deactivated_graph_is_harmless(tmp_path: Path):
    inside = NODE.replace('"node"', '"node" (\n active = false\n)')
    assert read_stage(str(stage(tmp_path, inside))).content_hash


def test_a_stage_that_multiplies_is_refused(tmp_path: Path):
    path = tmp_path / "bomb.usda"
    path.write_text(doubled(30))
    assert "more than 300,000 prims" in refusal(read_stage, str(path))


def test_a_scene_file_is_checked_too(tmp_path: Path):
    path = stage(tmp_path, NODE)
    assert "belongs to an OmniGraph" in refusal(
        read_stage, StageFileSettings.model_validate({"file": str(path)}).reference
    )


def test_a_checked_stage_needs_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = stage(tmp_path, TEXTURE.format("./wood.png"))
    (tmp_path / "wood.png").write_bytes(b"one")
    first = read_stage(str(path)).content_hash
    read_stage.cache_clear()
    monkeypatch.setattr(checked_files, "run_limited", pytest.fail)
    assert read_stage(str(path)).content_hash == first


def test_a_changed_texture_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = stage(tmp_path, TEXTURE.format("./wood.png"))
    (tmp_path / "wood.png").write_bytes(b"one")
    read_stage(str(path))
    read_stage.cache_clear()
    asked: list[str] = []
    monkeypatch.setattr(checked_files, "run_limited", lambda name, *_, **__: asked.append(name) or [])
    (tmp_path / "wood.png").write_bytes(b"two")
    read_stage(str(path))
    assert asked[0] == "nimbus.datagen.objects.imported.scene_check:read_scene"


def test_a_file_that_was_missing_is_checked_when_it_is_there(tmp_path: Path):
    path = tmp_path / "one.gltf"
    path.write_text('{"asset": {"version": "2.0"}, "images": [{"uri": "a.png"}]}')
    answers = [str(path), str(tmp_path / "a.png")]
    count = 0

    def read(*_: object, **__: object) -> list[str]:
        nonlocal count
        count += 1
        return answers

    assert [str(file) for file in missing_files(path)] == answers[1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked_files, "run_limited", read)
        for expected in (1, 1):
            check_once(path, "reader", version=1)
            assert count == expected
        (tmp_path / "a.png").write_bytes(b"large")
        check_once(path, "reader", version=1)
    assert count == 2


def test_a_copy_of_a_checked_stage_is_checked_at_its_place(tmp_path: Path):
    """A reference by an absolute path leads from the copy to the part of the original, which has changed."""
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    part = original / "part.usda"
    part.write_text(HEAD.replace("World", "part") + 'def Xform "part"\n{\n}\n')
    read_stage(str(stage(original, REFERENCE.format(part))))
    shutil.copytree(original, copy)
    part.write_text(HEAD.replace("World", "part") + BEHAVIOR.replace("thing", "part"))
    assert "has a Python script" in refusal(read_stage, str(copy / "foreign.usda"))


@pytest.mark.parametrize("name", ["room/foreign.usda", "link.usda"])
def test_a_stage_behind_a_link_that_has_changed_is_checked_again(tmp_path: Path, name: str):
    part, script = tmp_path / "part.usda", BEHAVIOR.replace("thing", "part")
    for folder, content in (("one", 'def Xform "part"\n{\n}\n'), ("two", script)):
        (tmp_path / folder).mkdir()
        stage(tmp_path / folder, REFERENCE.format("./part.usda"))
        (tmp_path / folder / "part.usda").write_text(HEAD.replace("World", "part") + content)
    for folder in ("one", "two"):
        for link, target in ((tmp_path / "room", folder), (part, f"{folder}/part.usda")):
            link.unlink(missing_ok=True)
            link.symlink_to(target)
        if folder == "one":
            (tmp_path / "link.usda").symlink_to("one/foreign.usda")
            read_stage(str(tmp_path / name))
            read_stage.cache_clear()
    assert "has a Python script" in refusal(read_stage, str(tmp_path / name))


def test_a_changed_buffer_in_a_subfolder_is_checked_again(tmp_path: Path):
    (tmp_path / "buffers").mkdir()
    buffer = tmp_path / "buffers" / "a b.bin"
    buffer.write_bytes(b"1")
    path = tmp_path / "a.gltf"
    path.write_text('{"buffers": [{"uri": "buffers/a%20b.bin"}, {"uri": "data:x"}, {"uri": 3}, {"uri": "gone.bin"}]}')
    assert gltf_files(path) == [path, buffer]


@pytest.mark.parametrize("name", ["../pin.txt", "%2e%2e/pin.txt", "{}/pin.txt", "a/../../pin.txt", "link.txt"])
def test_a_gltf_names_no_file_of_another_folder(tmp_path: Path, name: str):
    """A reader that skips an image does not refuse its name, and the hash of the scene would cover the file."""
    (tmp_path / "pin.txt").write_text("4711")
    (tmp_path / "scene").mkdir()
    (tmp_path / "scene" / "link.txt").symlink_to(tmp_path / "pin.txt")
    path = tmp_path / "scene" / "a.gltf"
    path.write_text(json.dumps({"images": [{"uri": name.format(tmp_path), "mimeType": "image/ktx2"}]}))
    assert "its folder" in refusal(gltf_files, path)


@pytest.mark.parametrize(
    "name", [r"..\private.png", "..%2fprivate.png", "a.png?b", "a.png#b", "${home}.png", "~.png", " ..", "::a.png"]
)
def test_a_path_with_several_readings_is_refused(tmp_path: Path, name: str):
    """USD opens a file of the literal name, which is hashed, and Isaac Sim may open a private one."""
    (tmp_path / name).write_bytes(b"pixels")
    assert "which Isaac Sim may take for another file" in refusal(
        read_stage, str(stage(tmp_path, TEXTURE.format(f"./{name}")))
    )


@pytest.mark.parametrize("inside", [REFERENCE, TEXTURE])
def test_materialx_is_refused(tmp_path: Path, inside: str):
    """USD lists none of the images that it names, and Isaac Sim would draw private ones."""
    (tmp_path / "a.mtlx").write_text('<?xml version="1.0"?>\n<materialx version="1.38"></materialx>')
    assert "'./a.mtlx', which is not USD" in refusal(read_stage, str(stage(tmp_path, inside.format("./a.mtlx"))))


def test_usual_paths_are_accepted(tmp_path: Path):
    names = ("wood (2), a+b=c.png", "Öl & Co's.png", "t.1001.png", "a[1].png", "名.png")
    for name in names:
        (tmp_path / name).write_bytes(b"pixels")
    inside = "".join(
        TEXTURE.format(name).replace("paint", f"paint{at}")
        for at, name in enumerate((*names, "./t.<UDIM>.png", f"{tmp_path}/../{tmp_path.name}/t.1001.png"))
    )
    read_stage(str(stage(tmp_path, inside)))


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ('string info:mdl:sourceCode = "mdl 1.6;"', "has code in info:mdl:sourceCode"),
        ('string sensorModelPluginName = "/tmp/evil.so"', "names a plug-in by its path"),
    ],
)
def test_code_and_plug_ins_of_a_scene_are_refused(tmp_path: Path, inside: str, told: str):
    assert told in refusal(read_stage, str(stage(tmp_path, f'def Shader "paint"\n{{\n {inside}\n}}\n')))


@pytest.mark.parametrize("name", ["a.gltf", "a.GLTF", "a.glb"])
def test_the_hash_of_a_scene_covers_the_images_that_it_names(tmp_path: Path, name: str):
    """A stored task names the scene, and another image would be a private one."""
    told = b'{"images": [{"uri": "pictures/a%20b.jpg"}, {"uri": "data:image/png,x"}]}   '
    path, picture = tmp_path / name, tmp_path / "pictures/a b.jpg"
    head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(told), len(told), 0x4E4F534A) if name == "a.glb" else b""
    path.write_bytes(head + told)
    found = [_file_hash(path)]
    picture.parent.mkdir()
    for content in (b"mine", b"yours"):
        picture.write_bytes(content)
        found.append(_file_hash(path))
    (tmp_path / "other.png").write_bytes(b"not named")
    assert len({*found}) == 3 and _file_hash(path) == found[-1]


def test_a_path_of_a_stored_task_is_the_path_that_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """trimesh looks for ``~`` in the home folder, which the dataset's own folder of that name would hide."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    path = Path("~/Scans/office.glb")
    for folder, name in ((tmp_path / "home/Scans", "private"), (path.parent.absolute(), "own")):
        folder.mkdir(parents=True)
        scene = trimesh.Scene()
        scene.add_geometry(trimesh.creation.box((1, 1, 1)), node_name=name, geom_name=name)
        scene.export(str(folder / path.name))
    assert [name for name, _ in read_nodes(path)] == ["own"]
    assert resolve_from(Path(), str(path)) == f"{tmp_path}/data/{path}"
    assert resolve_from(Path(), "things/") == "things/" and resolve_from(Path(), "trash") == "trash"


def test_no_parser_of_meshes_gets_a_relative_path():
    call = re.compile(r"\btrimesh\.load\w*\(([^,]+)")
    given = [found for path in modules().values() for found in call.findall(path.read_text())]
    assert len(given) == 4 and all("absolute()" in one or one == "place" for one in given)
