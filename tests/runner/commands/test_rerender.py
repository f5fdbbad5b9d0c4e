from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nimbus.datagen.episode.provenance import Provenance, installed_versions
from nimbus.datagen.randomize.appearance import TexturesRandomization
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.tasks.stored_pictures import check_pictures
from nimbus.datagen.tasks.task import parse_any_task
from nimbus.runner.cli import main
from nimbus.runner.commands.rerender import _shown_scene
from tests.support.described import describe
from tests.support.refusals import refusal
from tests.support.runs import sound


def rerender(source: Path, episode: str, out: Path, *words: str) -> int:
    return main(["rerender", str(source), episode, "--out", str(out), *words])


def assert_equal(one: Path, other: Path) -> None:
    with EpisodeFile(one) as a, EpisodeFile(other) as b:
        paths = list(a.paths())
        assert paths == list(b.paths())
        assert any(path.startswith("observations/images/") for path in paths)
        for path in paths:
            if path not in ("provenance", "plan_statistics"):
                np.testing.assert_array_equal(a.array(path), b.array(path), err_msg=path)


def test_an_episode_rendered_again_is_the_same_in_every_pixel(tiny: Path, tmp_path: Path):
    before = min(tiny.glob("episodes/*"))
    assert rerender(tiny, before.stem, tmp_path / "new") == 0
    sound(tmp_path / "new")
    assert_equal(before, tmp_path / "new" / "episodes" / before.name)


def test_another_variant_is_what_a_run_with_variants_stores(tiny: Path, tmp_path: Path):
    first, second = sorted(tiny.glob("episodes/*"))[:2]
    assert rerender(tiny, first.stem, tmp_path / "new", "--variant", "1") == 0
    assert_equal(second, tmp_path / "new" / "episodes" / second.name)


@pytest.mark.slow
def test_what_is_already_there_stays(tiny: Path, tmp_path: Path, capsys):
    episode = min(tiny.glob("episodes/*")).stem
    assert rerender(tiny, episode, tmp_path / "new") == 0
    before = sound(tmp_path / "new")
    capsys.readouterr()
    assert rerender(tiny, episode, tmp_path / "new") == 0
    assert capsys.readouterr().out == f"dataset: {tmp_path / 'new'}\nreport:  {tmp_path / 'new' / 'report.html'}\n"
    assert sound(tmp_path / "new") == before


@pytest.mark.parametrize("folder", ["/private/", "linked/", "../other/"])
def test_a_stored_task_draws_no_pictures_from_elsewhere(tiny: Path, tmp_path: Path, monkeypatch, folder: str):
    (tmp_path / "here/linked").mkdir(parents=True)
    (tmp_path / "here/linked/photo.png").symlink_to(tmp_path / "photo.png")
    monkeypatch.chdir(tmp_path / "here")
    with EpisodeFile(min(tiny.glob("episodes/*"))) as episode:
        task = parse_any_task(episode.provenance.task_text, name="tiny")
    task = replace(task, randomize={"textures": TexturesRandomization.model_validate({"folder": folder})})
    stated = Provenance(task_text="", task_hash="", assets={"pictures of textures": ""})
    assert "images that no task of yours draws" in refusal(check_pictures, task, stated, where="here")


def test_photos_below_the_current_folder_are_not_drawn_for_a_stored_task(
    tiny: Path, tmp_path: Path, monkeypatch, capsys
):
    """A foreign dataset can name ``Pictures`` without knowing a path."""
    (tmp_path / "Pictures").mkdir()
    (tmp_path / "Pictures/me.png").write_bytes(b"a photo")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny, "ds")
    path = min(Path("ds").glob("episodes/*"))
    with h5py.File(path, "r+") as file:
        stored: Any = file["provenance"]
        text = stored[()].decode()
        with_photos = text.replace("randomize:", "randomize:\\n  textures: {folder: Pictures}", 1)
        assert with_photos != text
        attributes = dict(stored.attrs)
        del file["provenance"]
        file.create_dataset("provenance", data=with_photos.encode()).attrs.update(attributes)
    assert rerender(Path("ds"), path.stem, Path("new")) == 2
    assert "its task names the file 'Pictures/'" in capsys.readouterr().err
    assert not Path("new").exists()


@pytest.mark.parametrize(("is_stored", "renderer"), [(True, "NewtonRenderer"), (False, "ExternalRenderer")])
def test_a_stored_pipeline_file_starts_nothing(tiny: Path, tmp_path: Path, monkeypatch, is_stored: bool, renderer: str):
    """A pipeline can start programs, and a foreign dataset could contain one."""
    monkeypatch.chdir(tmp_path)
    render = "render:\n  external: {command: [touch, started]}"
    Path("own.yaml").write_text(f"load: usd\nrandomize: tabletop\nplan: skills\n{render}\nstore: hdf5\n")
    with EpisodeFile(min(tiny.glob("episodes/*"))) as episode:
        task = parse_any_task(f"{episode.provenance.task_text}\npipeline: own.yaml\n", name="tiny")
    made = _shown_scene(task, None, is_stored=is_stored).renderer(None, "cpu")
    assert type(made).__name__ == renderer
    assert not Path("started").exists()


