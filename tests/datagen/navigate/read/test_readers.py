"""Foreign scenes: every format gives the same room with the same names, and every unusable file causes an error of one
line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.free_space import find_free_space
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read import assemble, front_json, hssd
from nimbus.datagen.navigate.read.open_scene import open_scene
from nimbus.datagen.navigate.read.splats import read_splat_scene
from nimbus.datagen.navigate.triangle_tests import CollisionMesh
from nimbus.datagen.splats.training_ply import write_training_ply
from tests.support import foreign_scenes as written
from tests.support.refusals import refusal
from tests.support.splat_room import room_cloud, room_corners

BODY = BodyShape(radius=0.25, height=1.4, step=0.02)
Writer = Callable[[Path], Path]


def free_area(scene: NavigationScene) -> float:
    return find_free_space(CollisionMesh(scene.corners), BODY).area


@pytest.mark.parametrize(
    "write",
    [
        written.write_gibson,
        written.write_hm3d,
        written.write_scannet,
        written.write_replica,
        written.write_hssd,
        written.write_front,
        written.write_usd,
    ],
)
def test_every_format_gives_the_room(tmp_path: Path, write: Writer):
    scene = open_scene(write(tmp_path))
    points = scene.corners.reshape(-1, 3)
    assert np.abs(points.min(axis=0)).max() < 1e-3 and np.abs(points.max(axis=0) - (5, 4, 2.5)).max() < 1e-3
    found = {thing.name: thing for thing in scene.goals}
    chair = found.get("chair_0") or found["dining_chair_0"]
    assert np.abs(chair.middle - (1.25, 1.25, 0.45)).max() < 0.01
    table = next(thing for name, thing in found.items() if "table" in name)
    assert np.abs(table.middle - (2.8, 3.2, 0.35)).max() < 0.01
    assert 10.5 < free_area(scene) < 13.5
    assert open_scene(write(tmp_path / "again")).content_hash == scene.content_hash


@pytest.mark.parametrize("write", [written.write_hssd, written.write_front])
def test_repeated_meshes_are_counted_before_they_are_copied(
    tmp_path: Path, write: Writer, monkeypatch: pytest.MonkeyPatch
):
    path = write(tmp_path)
    monkeypatch.setattr(assemble, "MOST_FACES", 20)
    for reader in (hssd, front_json):
        monkeypatch.setattr(reader, "make_scene", pytest.fail)
    assert "triangles; the limit is 20" in refusal(open_scene, path)


def test_scans_carry_their_light_and_models_do_not(tmp_path: Path):
    assert open_scene(written.write_scannet(tmp_path)).is_lit
    assert not open_scene(written.write_hssd(tmp_path)).is_lit
    assert open_scene(written.write_gibson(tmp_path)).is_lit
    assert not open_scene(written.write_plain_glb(tmp_path / "plain.glb")).is_lit


def test_hm3d_regions_become_rooms(tmp_path: Path):
    scene = open_scene(written.write_hm3d(tmp_path))
    assert [room.name for room in scene.rooms] == ["region_3"]
    assert scene.room_of(np.array([[2.0, 2.0, 0.1]])) == ["region_3"]


def test_front_rooms_have_their_kind(tmp_path: Path):
    (room,) = open_scene(written.write_front(tmp_path)).rooms
    assert (room.kind, round(room.height, 3)) == ("livingdiningroom", 2.5)


def test_up_axis_of_task_is_taken(tmp_path: Path):
    path = written.write_glb(tmp_path / "flat.glb", written.room_things(), np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]]))
    assert 10.5 < free_area(open_scene(path, "x")) < 13.5


def _tilted(folder: Path) -> Path:
    angle = 0.6
    turn = [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]]
    leaning = [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
    return written.write_glb(folder / "flat.glb", written.room_things(), np.array(turn) @ np.array(leaning))


def _walls_alone(folder: Path) -> Path:
    things = written.room_things()
    across = {name: np.abs(np.cross(c[:, 1] - c[:, 0], c[:, 2] - c[:, 0])) for name, c in things.items()}
    upright = {name: things[name][area[:, 2] < 1e-6] for name, area in across.items()}
    return written.write_glb(folder / "flat.glb", {name: corners for name, corners in upright.items() if len(corners)})


def _scaled(factor: float) -> Writer:
    things = {name: corners * factor for name, corners in written.room_things().items()}
    return lambda folder: written.write_glb(folder / "flat.glb", things)


def _content(name: str, content: bytes) -> Writer:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def _cut(write: Writer) -> Writer:
    def cut(folder: Path) -> Path:
        path = write(folder)
        written.cut(path)
        return path

    return cut


def _nan(folder: Path) -> Path:
    things = written.room_things()
    things["chair.001"][0, 0, 0] = np.nan
    path = folder / "room.ply"
    written.colored(np.concatenate(list(things.values())), (9, 9, 9)).export(path)
    return path


def _without_object(folder: Path) -> Path:
    path = written.write_hssd(folder)
    written.remove(folder / "objects")
    return path


def _wrong_segments(folder: Path) -> Path:
    path = written.write_scannet(folder)
    path.with_name("scene0000_00_vh_clean_2.0.010000.segs.json").write_text(json.dumps({"segIndices": [1, 2]}))
    return path


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_tilted, "the up axis is not clear"),
        (_walls_alone, "the scene has walls but no floor"),
        (_scaled(1000.0), "export one building or apartment per file, in meters"),
        (_scaled(0.01), "export one building or apartment per file, in meters"),
        (_content("a.glb", b""), "the file is empty"),
        (_content("a.ply", b""), "the file is empty"),
        (
            _content("a.ply", b"ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nend_header\n"),
            "cannot|triangle",
        ),
        (_content("a.json", b"{}"), "is not a 3D-FRONT house"),
        (_content("a.json", b"[1"), "cannot be read"),
        (_content("a.usda", b"#usda 1.0\n"), "no visible mesh"),
        (_content("a.usda", b"nothing"), "USD cannot open it"),
        (_content("a.fbx", b"nothing"), "not a supported scene format"),
        (_cut(written.write_gibson), "cannot be read"),
        (_cut(written.write_scannet), "cannot be read|corners"),
        (_cut(written.write_hssd), "cannot be read"),
        (_nan, "up axis is not clear|not finite numbers"),
        (_without_object, "there is no mesh of"),
        (_wrong_segments, "2 segment numbers for"),
    ],
)
def test_unusable_scenes_are_refused_in_one_line(tmp_path: Path, write: Writer, said: str):
    path = write(tmp_path)
    with pytest.raises(InputError, match=said) as caught:
        open_scene(path)
    assert "\n" not in str(caught.value)


def test_scenes_without_room_are_refused(tmp_path: Path):
    path = _scaled(0.3)(tmp_path)
    with pytest.raises(InputError, match="free area"):
        free_area(open_scene(path))


def test_too_many_triangles_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("nimbus.datagen.navigate.read.assemble.MOST_FACES", 10)
    with pytest.raises(InputError, match="48 triangles; the limit is 10"):
        open_scene(written.write_gibson(tmp_path))


@pytest.mark.parametrize("has_proxy", [False, True])
def test_splats_are_scenes_with_a_proxy(tmp_path: Path, has_proxy: bool):
    cloud = room_cloud(20_000)
    write_training_ply(cloud, tmp_path / "room.ply")
    proxy = written.write_glb(tmp_path / "proxy.glb", {"room": room_corners().astype(float)}) if has_proxy else None
    found = read_splat_scene(tmp_path / "room.ply", proxy=proxy, up="z")
    assert len(found.cloud) == 20_000 and found.scene.is_lit
    assert 14 < free_area(found.scene) < 18
    assert found.scene.content_hash != read_splat_scene(tmp_path / "room.ply", up="z", scale=1.01).scene.content_hash


def test_splats_with_a_proxy_elsewhere_are_refused(tmp_path: Path):
    write_training_ply(room_cloud(5000), tmp_path / "room.ply")
    moved = room_corners().astype(float) + (0.1, 0, 0)
    proxy = written.write_glb(tmp_path / "proxy.glb", {"room": moved})
    with pytest.raises(InputError, match="10.0 cm away from its splats"):
        read_splat_scene(tmp_path / "room.ply", proxy=proxy, up="z")
    with pytest.raises(InputError, match="contains splats, not a mesh"):
        open_scene(tmp_path / "room.ply")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("scene0000_00.aggregation.json", '"objectId": 0', '"objectId": "x"'),
        ("scene0000_00.aggregation.json", '"objectId": 0', f'"objectId": {10**40}'),
        ("scene0000_00_vh_clean_2.0.010000.segs.json", "[0,", f"[{2**60},"),
        ("scene0000_00_vh_clean_2.0.010000.segs.json", "[0,", "[-7,"),
    ],
    ids=["text", "large", "endless", "negative"],
)
def test_spoilt_labels_are_one_line(tmp_path: Path, name: str, old: str, new: str):
    """A segment with number 2**60 would allocate as many numbers."""
    path = written.write_scannet(tmp_path)
    labels = path.with_name(name)
    assert old in (text := labels.read_text())
    labels.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match="labels of the scan cannot be read"):
        open_scene(path)


@pytest.mark.parametrize("name", ["TEEsavR23oF.glb", "TEEsavR23oF.semantic.glb"])
def test_vertex_that_is_no_number_is_one_line(tmp_path: Path, name: str):
    """Labels come from the nearest face, and this vertex has no face near it."""
    file = written.write_hm3d(tmp_path).with_name(name)
    content = bytearray(file.read_bytes())
    length = int.from_bytes(content[12:16], "little")
    table = json.loads(content[20 : 20 + length])
    places = next(one for one in table["accessors"] if one["type"] == "VEC3")
    begin = 28 + length + table["bufferViews"][places["bufferView"]].get("byteOffset", 0)
    content[begin : begin + 4] = np.float32(np.nan).tobytes()
    file.write_bytes(content)
    assert "is not a number" in refusal(open_scene, file.with_name("TEEsavR23oF.glb"))


def test_instances_that_are_no_objects_are_one_line(tmp_path: Path):
    path = written.write_hssd(tmp_path)
    scene = json.loads(path.read_text())
    path.write_text(json.dumps(scene | {"object_instances": [[]]}))
    assert "an entry of object_instances is not an object" in refusal(open_scene, path)


def test_face_of_no_corner_is_one_line(tmp_path: Path):
    path = written.write_scannet(tmp_path)
    content = bytearray(path.read_bytes())
    content[-4:] = (-5).to_bytes(4, "little", signed=True)
    path.write_bytes(bytes(content))
    with pytest.raises(InputError):
        open_scene(path)


def test_templates_outside_the_dataset_are_refused(tmp_path: Path):
    path = written.write_hssd(tmp_path / "dataset")
    (tmp_path / "private.glb").write_bytes((tmp_path / "dataset/objects/beef01.glb").read_bytes())
    (tmp_path / "dataset/objects/beef02.glb").symlink_to(tmp_path / "private.glb")
    text = path.read_text()
    for template in (str(tmp_path / "private"), "beef02", "x" * 5000, "beef\\u0000"):
        path.write_text(text.replace("beef01", template))
        for read in (open_scene, hssd.instance_files):
            assert "there is no mesh of" in refusal(read, path)


def test_the_dataset_of_an_instance_is_its_folder_unless_it_is_among_scenes(tmp_path: Path):
    """The folder above may be a home folder with private scans."""
    path = written.write_hssd(tmp_path)
    path.parent.rename(tmp_path / "scenes-uncluttered")
    assert open_scene(tmp_path / "scenes-uncluttered" / path.name).parts
    (tmp_path / "downloaded").mkdir()
    moved = (tmp_path / "scenes-uncluttered" / path.name).rename(tmp_path / "downloaded" / path.name)
    assert "there is no mesh of 'stages/102343992'" in refusal(open_scene, moved)


def test_models_that_are_links_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written.write_front(tmp_path)
    assert len(front_json.house_files(path)) == 1
    model = tmp_path / "3D-FUTURE-model/0a-b/raw_model.obj"
    (tmp_path / "private.png").touch()
    model.with_name("texture.png").symlink_to(tmp_path / "private.png")
    assert front_json.house_files(path) == [model]
    model.rename(tmp_path / "private.obj")
    model.symlink_to(tmp_path / "private.obj")
    assert front_json.house_files(path) == []
    long = path.with_name("long.json")
    long.write_text(path.read_text().replace("0a-b", "x" * 300))
    assert front_json.house_files(long) == []
    monkeypatch.setattr(front_json, "read_surface", pytest.fail)
    assert open_scene(path).parts
