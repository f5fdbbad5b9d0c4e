"""Files of meshes and splats as sources of scenes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.navigate.read import glb, limited
from nimbus.datagen.navigate.read.limited import list_limited
from nimbus.datagen.navigate.read.open_scene import further_files, open_scene
from nimbus.datagen.navigate.sources import files
from nimbus.datagen.navigate.sources.files import file_hash, find_files
from nimbus.datagen.navigate.sources.meshes import MeshSource
from nimbus.datagen.navigate.sources.splat_homes import SplatHomesSource
from nimbus.datagen.navigate.sources.splats import SplatFileSource
from nimbus.datagen.splats.training_ply import write_training_ply
from tests.support import foreign_scenes as written
from tests.support.foreign_scenes import room_things, write_glb, write_hm3d
from tests.support.refusals import refusal
from tests.support.splat_room import room_cloud, room_corners


def test_mesh_patterns_are_seen_from_task(tmp_path: Path):
    for name in ("b", "a"):
        write_glb(tmp_path / "scans" / f"{name}.glb", room_things())
    source = MeshSource.model_validate({"meshes": "scans/*.glb"}).seen_from(tmp_path)
    assert source.count == 2 and [source.open(number).name for number in (0, 1)] == ["a", "b"]
    assert set(source.fingerprint()) == {"mesh a.glb", "mesh b.glb"}


def test_fingerprint_follows_content(tmp_path: Path):
    path = write_glb(tmp_path / "a.glb", room_things())
    source = MeshSource.model_validate({"meshes": str(path)})
    before = source.fingerprint()
    things = room_things()
    things["chair.001"] += 0.25
    write_glb(path, things)
    assert source.fingerprint() != before


FORMATS = [written.write_hm3d, written.write_scannet, written.write_replica, written.write_hssd, written.write_front]


@pytest.mark.parametrize("write", [written.write_gibson, *FORMATS, written.write_usd])
def test_every_file_that_a_reader_opens_enters_the_fingerprint(tmp_path: Path, write: Callable[[Path], Path]):
    path = write(tmp_path)
    with opened_below(tmp_path) as opened:
        open_scene(path)
    others = opened - {path}
    assert bool(others) == (write in FORMATS)
    assert others <= set(list_limited([path]).get(path, []))
    source = MeshSource.model_validate({"meshes": str(path)})
    before = source.fingerprint()
    assert before[f"mesh {path.name}"] == file_hash(path) and len(before) == 1 + (write in FORMATS)
    for other in others:
        content = other.read_bytes()
        other.write_bytes(content + b" ")  # a GLB with another byte inside might be refused
        assert len({*before.items(), *source.fingerprint().items()}) == 3, other
        other.write_bytes(content)


@pytest.mark.parametrize("write", FORMATS)
def test_no_link_out_of_the_folder_of_a_scene_is_followed(tmp_path: Path, write: Callable[[Path], Path]):
    """A scan of another user would show private files of this one."""
    path, private = write(tmp_path / "scans"), tmp_path / "private"
    private.mkdir()
    with opened_below(tmp_path) as opened:
        open_scene(path)
    for other in opened - {path}:
        target = private / other.name
        other.rename(target)
        other.symlink_to(target)
        for read in (open_scene, further_files):
            with opened_below(tmp_path) as opened, suppress(InputError):
                read(path)
            assert private not in {file.resolve().parent for file in opened}, other
        other.unlink()
        target.rename(other)


def test_templates_name_meshes_of_the_dataset_only(tmp_path: Path):
    """A dataset that is unpacked in the home folder could name private files beside it."""
    path = written.write_hssd(tmp_path)
    text, stage = path.read_text(), next(tmp_path.glob("stages/*.glb"))
    name = json.loads(text)["stage_instance"]["template_name"]
    (tmp_path / "private").mkdir()
    stage.rename(tmp_path / "private/scan.glb")
    path.write_text(text.replace(json.dumps(name), '"private/scan"'))
    assert "there is no mesh of 'private/scan'" in refusal(open_scene, path)


@pytest.mark.parametrize("name", ["stages", "objects", "semantics"])
@pytest.mark.parametrize("is_folder", [False, True])
def test_links_do_not_lead_out_of_the_folders_of_a_dataset(tmp_path: Path, name: str, is_folder: bool):
    """A dataset may be unpacked beside private folders."""
    path = written.write_hssd(tmp_path)
    moved = tmp_path / name if is_folder else next(file for file in tmp_path.glob(f"{name}/**/*") if file.is_file())
    moved.rename(tmp_path / "private")
    moved.symlink_to(tmp_path / "private")
    for read in (open_scene, further_files):
        told = refusal(read, path)
        assert "this is a link" in told or "there is no mesh of" in told


@pytest.mark.parametrize("write", [written.write_hm3d, written.write_scannet, written.write_replica])
def test_labels_of_a_scan_that_are_links_are_refused(tmp_path: Path, write: Callable[[Path], Path]):
    path = write(tmp_path / "scans")
    other = further_files(path)[-1]
    other.rename(tmp_path / other.name)
    other.symlink_to(tmp_path / other.name)
    source = MeshSource.model_validate({"meshes": str(path)})
    for read in (lambda: source.open(0), source.fingerprint):
        assert f"{other}: this is a link out of its folder" in refusal(read)


@contextmanager
def opened_below(folder: Path) -> Iterator[set[Path]]:
    """Collect the files below a folder that Python opens."""
    found: set[Path] = set()
    is_active = True

    def note(event: str, given: tuple[Any, ...]) -> None:
        if is_active and event == "open" and str(given[0]).startswith(str(folder)):
            found.add(Path(given[0]))

    sys.addaudithook(note)  # it cannot be removed
    yield found
    is_active = False


@pytest.mark.parametrize("pattern", ["nothing.glb", "no/*.glb"])
def test_missing_scenes_are_refused(tmp_path: Path, pattern: str):
    source = MeshSource.model_validate({"meshes": pattern}).seen_from(tmp_path)
    with pytest.raises(InputError, match="no file"):
        _ = source.count


@pytest.mark.parametrize("has_proxy", [False, True])
def test_splat_files_have_cloud_and_geometry(tmp_path: Path, has_proxy: bool):
    write_training_ply(room_cloud(5000), tmp_path / "room.ply")
    entry = {"splat": "room.ply", "up": "z"}
    if has_proxy:
        write_glb(tmp_path / "proxy.glb", {"room": room_corners().astype(float)})
        entry["proxy"] = "proxy.glb"
    source = SplatFileSource.model_validate({"splats": (entry,)}).seen_from(tmp_path)
    placed = source.placed(0)
    assert placed is source.placed(0) and placed.has_mesh == has_proxy and len(placed.cloud) == 5000
    assert source.open(0) is placed.scene
    assert len(source.fingerprint()) == (3 if has_proxy else 2)


def test_splat_homes_are_sampled_from_their_surfaces():
    source = SplatHomesSource.model_validate({"splat_homes": 2, "rooms": (3, 4), "per_home": 2000})
    placed = source.placed(1)
    low, high = placed.scene.corners.min(axis=(0, 1)), placed.scene.corners.max(axis=(0, 1))
    assert len(placed.cloud) == 2000 and placed.samples is not None
    assert (placed.cloud.positions >= low - 1e-4).all() and (placed.cloud.positions <= high + 1e-4).all()
    assert np.array_equal(placed.cloud.positions, source.read(1).cloud.positions)


@pytest.mark.parametrize(
    ("pattern", "found"), [("**/*.glb", "a b"), ("*/*.glb", "b"), ("s*/b.glb", "b"), ("?.glb", "a")]
)
def test_patterns_match_as_in_shells(tmp_path: Path, pattern: str, found: str):
    for name in ("a.glb", "scans/b.glb", "scans/c.ply"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert " ".join(path.stem for path in find_files((str(tmp_path / pattern),))) == found


@pytest.mark.parametrize("pattern", ["**/*.glb", "**/**/**/*", "*/x.glb"])
def test_patterns_that_search_everything_are_refused(tmp_path: Path, pattern: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "_MOST_LISTED", 20)
    for number in range(21):
        (tmp_path / f"{number}").mkdir()
    os.symlink(tmp_path, tmp_path / "3" / "again")
    assert "searches more than 20 files and folders" in refusal(find_files, (str(tmp_path / pattern),))


def test_scenes_are_parsed_in_a_child_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_hm3d(tmp_path)
    expected = open_scene(path)
    monkeypatch.setattr(glb, "read_nodes", pytest.fail)
    scene = MeshSource.model_validate({"meshes": str(path)}).open(0)
    assert (scene.content_hash, scene.rooms, scene.is_lit) == (
        expected.content_hash,
        expected.rooms,
        expected.is_lit,
    )
    for one, other in zip(scene.parts, expected.parts, strict=True):
        assert (one.name, one.object_class, one.room) == (other.name, other.object_class, other.room)
        for name in ("vertices", "faces", "normals", "uvs", "colors"):
            assert np.array_equal(getattr(one.triangles, name), getattr(other.triangles, name))
        assert (one.image is None) == (other.image is None)
        assert one.image is None or other.image is None or np.array_equal(one.image, other.image)


def test_a_scene_that_fills_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limited, "_MEMORY", 1 << 20)
    things = room_things()
    things["chair.001"] = np.tile(things["chair.001"], (20_000, 1, 1))  # no free memory of the process can hold it
    source = MeshSource.model_validate({"meshes": str(write_glb(tmp_path / "a.glb", things))})
    assert "memory" in refusal(source.open, 0) or "crashed" in refusal(source.open, 0)
