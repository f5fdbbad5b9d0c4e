"""Inputs that determine content, and those that do not."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.load.fingerprint import _identity, fingerprint_inputs
from nimbus.datagen.objects import libraries, library
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.pipeline import parse_pipeline
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks import plugin_source
from nimbus.datagen.tasks.plugins import discover, discover_components
from nimbus.datagen.tasks.stored_files import asset_fingerprints
from nimbus.datagen.tasks.task import Task, load_task
from nimbus.datagen.usd.stage import read_stage
from nimbus.datagen.version import versioned_hash
from tests.support import ROOT

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


DERIVED = '''
from nimbus.datagen.registry import register
from nimbus.skills.pick import Pick

@register("skill", "pick_for_content")
class Mine(Pick):
    """Pick."""
'''


def inputs(task: Task, pipeline: str = PIPELINE) -> dict[str, str]:
    return fingerprint_inputs(task, assets={}, settings={"planner": "ompl"}, pipeline=parse_pipeline(pipeline))


def test_all_that_a_task_names_enters():
    names = inputs(load_task("sort_trash")).keys()
    assert names >= {"skill pick", "skill place", "predicate inside", "randomizer light", "pipeline pipeline"}
    assert names >= {"plan skills", "planner", "planner ompl", "composite for", "mujoco", "numpy", "nimbus-datagen"}
    assert not names & {"skill move", "h5py", "pydantic"}


def test_settings_of_a_pipeline_enter_and_its_comments_do_not():
    task = load_task("sort_trash")
    assert inputs(task, f"# mine\n{PIPELINE}") == inputs(task)
    other = inputs(task, PIPELINE.replace("plan: skills", "plan: {skills: {attempts: 5}}"))
    assert {name for name, value in inputs(task).items() if other[name] != value} == {"pipeline pipeline"}


def test_built_in_components_enter_by_version(monkeypatch: pytest.MonkeyPatch):
    task = load_task("sort_trash")
    before = inputs(task)
    assert {before[name] for name in ("skill home", "randomizer light", "load usd")} == {"1"}
    monkeypatch.setattr(registry.lookup("skill", "pick"), "version", 99)
    assert {name: value for name, value in inputs(task).items() if before[name] != value} == {"skill pick": "99"}


def test_plugin_derived_from_built_in_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_components", dict(registry._components))
    (tmp_path / "mine.py").write_text(DERIVED)
    text = (scene_folder("tasks") / "sort_trash.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("- pick:", "- pick_for_content:"))
    found = inputs(load_task(tmp_path / "mine.yaml", skill_folders=[tmp_path]))
    assert found["skill pick_for_content"] == versioned_hash(DERIVED.encode(), registry.lookup("skill", "pick").version)


def test_functions_are_components_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(registry, "_components", dict(registry._components))

    (tmp_path / "store_for_content.py").write_text("def store() -> None: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    store = importlib.import_module("store_for_content").store
    registry.register("store", "function_for_content")(store)
    pipeline = PIPELINE.replace("store: hdf5", "store: function_for_content")
    here = versioned_hash(b"def store() -> None: ...\n", 1)
    assert inputs(load_task("sort_trash"), pipeline)["store function_for_content"] == here


def test_a_changed_skill_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_components", dict(registry._components))  # other tests list the skills there are
    (tmp_path / "pause.py").write_text(PAUSE)
    text = (scene_folder("tasks") / "sort_trash.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("\nsuccess:", "\n  - pause_for_content\nsuccess:"))
    task = load_task(tmp_path / "mine.yaml", skill_folders=[tmp_path])
    before = inputs(task)
    (tmp_path / "pause.py").write_text(PAUSE.replace("wait(1)", "wait(2)"))
    plugin_source._source.cache_clear()  # as in another process
    after = inputs(task)
    assert {name for name in before if before[name] != after[name]} == {"skill pause_for_content"}


SHARING = PAUSE.replace("pause_for", "pause_by_shared_for").replace("\nfrom", "\nfrom ._shared import PERIODS\nfrom", 1)


@pytest.mark.parametrize("shared", ["_shared.py", "_shared/__init__.py", "_shared/later.py"])
def test_changed_code_that_skills_share_is_seen(shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_components", dict(registry._components))
    (tmp_path / "pause.py").write_text(SHARING)
    path = tmp_path / shared
    path.parent.mkdir(exist_ok=True)
    if path.parent != tmp_path:
        (path.parent / "__init__.py").write_text("PERIODS = 1\n")
    path.write_text("PERIODS = 1\n")
    discover([tmp_path])
    before = _identity("skill", "pause_by_shared_for_content")
    path.write_text("PERIODS = 2\n")
    plugin_source._source.cache_clear()  # as in another process
    assert _identity("skill", "pause_by_shared_for_content") != before


def test_modules_of_an_installed_package_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_components", dict(registry._components))
    (package := tmp_path / "pausing_package").mkdir()
    (package / "__init__.py").write_text("from . import pause\n")
    (package / "pause.py").write_text(SHARING.replace("by_shared", "packaged"))
    (package / "_shared.py").write_text("PERIODS = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("pausing_package")
    before = _identity("skill", "pause_packaged_for_content")
    (package / "_shared.py").write_text("PERIODS = 2\n")
    plugin_source._source.cache_clear()  # as in another process
    assert _identity("skill", "pause_packaged_for_content") != before


@pytest.mark.parametrize(("old", "new"), [("home: [0.0", "home: [0.1"), ("damping: [", "damping: [1")])
def test_a_changed_robot_file_is_seen(old: str, new: str, tmp_path: Path):
    text = (scene_folder("robots") / "panda.yaml").read_text()
    assert old in text
    (tmp_path / "panda.yaml").write_text(text.replace(old, new, 1))
    stage, libraries = read_stage("tabletop"), [open_library("trash")]
    before = asset_fingerprints(stage, load_robot("panda"), libraries)
    after = asset_fingerprints(stage, load_robot(str(tmp_path / "panda.yaml")), libraries)
    assert {name for name in before if before[name] != after[name]} == {"robot panda"}
    assert before.keys() == {"scene tabletop", "robot panda", "library trash"}


def test_raised_generator_version_changes_every_library(monkeypatch: pytest.MonkeyPatch):
    before = open_library("trash").content_hash
    monkeypatch.setattr(library, "GENERATOR_VERSION", 2)
    libraries._open.cache_clear()
    after = open_library("trash").content_hash
    libraries._open.cache_clear()
    assert (before[:2], after[:2]) == ("1-", "2-") and before[2:] == after[2:]


def test_asset_cache_folder_holds_generator_version():
    trash = open_library("trash")
    digest = hashlib.sha256((scene_folder("objects") / "trash.yaml").read_bytes()).hexdigest()[:16]
    assert trash.usd_path("can", 0).parent.name == f"trash-{library.GENERATOR_VERSION}-{digest}"


def test_the_version_of_nimbus_is_known_without_an_installation():
    from nimbus.datagen.episode.provenance import installed_versions

    manifest = ROOT / "exts/nimbus.datagen/config/extension.toml"
    assert f'version = "{installed_versions()["nimbus-datagen"]}"' in manifest.read_text()
