"""Links in folders of assets, which archives and repositories keep, do not lead to files elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import trimesh
from PIL import Image

from nimbus.datagen.files.asset_folders import check_all_below, check_below, files_below, folders_of
from nimbus.datagen.navigate.sources.files import find_files
from nimbus.datagen.objects.imported.library import AssetLibrary
from nimbus.datagen.objects.prepared.library import PreparedLibrary
from nimbus.datagen.randomize.appearance import TexturesRandomization
from nimbus.datagen.tasks.stored_pictures import hash_pictures
from nimbus.datagen.tasks.task import parse_task
from tests.support.one_can import TEXT
from tests.support.refusals import refusal

SAID = "this is a link out of its folder, which may lead to a private file"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin in a folder with private files beside a folder of assets."""
    monkeypatch.chdir(tmp_path)
    for name in ("private", "assets"):
        Path(name).mkdir()


def test_links_within_a_folder_and_of_the_folder_itself_are_accepted() -> None:
    Path("assets/a.png").write_bytes(b"")
    Path("assets/b.png").symlink_to("a.png")
    Path("linked").symlink_to("assets")
    for name in ("a.png", "b.png", "missing.png"):
        check_below(Path("linked", name), Path("linked"))


def test_a_download_from_a_hub_is_accepted() -> None:
    """Its files are links to contents beside them; a link of the folder of contents is not followed."""
    snapshot = Path("assets/models--a/snapshots/1f2e")
    snapshot.mkdir(parents=True)
    Path("assets/models--a/blobs").mkdir()
    Path("assets/models--a/blobs/77").write_bytes(b"")
    (snapshot / "a.png").symlink_to("../../blobs/77")
    check_below(snapshot / "a.png", snapshot)
    Path("assets/models--a/blobs").rename("assets/other")
    Path("private/77").write_bytes(b"")
    Path("assets/models--a/blobs").symlink_to("../../private")
    assert SAID in refusal(check_below, snapshot / "a.png", snapshot)


def test_images() -> None:
    Image.new("RGB", (8, 8)).save("private/a.png")
    Path("assets/wood.png").symlink_to("../private/a.png")
    field, what, _ = TexturesRandomization.model_validate({"folder": "assets/"}).complaint((), {}) or ("", "", "")
    assert field == "folder" and SAID in what
    task = parse_task(f"{TEXT}randomize: {{textures: {{folder: assets}}}}\n")
    assert SAID in refusal(hash_pictures, task)


@pytest.mark.parametrize("name", ["cup.stl", "box.yaml", "library.yaml", "box.mtl"])
def test_meshes_their_settings_and_further_files(name: str) -> None:
    trimesh.creation.box((0.05, 0.05, 0.05)).export("assets/box.stl")
    Path("private/file").write_text("")
    Path("assets", name).symlink_to("../private/file")
    assert f"assets/{name}: {SAID}" in refusal(AssetLibrary, Path("assets"))


def test_a_prepared_library() -> None:
    Path("private/index.json").write_text("{}")
    Path("assets/index.json").symlink_to("../private/index.json")
    assert SAID in refusal(PreparedLibrary, Path("assets"))


@pytest.mark.parametrize("pattern", ["assets/*.glb", "assets/*/*.glb"])
def test_patterns_of_scans(pattern: str) -> None:
    """A link whose path the user writes is accepted."""
    Path("private/scan.glb").write_bytes(b"")
    Path("assets/scan.glb").symlink_to("../private/scan.glb")
    Path("assets/more").symlink_to("../private")
    assert SAID in refusal(find_files, (pattern,))
    for name in ("assets/scan.glb", "assets/more"):
        Path(name).unlink()
    Path("assets/evil").mkdir()
    Path("assets/evil/scan.glb").symlink_to("../mine.glb")
    Path("assets/mine.glb").write_bytes(b"")
    for crossing in ("assets/*/*.glb", "assets/**/*.glb"):
        assert SAID in refusal(find_files, (crossing,))
    Path("assets/evil/scan.glb").unlink()
    Path("assets/evil").rmdir()
    Path("assets/mine/more").mkdir(parents=True)
    Path("assets/mine/more/scan.glb").write_bytes(b"")
    Path("assets/evil").symlink_to("mine/more")
    Path("assets/evil.glb").symlink_to("mine/more/scan.glb")
    for crossing in ("assets/*/*.glb", "assets/**/*.glb", "assets/e*.glb", "assets/e*/scan.glb"):
        assert "this is a link into another folder" in refusal(find_files, (crossing,))
    Path("assets/scan.glb").symlink_to("../private/scan.glb")
    assert find_files(("assets/scan.glb",)) == (Path("assets/scan.glb"),)


def test_a_link_in_the_place_of_the_blobs_of_a_download_adds_no_folder(tmp_path: Path) -> None:
    snapshot = tmp_path / "datasets--hub" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (tmp_path / "datasets--hub" / "blobs").symlink_to(tmp_path / "private")
    assert folders_of(snapshot) == (snapshot,)


def test_a_folder_snapshots_without_a_download_adds_no_folder(tmp_path: Path) -> None:
    """An archive without a folder of its own may be unpacked beside blobs of the user."""
    snapshot = tmp_path / "snapshots" / "library"
    snapshot.mkdir(parents=True)
    (tmp_path / "blobs").mkdir()
    assert folders_of(snapshot) == (snapshot,)


def test_links_in_a_circle_are_no_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert files_below(tmp_path, tmp_path) == []
    check_all_below([tmp_path / "loop"], tmp_path)