def test_another_task_gives_other_cameras_to_the_same_motion(tiny: Path, tmp_path: Path, task_text: str):
    before = min(tiny.glob("episodes/*"))
    lines = [line for line in task_text.splitlines() if not line.startswith("  wrist:")]
    task = tmp_path / "wide.yaml"
    task.write_text("\n".join(lines).replace("size: [64, 48]", "size: [48, 32]"))
    assert rerender(tiny, before.stem, tmp_path / "new", "--task", str(task)) == 0
    sound(tmp_path / "new")
    with EpisodeFile(before) as a, EpisodeFile(next((tmp_path / "new" / "episodes").iterdir())) as b:
        assert b.cameras == ("front",)
        assert b["observations/images/front"].shape[1:] == (32, 48, 3)
        np.testing.assert_array_equal(a.array("action"), b.array("action"))
        assert b.file.attrs["plan_id"] == a.file.attrs["plan_id"] == before.stem
        assert b.layout().key.plan_id == before.stem


def test_another_task_gives_another_wording_a_preview_and_a_report(tiny: Path, tmp_path: Path, task_text: str):
    before = min(tiny.glob("episodes/*"))
    task = tmp_path / "told.yaml"
    task.write_text(task_text.replace('["Sort the trash.", "Sort {items}."]', '["Put {items} away."]'))
    new = tmp_path / "new"
    assert rerender(tiny, before.stem, new, "--task", str(task)) == 0
    with EpisodeFile(next((new / "episodes").iterdir())) as episode:
        assert episode.instruction == "Put the can away."
        assert {path.name for path in (new / "preview").iterdir()} == {
            "contact_sheet.png",
            f"{episode.episode_id}.mp4",
        }
    assert "Put the can away." in (new / "report.html").read_text()


def test_new_pixels_have_a_provenance_of_their_own(copy: Path, tmp_path: Path):
    before = min(copy.glob("episodes/*"))
    with h5py.File(before, "r+") as file:  # as if it had been made on another machine, long ago
        text: Any = file["provenance"]
        old = json.loads(text[()].decode())
        old |= {"versions": {"newton": "0.1"}, "assets": {"robot panda": "0"}}
        old["settings"] |= {"device": "cuda", "planner": "curobo"}
        del file["provenance"]
        file["provenance"] = json.dumps(old)
    assert rerender(copy, before.stem, tmp_path / "new") == 0
    with EpisodeFile(tmp_path / "new" / "episodes" / before.name) as episode:
        made = episode.provenance
    assert made.versions == installed_versions()
    assert made.assets.keys() == {"scene tabletop", "robot panda", "library trash"}
    assert made.assets["robot panda"] != "0"
    assert made.settings == {"sim": "newton", "planner": "curobo", "device": "cpu", "source": before.stem}


def test_plans_of_another_origin_are_not_mixed_in(copy: Path, tmp_path: Path, capsys):
    before = min(copy.glob("episodes/*"))
    assert rerender(copy, before.stem, tmp_path / "new") == 0
    describe(copy, inputs={"mujoco": "0.1"})
    assert rerender(copy, before.stem, tmp_path / "new") == 2
    assert "holds a dataset made with another plans (" in capsys.readouterr().err


def test_source_hashed_dataset_is_not_rerendered(copy: Path, tmp_path: Path, capsys):
    describe(copy, inputs={"render newton": "aef5d49d746092ef"})
    assert rerender(copy, min(copy.glob("episodes/*")).stem, tmp_path / "new") == 2
    line = capsys.readouterr().err
    assert "which identified components by a hash of their source; render it again with that version\n" in line
    assert line.count("\n") == 1 and not (tmp_path / "new").exists()


def test_a_dataset_is_not_rendered_into_itself(copy: Path, capsys):
    before = sound(copy)
    assert rerender(copy, min(copy.glob("episodes/*")).stem, copy) == 2
    assert capsys.readouterr().err == f"--out {copy}: the folder is the source dataset; choose another folder\n"
    assert sound(copy) == before


def test_an_external_program_draws_stored_motions(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Modalities that the program does not provide are left out; the motion is unchanged."""
    before = min(tiny.glob("episodes/*"))
    renderer = Path(__file__).parents[3] / "integrations" / "external_renderer" / "mujoco_renderer.py"
    stages = "load: usd\nrandomize: tabletop\nplan: skills\nstore: hdf5\n"
    (tmp_path / "drawn.yaml").write_text(f"{stages}render: {{external: {{command: [python, {renderer}]}}}}\n")
    assert rerender(tiny, before.stem, tmp_path / "new", "--pipeline", str(tmp_path / "drawn.yaml")) == 0
    (after,) = (tmp_path / "new" / "episodes").glob("*")
    with EpisodeFile(before) as old, EpisodeFile(after) as new:
        np.testing.assert_array_equal(old.array("observations/qpos"), new.array("observations/qpos"))
        assert {path for path in old.paths() if "normals" in path} and not any(
            "normals" in path for path in new.paths()
        )
