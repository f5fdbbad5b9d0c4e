"""What decides content, and what does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.load import fingerprint
from nimbus.datagen.load.fingerprint import asset_fingerprints, fingerprint_inputs
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.pipeline import parse_pipeline
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import Task, load_task
from nimbus.datagen.usd.stage import read_stage

discover_components()
PIPELINE = (scene_folder("pipelines") / "manipulation.yaml").read_text()
PAUSE = '''
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import Skill

@register("skill", "pause_for_content")
class Pause(Skill):
    """Stand still."""

    def run(self, arm) -> None:
        arm.wait(1)
'''


def inputs(task: Task, pipeline: str = PIPELINE) -> dict[str, str]:
    return fingerprint_inputs(task, assets={}, settings={"planner": "ompl"}, pipeline=parse_pipeline(pipeline))


def test_all_that_a_task_names_enters():
    names = inputs(load_task("sort_trash")).keys()
    assert names >= {"skill pick", "skill place", "predicate inside", "randomizer light", "pipeline pipeline"}
    assert names >= {"plan skills", "planner", "mujoco", "numpy", "nimbus-datagen"}
    assert not names & {"skill move", "h5py", "pydantic"}


def test_settings_of_a_pipeline_enter_and_its_comments_do_not():
    task = load_task("sort_trash")
    assert inputs(task, f"# mine\n{PIPELINE}") == inputs(task)
    other = inputs(task, PIPELINE.replace("plan: skills", "plan: {skills: {attempts: 5}}"))
    assert {name for name, value in inputs(task).items() if other[name] != value} == {"pipeline pipeline"}


def test_a_changed_skill_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_components", dict(registry._components))  # other tests list the skills there are
    (tmp_path / "pause.py").write_text(PAUSE)
    text = (scene_folder("tasks") / "sort_trash.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("\nsuccess:", "\n  - pause_for_content\nsuccess:"))
    task = load_task(tmp_path / "mine.yaml", skill_folders=[tmp_path])
    before = inputs(task)
    (tmp_path / "pause.py").write_text(PAUSE.replace("wait(1)", "wait(2)"))
    fingerprint._file_hash.cache_clear()  # as in another process
    after = inputs(task)
    assert {name for name in before if before[name] != after[name]} == {"skill pause_for_content"}


@pytest.mark.parametrize(("old", "new"), [("home: [0.0", "home: [0.1"), ("damping: [", "damping: [1")])
def test_a_changed_robot_file_is_seen(old: str, new: str, tmp_path: Path):
    text = (scene_folder("robots") / "panda.yaml").read_text()
    assert old in text
    (tmp_path / "panda.yaml").write_text(text.replace(old, new, 1))
    stage, libraries = read_stage("tabletop"), [ObjectLibrary.open("trash")]
    before = asset_fingerprints(stage, load_robot("panda"), libraries)
    after = asset_fingerprints(stage, load_robot(str(tmp_path / "panda.yaml")), libraries)
    assert {name for name in before if before[name] != after[name]} == {"robot panda"}
    assert before.keys() == {"scene tabletop", "robot panda", "library trash"}


def test_changed_generators_of_objects_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from nimbus.datagen.objects import library

    before = library.generator_hash()
    shutil.copytree(Path(library.__file__).parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    library.generator_hash.cache_clear()
    assert library.generator_hash() == before
    with (tmp_path / "mass.py").open("a") as file:
        file.write("# heavier\n")
    library.generator_hash.cache_clear()
    assert library.generator_hash() != before
    monkeypatch.undo()
    library.generator_hash.cache_clear()


def test_the_version_of_nimbus_is_known_without_an_installation():
    from nimbus.datagen.episode.provenance import installed_versions

    manifest = Path(__file__).parents[2] / "exts/nimbus.datagen/config/extension.toml"
    assert f'version = "{installed_versions()["nimbus-datagen"]}"' in manifest.read_text()
