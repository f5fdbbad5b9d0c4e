"""A scene of others among files of the user: its readers open the files of its format, and none beside these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from nimbus.datagen.files import limited_process
from nimbus.datagen.files.access_limits import landlock_version
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.navigate.read.hssd import TABLES
from nimbus.datagen.navigate.read.limited import list_limited, open_limited, read_limited_splats
from nimbus.datagen.navigate.read.open_scene import further_files, open_scene, scene_places
from nimbus.datagen.splats.training_ply import write_training_ply
from tests.support.foreign_scenes import write_front, write_glb, write_hssd
from tests.support.refusals import refusal
from tests.support.splat_room import room_cloud, room_corners

CLASSES = {"chair", "dining_table"}
PRIVATE = "id,main_category\na1b2c3,secret project\nbeef01,secret project\n"


def goal_classes(path: Path) -> set[str]:
    return {part.object_class for part in open_scene(path).goals}


@pytest.mark.parametrize("name", ["metadata/budget.csv", "semantics/budget.csv"])
def test_tables_of_the_user_are_not_read(tmp_path: Path, name: str):
    """An archive may be unpacked in a folder with ``metadata`` of the user; categories enter names and instructions."""
    path = write_hssd(tmp_path)
    before = further_files(path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(PRIVATE)
    assert goal_classes(path) == CLASSES
    assert further_files(path) == before


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_known_datasets_are_read(tmp_path: Path, name: str):
    path, table = write_hssd(tmp_path), tmp_path / name
    table.parent.mkdir(exist_ok=True)
    (tmp_path / "semantics/objects.csv").rename(table)
    assert goal_classes(path) == CLASSES
    assert table in further_files(path)


def test_the_table_that_is_used_is_hashed(tmp_path: Path):
    path = write_hssd(tmp_path)
    (tmp_path / "metadata").mkdir()
    content = (tmp_path / "semantics/objects.csv").read_text()
    (tmp_path / TABLES[0]).write_text(content.replace("dining table", "desk"))
    (tmp_path / TABLES[1]).write_text(content)
    assert goal_classes(path) == {"chair", "desk"}
    assert {file for file in further_files(path) if file.suffix == ".csv"} == {tmp_path / TABLES[0]}
    (tmp_path / TABLES[0]).write_text("id,price\na1b2c3,7\n")
    assert goal_classes(path) == CLASSES
    assert {file for file in further_files(path) if file.suffix == ".csv"} == {tmp_path / TABLES[1]}


def test_a_table_is_no_link_to_a_table_beside_it(tmp_path: Path):
    path, table = write_hssd(tmp_path), tmp_path / "semantics/objects.csv"
    table.with_name("budget.csv").write_text(PRIVATE)
    table.unlink()
    table.symlink_to("budget.csv")
    for read in (open_scene, further_files):
        assert f"{table}: this is a link" in refusal(read, path)


def look(file: str, private: str) -> list[str]:
    """Return the private files that can be opened; a function of a limited process, in place of a reader."""
    return [name for name in private.split() if _opens(name)]


def _opens(name: str) -> bool:
    try:
        return bool(Path(name).read_bytes())
    except PermissionError:
        return False


def readable(path: Path, files: Iterable[Path]) -> set[Path]:
    """Return the files that the kernel lets the reader of a scene open."""
    given = {"file": path, "private": " ".join(map(str, files))}
    return set(map(Path, run_limited(f"{__name__}:look", given, where="here", reads=scene_places([path]))))


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("write", [write_hssd, write_front])
def test_the_kernel_opens_the_files_of_a_scene_alone(tmp_path: Path, write: Callable[[Path], Path]):
    """The dataset may be unpacked in the home folder, with its folders ``metadata`` and ``.ssh``."""
    path = write(tmp_path)
    own = {file for file in tmp_path.rglob("*") if file.is_file()}
    private = {tmp_path / name for name in (".ssh/key", "notes.txt", "metadata/budget.csv", "semantics/budget.csv")}
    for file in private:
        file.parent.mkdir(exist_ok=True)
        file.write_text("private")
    assert readable(path, private | own) == own


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize(
    ("write", "name"),
    [(write_hssd, "stages"), (write_hssd, "semantics"), (write_hssd, TABLES[3]), (write_front, "3D-FUTURE-model")],
)
def test_the_kernel_opens_no_links_of_a_dataset(tmp_path: Path, write: Callable[[Path], Path], name: str):
    path, place, private = write(tmp_path / "data"), tmp_path / "data" / name, tmp_path / "private"
    place.rename(private)
    place.symlink_to(private)
    target = private if private.is_file() else next(file for file in private.rglob("*") if file.is_file())
    assert not readable(path, [target])


@pytest.mark.parametrize("write", [write_hssd, write_front])
def test_scenes_are_read_from_the_current_folder(
    tmp_path: Path, write: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
):
    path = write(tmp_path)
    monkeypatch.chdir(path.parent)
    assert list_limited([Path(path.name)])[Path(path.name)] == sorted(further_files(path))
    assert open_limited(Path(path.name)).content_hash == open_scene(path).content_hash


def test_a_proxy_of_splats_is_read_with_its_dataset(tmp_path: Path):
    """The proxy of this room is elsewhere, which only its reader knows."""
    splats, proxy = tmp_path / "splats/room.ply", write_hssd(tmp_path / "data")
    splats.parent.mkdir()
    write_training_ply(room_cloud(5000), splats)
    assert "cm away from its splats" in refusal(read_limited_splats, splats, up="z", proxy=proxy)


def test_a_proxy_of_splats_is_read_with_the_kernels_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Warp's own folder of kernels is another one, and the process may write neither."""
    monkeypatch.setenv("NIMBUS_CACHE", str(cache_folder("warp").parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("WARP_CACHE_PATH", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(limited_process, "_known", [])  # a new server with this environment
    write_training_ply(room_cloud(5000), tmp_path / "room.ply")
    proxy = write_glb(tmp_path / "proxy.glb", {"room": room_corners().astype(float)})
    try:
        assert len(read_limited_splats(tmp_path / "room.ply", up="z", proxy=proxy).cloud) == 5000
    finally:
        limited_process._known[0].end()
    assert not (tmp_path / ".cache").exists()
