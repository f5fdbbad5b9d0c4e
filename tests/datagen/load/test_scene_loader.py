"""The Load stage opens a task's assets and determines the robot's reach."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.load.scene_loader import UsdSceneLoader, load_assets
from nimbus.datagen.stages import Request
from nimbus.datagen.tasks.task import load_task
from tests.support.one_can import TEXT, assets, task
from tests.support.refusals import refusal


def load_refusal(path: Path, text: str) -> str:
    path.write_text(text)
    return refusal(load_assets, load_task(path)).replace(f"{path.parent}/", "")


def test_requests_share_one_scene():
    loader = UsdSceneLoader(task(), assets(), run_settings={"sim": "newton"})
    scenes = list(loader(Request(index=index) for index in range(2)))
    assert [scene.request.index for scene in scenes] == [0, 1]
    assert scenes[0].assets is scenes[1].assets is assets()
    assert scenes[0].provenance.assets is scenes[1].provenance.assets  # hashed once


def test_provenance_names_everything_that_decides_an_episode():
    (scene,) = UsdSceneLoader(task(), assets(), run_settings={"sim": "newton"}).process(Request(index=0))
    assert scene.provenance.task_text == TEXT
    assert scene.provenance.settings == {"sim": "newton"}
    assert set(scene.provenance.assets) == {"scene tabletop", "robot panda", "library trash"}
    assert all(scene.provenance.assets.values())


def test_the_robot_works_over_the_whole_region_and_nowhere_else():
    reach = assets().reach["start"]
    assert reach.cells.all()
    assert reach(0.31, -0.24) and reach(0.69, 0.24)
    assert not reach(0.29, 0.0) and not reach(0.71, 0.0) and not reach(0.5, 0.26)


def test_a_region_is_reached_in_part():
    wide = load_assets(
        task(TEXT.replace("center: [0.5, 0.0], size: [0.4, 0.5]", "center: [0.7, 0.3], size: [0.4, 0.2]"))
    )
    reach = wide.reach["start"]
    assert reach(0.52, 0.25) and not reach(0.88, 0.38)
    assert 0 < reach.cells.mean() < 1


def test_a_region_out_of_reach_is_one_line_with_its_place(tmp_path: Path):
    text = TEXT.replace("center: [0.5, 0.0], size: [0.4, 0.5]", "center: [0.85, 0.65], size: [0.1, 0.1]")
    said = load_refusal(tmp_path / "far.yaml", text)
    assert said.startswith("far.yaml:4:10: regions.start: robot 'panda' cannot reach the region; ")
    assert "x, y = 0, 0" in said


def test_a_robot_whose_package_is_missing_is_one_line(tmp_path: Path):
    panda = (scene_folder("robots") / "panda.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(panda.replace("package: example-robot-data", "package: no-such-robots"))
    said = load_refusal(tmp_path / "task.yaml", TEXT.replace("robot: panda", f"robot: {tmp_path / 'mine.yaml'}"))
    assert said.endswith("the package 'no-such-robots' is not installed; get it from the author of the robot file")
