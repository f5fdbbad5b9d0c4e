"""Import of real files into a library, and opening the library in tasks."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from nimbus.datagen.assets import import_library
from nimbus.datagen.assets.import_library import import_assets
from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.grasps import check_grasps
from nimbus.datagen.errors import StorageError
from nimbus.datagen.files.cache import full_disk
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.prepared import shape_file
from nimbus.datagen.objects.prepared.index import AssetEntry, AssetIndex, index_text, read_index
from nimbus.datagen.objects.prepared.library import PreparedLibrary
from nimbus.datagen.objects.prepared.shape_file import read_shape
from nimbus.datagen.tasks.task import load_task
from tests.support.refusals import refusal
from tests.support.shared import make_once

PICK = """robot: panda
scene: table
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.3]}
objects:
  item: {library: lib/, kinds: all, region: start}
steps: [pick: item]
success: [held: item]
instructions: ["Pick {item}."]
"""


def make_things(folder: Path) -> Path:
    """Write a block in meters, an apple in centimeters, a can with a URDF, and a file that is not a mesh."""
    folder.mkdir()
    trimesh.creation.box((0.05, 0.04, 0.06)).export(folder / "wood_block.glb")
    trimesh.creation.icosphere(subdivisions=2, radius=3.5).export(folder / "apple.stl")
    trimesh.creation.cylinder(33, 120, sections=12).export(folder / "body.obj")
    mesh = '<mesh filename="package://things/body.obj" scale="0.001 0.001 0.001"/>'
    visual = f"<visual><geometry>{mesh}</geometry></visual><inertial><mass value='0.35'/></inertial>"
    (folder / "soda_can.urdf").write_text(
        f'<?xml version="0.0"?>\n<robot name="x"><link name="a">{visual}</link></robot>'
    )
    (folder / "broken.obj").write_text("v 0 0 0\n")
    (folder / "LICENSE").write_text("Attribution-NonCommercial 4.0 International")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the sources and their library."""

    def make(root: Path) -> None:
        root.mkdir()
        import_assets([make_things(root / "things")], root / "lib")

    root = make_once(tmp_path_factory, "assets", make)
    return root / "things", root / "lib"


