from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cluster.job_file import load_job

JOB = """
tasks:
  - {task: sort_trash, episodes: 40, priority: 2, needs: {gpu: rt, gpu_memory: 8 GB, memory: 500 MB}}
  - {task: sort_trash, name: again, episodes: 3, seed: 7, needs: {simulator: isaacsim, engine: curobo}}
"""


def load(tmp_path: Path, text: str):
    (tmp_path / "jobs.yaml").write_text(text)
    return load_job(tmp_path / "jobs.yaml", CellSpec(folder="out", seed=1))


def test_tasks_have_counts_priorities_and_needs(tmp_path: Path):
    first, second = load(tmp_path, JOB)
    assert (first.name, first.spec.episodes, first.spec.seed, first.priority) == ("sort_trash", 40, 1, 2)
    assert first.needs.rt and first.needs.cuda and first.needs.gpu_bytes == 8e9 and first.needs.memory_bytes == 5e8
    assert (second.name, second.spec.seed, second.spec.planner) == ("again", 7, "curobo")
    assert second.needs.simulator == "isaacsim" and second.needs.rt and second.spec.resources.fixed_roles


@pytest.mark.parametrize("name", ["mine.yml", "mine.yaml", "tasks/mine", "mine.YAML"])
def test_paths_of_tasks_begin_at_the_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """The current folder may have a task of another user at the same path."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / name).write_text((scene_folder("tasks") / "sort_trash.yaml").read_text())
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    (item,) = load(tmp_path, f"tasks: [{{task: {name}, episodes: 1}}]")
    assert Path(item.spec.task) == tmp_path / name


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tasks: []", "jobs.yaml:1:8: tasks"),
        ("tasks: [{task: sort_trash}]", "episodes"),
        ("tasks: [{task: sort_trsh, episodes: 1}]", "jobs.yaml:1:16: tasks[0].task: unknown task 'sort_trsh'"),
        ("tasks: [{task: sort_trash, episodes: 0}]", "tasks[0].episodes"),
        ("tasks: [{task: sort_trash, episodes: 1, need: {}}]", "did you mean 'needs'?"),
        ("tasks: [{task: sort_trash, episodes: 1, needs: {memory: 8 apples}}]", "expected a size such as '8 GB'"),
        (
            "tasks: [{task: sort_trash, episodes: 1}, {task: sort_trash, episodes: 2}]",
            "two tasks have the name 'sort_trash'",
        ),
        ("tasks: [{task: sort_trash, name: nodes, episodes: 1}]", "the name of the run's own files"),
        ("tasks: [{task: sort_trash, name: ../up, episodes: 1}]", "tasks[0].name"),
        ("task: sort_trash", "jobs.yaml:1"),
    ],
)
def test_wrong_job_is_refused_in_one_line(tmp_path: Path, text: str, line: str):
    with pytest.raises(InputError) as raised:
        load(tmp_path, text)
    assert line in str(raised.value) and "\n" not in str(raised.value)
