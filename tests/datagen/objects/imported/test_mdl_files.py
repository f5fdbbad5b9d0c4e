"""Files that MDL modules name: they belong to the scene, and no spelling of a name leads to another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.objects.imported.mdl_files import mdl_files
from nimbus.datagen.usd.stage import read_stage
from tests.support.refusals import refusal

STAGE = """#usda 1.0
(
    defaultPrim = "World"
)
def Xform "World"
{
    def Xform "mount" (
        customData = {
            dictionary nimbus = {
                string role = "robot_mount"
            }
        }
    )
    {
    }
    def Shader "paint"
    {
        uniform asset info:mdl:sourceAsset = @./paint.mdl@
    }
}
"""
MODULE = """mdl 1.6;
// "/comment.png"
import ::df::*; import .::parts::more;
export material paint(uniform texture_2d look = texture_2d("./lo" "ok.png"))
= material() [[ anno::description("A \\"paint\\" of wood: see https://a.org/%20") ]];
"""


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """A scene with parts, links and an archive, beside private files."""
    folder = tmp_path / "scene"
    (folder / "parts").mkdir(parents=True)
    (folder / "room.usda").write_text(STAGE)
    for name in ("private.png", "private.mdl", "scene/look.1001.png", "scene/pack.mdr", "scene/parts/later.mdl"):
        (tmp_path / name).write_text("mdl 1.6;")
    for name in ("link.png", "tile.1001.png", r"..\private.png", "..%2fprivate.png"):
        (folder / name).symlink_to("../private.png")
    for name in ("linked.mdl", "parts/linked.mdl"):
        (folder / name).symlink_to(tmp_path / "private.mdl")
    return folder


def refused(folder: Path, text: str) -> str:
    """Return the refusal of a scene with a module."""
    (folder / "paint.mdl").write_bytes(f"mdl 1.6; {text}".encode())
    return refusal(read_stage, str(folder / "room.usda"))


def listed(folder: Path, text: str, module: str = "paint.mdl") -> list[str]:
    """Return the files that a module names."""
    path = folder / module
    path.write_bytes(f"mdl 1.6; {text}".encode())
    return [str(file.relative_to(folder)) for file in mdl_files([path], folder)]


def test_files_that_a_module_names_belong_to_the_scene(scene: Path):
    (scene / "paint.mdl").write_text(MODULE)
    (scene / "parts/more.mdl").write_text('mdl 1.6; texture_2d("grain.png");')
    hashes = set[str]()
    for content in (b"one", b"two"):
        for name in ("look.png", "parts/grain.png"):
            (scene / name).write_bytes(content)
            read_stage.cache_clear()
            hashes.add(read_stage(str(scene / "room.usda")).content_hash)
    assert len(hashes) == 4


@pytest.mark.parametrize("text", ['"link.png"', '"../private.png"', '"../later.png"', '"li" /* */ "nk.png"'])
def test_a_module_names_no_file_elsewhere(scene: Path, text: str):
    """Isaac Sim would draw a private image."""
    assert "outside of the scene's folder" in refused(scene, text)


@pytest.mark.parametrize(
    "name",
    [
        "/data/me/my photos/x.png",
        "file:///data/me/x.png",
        "omniverse://server/x.png",
        "C:x.png",
        "//server/x.png",
        r"..\\private.png",
        "..%2fprivate.png",
        r"\x2e./private.png",
        r"\56./private.png",
        "parts/../../private.png",
        "nowhere/../look.png",
        " ../private.png",
        "~/x.png",
        "${data}/x.png",
        "tile.<UDIM>.png",
        "look.png?",
        "look.png#",
        "look.png:x",
        ".../x.png",
    ],
)
def test_a_name_with_several_readings_is_refused(scene: Path, name: str):
    assert "another file than it seems" in refused(scene, f'texture_2d("{name}")')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('"no end', "a text or comment without an end"),
        ("/* no end", "a text or comment without an end"),
        ('/* /* */ " */ texture_2d("../private.png") // "', "a comment in a comment"),
        ('/*/*/ " */ texture_2d("../private.png") // "', "a comment in a comment"),
        ("// x\rtexture_2d('../private.png')", "a control character"),
        ("texture_2d(\0)", "a control character"),
        ("import 'linked'::x;", "a name in quotes"),
        ("""'"'::x; texture_2d("../private.png") '"'""", "a name in quotes"),
        ("using P = parts; import P::later::*;", "another name for a module"),
        ('using/**/P = "parts"; import P::later::*;', "another name for a module"),
    ],
)
def test_code_with_several_readings_is_refused(scene: Path, text: str, told: str):
    assert f"has {told}" in refused(scene, text)


@pytest.mark.parametrize(
    "text",
    [
        "import linked::*;",
        "import/**/linked::*;",
        "import parts :: linked::*;",
        "import parts/* */::/* */linked::*;",
        "import .::parts::linked::x, ::df::*;",
        "using .:: linked import x;",
        "import ..::private::*;",
    ],
)
def test_an_imported_module_is_no_link(scene: Path, text: str):
    assert "outside of the scene's folder" in refused(scene, text)


def test_a_packed_module_is_refused(scene: Path):
    assert "is a compressed MDL module" in refused(scene, "import pack::x::*;")
    assert "is a compressed MDL module" in refusal(mdl_files, [scene / "a.usdz[paint.mdl]"], scene)


def test_texts_in_annotations_are_no_names(scene: Path):
    note = '[[ anno::key_words(string[]("50% wool", "a\\tb")), anno::author("https://a.org") ]]'
    assert listed(scene, f'texture_2d("look.1001.png") {note}') == ["look.1001.png"]
    assert "another file" in refused(scene, f'{note} "50% wool"')
    assert "outside" in refused(scene, '[[ anno::thumbnail("link.png") ]]')


def test_paths_with_dots_begin_at_the_module(scene: Path):
    """Others may also begin in a folder of the scene above the module."""
    (scene / "parts/deep").mkdir()
    (scene / "parts/wood.png").touch()
    text = 'texture_2d("../look.1001.png") texture_2d("wood, 2 (a).png") texture_2d("")'
    assert listed(scene, text, "parts/a.mdl") == ["look.1001.png"]
    assert listed(scene, 'texture_2d("wood.png"); import later::*;', "parts/deep/a.mdl") == [
        "parts/wood.png",
        "parts/later.mdl",
    ]