@pytest.mark.parametrize("failing", ["recognize", "prepare_asset"])
def test_a_full_disk_refuses_no_asset(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, the library would state that the file is unusable."""
    asked: list[str] = []

    def fill(function: str, arguments: dict[str, Any], **options: Any) -> Any:
        asked.append(function.rpartition(":")[2])
        if asked[-1] == failing and asked.count(failing) == 1:
            raise full_disk(Path("/somewhere"))
        return run_limited(function, arguments, **options)

    monkeypatch.setattr(import_library, "run_limited", fill)
    trimesh.creation.box((0.05, 0.04, 0.06)).export(tmp_path / "block.glb")
    with pytest.raises(StorageError, match="^/somewhere: the disk of the folder is full"):
        import_assets([tmp_path / "block.glb"], tmp_path / "lib", jobs=1)
    assert asked[-1] == failing


def test_a_bad_asset_costs_one_line(things: tuple[Path, Path]) -> None:
    library = open_library(f"{things[1]}/")
    assert isinstance(library, PreparedLibrary)
    assert library.kinds == ("apple", "soda_can", "wood_block")
    assert "contains no triangles" in refusal(library.model, "broken", 0)
    assert "unknown kind 'aple'; did you mean 'apple'?" in refusal(library.model, "aple", 0)


def test_a_library_of_the_same_name_does_not_stand_for_another(things: tuple[Path, Path], tmp_path: Path) -> None:
    """Somebody may publish a library again with other masses; its USD files lie in the same cache."""
    shutil.copytree(things[1], tmp_path / "lib")
    own, other = (open_library(f"{folder}/") for folder in (things[1], tmp_path / "lib"))
    assert isinstance(other, PreparedLibrary) and own.name == other.name
    entry = other.entries["apple"]
    other.entries["apple"] = replace(entry, mass=9.0)
    assert other.usd_path("apple", 0) != own.usd_path("apple", 0)


def test_units_and_masses_are_decided(things: tuple[Path, Path]) -> None:
    library = open_library(f"{things[1]}/")
    sizes = {kind: np.ptp(library.model(kind, 0).bounds, axis=0) for kind in library.kinds}
    assert np.allclose(sizes["apple"], 0.07, atol=0.003)
    assert np.allclose(sizes["soda_can"], (0.066, 0.066, 0.12), atol=0.003)
    assert np.allclose(sizes["wood_block"], (0.05, 0.06, 0.04))  # glTF has y up
    assert library.model("soda_can", 0).mass == 0.35
    assert 0.1 < library.model("apple", 0).mass < 0.25
    assert library.kind("apple").object_class == "fruit"
    text = (things[1] / "apple" / "asset.yaml").read_text()
    assert "6 to 10 cm is usual" in text and "value: 0.01" in text


@pytest.mark.long
@pytest.mark.slow
def test_the_same_inputs_give_the_same_bytes(things: tuple[Path, Path], tmp_path: Path) -> None:
    out, folder, single = tmp_path / "other", tmp_path / "things", tmp_path / "apple.stl"
    folder.mkdir()
    shutil.copy(things[0] / "wood_block.glb", folder)
    for place in (folder, single):
        shutil.copy(things[0] / "apple.stl", place)
    import_assets([folder, single], out, jobs=2)
    import_assets([single, folder], tmp_path / "again", jobs=1)
    assert contents(out) == contents(tmp_path / "again")
    assert "apple_2" in open_library(f"{out}/").kinds


def test_a_second_import_prepares_what_changed(things: tuple[Path, Path], tmp_path: Path) -> None:
    folder, out = tmp_path / "things", tmp_path / "lib"
    shutil.copytree(things[0], folder)
    shutil.copytree(things[1], out)
    assert import_assets([folder], out).prepared == 0
    card = out / "soda_can" / "asset.yaml"
    card.write_text(card.read_text().replace("value: 0.35", "value: 0.4"))
    assert "changed since the import" in refusal(open_library(f"{out}/").model, "soda_can", 0)
    (folder / "wood_block.glb").unlink()
    (folder / "broken.obj").write_text("v 0 0 1\n")
    made = import_assets([folder], out)
    assert (made.prepared, made.removed) == (2, 1)
    library = PreparedLibrary(out)
    assert library.kinds == ("apple", "soda_can") and not (out / "wood_block").exists()
    assert library.model("soda_can", 0).mass == 0.4
    assert import_assets([folder], out).prepared == 0


def test_patterns_select_assets_together(tmp_path: Path) -> None:
    (folder := tmp_path / "things").mkdir()
    for name in ("left", "middle", "right"):
        (folder / f"{name}.obj").write_text("v 0 0 0\n")
    made = import_assets([folder], tmp_path / "lib", only=["l*", "*right*"])
    assert [entry.kind for entry in made.entries] == ["left", "right"]
    assert "no asset matches '*mug*'" in refusal(import_assets, [folder], tmp_path / "lib", only=["l*", "*mug*"])


def test_an_edit_frees_a_refused_asset(tmp_path: Path) -> None:
    folder, out = tmp_path / "things", tmp_path / "lib"
    folder.mkdir()
    trimesh.creation.box((5, 4, 6)).export(folder / "thing.glb")
    entry = import_assets([folder], out).entries[0]
    assert "6 m long; expected 3 mm to 1.5 m" in entry.refused and not entry.shape
    card = out / "thing" / "asset.yaml"
    card.write_text(card.read_text().replace("value: 1.0", "value: 0.01").replace("scale", "skale"))
    assert "no decision 'skale'; did you mean 'scale'?" in refusal(import_assets, [folder], out)
    card.write_text(card.read_text().replace("skale", "scale"))
    assert not import_assets([folder], out).entries[0].refused


def test_a_shape_of_another_import_is_refused(things: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "lib"
    shutil.copytree(things[1], out)
    shutil.copy(out / "apple" / "shape.npz", out / "soda_can" / "shape.npz")
    assert "differs from the file in the library's index" in refusal(PreparedLibrary(out).model, "soda_can", 0)


def test_licences_are_found_and_restrict(things: tuple[Path, Path]) -> None:
    entry = read_index(things[1])[0].kinds[0]
    assert (entry.license, entry.is_restricted) == ("CC-BY-NC-4.0", True)


def test_an_import_that_was_cut_short_goes_on(things: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "lib"
    shutil.copytree(things[1], out)
    lines = [json.dumps(entry) for entry in json.loads((out / "index.json").read_text())["kinds"]]
    (out / "progress.jsonl").write_text("\n".join([*lines[:-1], lines[-1][:50]]))
    (out / "index.json").unlink()
    assert import_assets([things[0]], out).prepared == 1
    assert contents(out) == contents(things[1])


BAD: dict[str, tuple[Any, str]] = {
    "nothing": (lambda folder: folder.mkdir(), "contains no mesh, URDF or MJCF"),
    "a library of something else": (lambda folder: None, "no such file or folder"),
    "entities": (
        lambda folder: (folder.mkdir(), (folder / "a.urdf").write_text('<!DOCTYPE a [<!ENTITY b "c">]><robot/>')),
        "declares XML entities",
    ),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_source_is_one_line(name: str, tmp_path: Path) -> None:
    make, line = BAD[name]
    make(tmp_path / "source")
    if name == "entities":
        assert line in import_assets([tmp_path / "source"], tmp_path / "lib").entries[0].refused
    else:
        assert line in refusal(import_assets, [tmp_path / "source"], tmp_path / "lib")


def test_a_folder_of_others_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("x")
    assert "it is not a prepared library" in refusal(import_assets, [tmp_path], tmp_path / "out")


def test_a_library_with_links_is_not_continued(tmp_path: Path) -> None:
    """The library may come from another user: through a link, the import would append to a file outside the library."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "notes.txt").write_text("precious")
    (tmp_path / "lib/progress.jsonl").symlink_to(tmp_path / "notes.txt")
    assert "the folder contains links" in refusal(import_assets, [tmp_path / "things"], tmp_path / "lib")
    assert (tmp_path / "notes.txt").read_text() == "precious"


_MERGES = "".join(f"z{i}: &z{i} {{<<: [{', '.join([f'*z{i - 1}'] * 10)}]}}\n" for i in range(1, 10))


@pytest.mark.parametrize(
    "text", ["- 1", "sources: [1]", "sources: {a: 1}", "[" * 5000, "{", f"sources: {{}}\nz0: &z0 {{k: 1}}\n{_MERGES}"]
)
def test_a_damaged_description_is_written_again(text: str, things: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "lib"
    shutil.copytree(things[1], out)
    good = (out / "library.yaml").read_bytes()
    (out / "library.yaml").write_text(text)
    assert import_assets([things[0]], out).prepared == 0
    assert (out / "library.yaml").read_bytes() == good


def make_wheel(folder: Path, name: str, license: str, content: bytes) -> Path:
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/cube.glb", content)
        archive.writestr(f"{name}/__init__.py", "raise SystemExit(3)")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nLicense: {license}\n\nText")
    return wheel


def test_wheels_are_read_as_archives(tmp_path: Path) -> None:
    content: Any = trimesh.creation.box((0.05, 0.04, 0.06)).export(file_type="glb")
    wheel = make_wheel(tmp_path, "toys", "MIT License", content)
    entry = import_assets([wheel], tmp_path / "lib").entries[0]
    assert (entry.kind, entry.license, entry.source) == ("cube", "MIT", wheel.name)
    second = make_wheel(tmp_path, "zoo", "CC BY-NC 4.0", b"")  # is unpacked to the same folder
    entry = import_assets([second], tmp_path / "lib").entries[0]
    assert (entry.license, entry.is_restricted, entry.source) == ("CC-BY-NC-4.0", True, second.name)


def test_a_large_index_opens_fast(tmp_path: Path) -> None:
    """The limit of one second is ten times the usual duration, because test machines are slow."""
    import time

    entry = {"size": (0.1, 0.1, 0.1), "source": "a", "layout": "ycb", "shape": "0" * 64, "automatic": {"scale": 1.0}}
    kinds = tuple(AssetEntry(kind=f"thing_{number}", path=f"{number}.obj", **entry) for number in range(14_000))
    (tmp_path / "index.json").write_text(index_text(AssetIndex(importer="1", kinds=kinds)))
    begin = time.process_time()
    library = PreparedLibrary(tmp_path)
    assert len(library.kinds) == 14_000 and time.process_time() - begin < 1.0


def test_the_doctor_names_what_no_grasp_held(things: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "lib"
    shutil.copytree(things[1], out)
    index, _ = read_index(out)
    assert all(entry.grasps >= 3 and not entry.not_graspable for entry in index.kinds if not entry.refused)
    kinds = tuple(
        replace(kind, not_graspable="0 of 9 grasps held") if kind.kind == "apple" else kind for kind in index.kinds
    )
    (out / "index.json").write_text(index_text(replace(index, kinds=kinds)))
    (tmp_path / "task.yaml").write_text(PICK)
    task = load_task(tmp_path / "task.yaml")
    (found,) = check_grasps(Case(task, load_assets(task)))
    assert "1 of 3 kinds could not be grasped in the trials at import: 'apple': 0 of 9 grasps held" in found.what
    assert found.instead == "write kinds: [soda_can, wood_block]"
    (tmp_path / "task.yaml").write_text(PICK.replace("kinds: all", "kinds: all, anchored: true"))
    task = load_task(tmp_path / "task.yaml")
    fixed, *_ = check_grasps(Case(task, load_assets(task)))
    assert fixed.what == "3 of 3 kinds are fixed in place and cannot be picked: 'apple', 'soda_can', 'wood_block'"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"faces": np.array([[0, 1, 10**6]])}, "a face refers to a vertex outside"),
        ({"vertices": np.full((4, 3), np.nan)}, "not a finite number"),
        ({"vertices": np.zeros(3)}, "vertices of shape"),
        ({"rests": np.zeros(5)}, "cannot be read"),
        ({"center_of_mass": np.zeros(1)}, "'center_of_mass' has the shape (1,)"),
        ({"uvs": np.zeros(6)}, "'uvs' has the shape (6,)"),
        ({"keypoints_0": np.zeros((4, 4))}, "'keypoints_0' has the shape (4, 4)"),
        ({"rest_names": np.array(0)}, "cannot be read"),
        ({"zeros": np.zeros(65 << 20, np.uint8)}, "bytes unpacked; the limit is"),
    ],
    ids=["faces", "places", "shape", "rests", "center", "uvs", "points", "names", "bomb"],
)
def test_a_spoilt_shape_of_others_is_one_line(
    things: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, np.ndarray], what: str
) -> None:
    """The checksum in the index is correct, because the library was made with the invalid shape."""
    monkeypatch.setattr(shape_file, "_LARGEST_UNPACKED", 64 << 20)
    with np.load(things[1] / "apple" / "shape.npz") as held:
        arrays = {**held, **change}
    path = tmp_path / "shape.npz"
    np.savez_compressed(path, allow_pickle=False, **arrays)
    assert what in refusal(read_shape, path, hashlib.sha256(path.read_bytes()).hexdigest())
