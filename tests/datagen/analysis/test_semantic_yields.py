"""Yields of datasets by objects, relations and other meanings of their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nimbus.datagen.analysis.semantic_yields import find_semantic_yields
from nimbus.datagen.episode.meaning import TaskMeaning, length_bin
from nimbus.datagen.load.meaning import meaning_of
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.store.dataset import read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.task import load_task
from tests.support.synthetic import TASK, TASK_HASH, Dataset

MEANINGS = {
    "store": TaskMeaning(scene="kitchen", relations=("closed", "in"), steps=4, categories={"pear": "pear"}),
    "stack": TaskMeaning(scene="table", relations=("on",), steps=2, categories={"red_cube": "cube", "disc": "disc"}),
}


def row(task: str, idx: int, *kinds: str, success: bool, attempt: int = 0, **fields: Any) -> Attempt:
    values: dict[str, Any] = {"episode_id": f"{task}{idx}", "seed": 0, "variant": 0, "final": success or attempt == 2}
    objects: Any = tuple({"name": f"thing_{n}", "kind": kind} for n, kind in enumerate(kinds))
    return Attempt(task=task, idx=idx, attempt=attempt, success=success, objects=objects, **values | fields)


def table(*rows: Attempt) -> dict[tuple[str, str], tuple[int, int, int]]:
    found = find_semantic_yields(rows, MEANINGS)
    return {(one.meaning, one.value): (one.episodes, one.first, one.kept) for one in found}


def test_episodes_count_for_all_they_mean():
    found = table(
        row("store", 0, "pear", "pear", success=True),
        row("stack", 0, "red_cube", "disc", success=False),
        row("stack", 0, "red_cube", "disc", success=True, attempt=1),
        row("stack", 1, "red_cube", success=False, attempt=2),
    )
    assert found["relation", "in"] == found["scene", "kitchen"] == found["length", "4-5"] == (1, 1, 1)
    assert found["relation", "on"] == found["category", "cube"] == found["length", "1-3"] == (2, 0, 1)
    assert found["object", "pear"] == (1, 1, 1)
    assert found["object", "disc"] == (1, 0, 1)


def test_room_of_the_episode_comes_before_the_task():
    drawn = {"physical": {"scene": {"family": "office"}}}
    assert ("scene", "office") in table(row("store", 0, "pear", success=True, drawn=drawn))


def test_unfinished_episodes_do_not_count():
    assert not table(row("store", 0, "pear", success=False))


def test_values_that_fail_come_first():
    rows = find_semantic_yields(
        [row("store", 0, "pear", success=True), row("store", 1, "can", success=False, attempt=2)], {}
    )
    assert [one.value for one in rows] == ["can", "pear"]


def test_meaning_is_that_of_the_task_file():
    discover()
    task = load_task("put_in_drawer")
    meaning = meaning_of(task, {group.library: open_library(group.library) for group in task.objects.values()})
    assert (meaning.scene, meaning.relations, length_bin(meaning.steps)) == ("table", ("closed", "in"), "4-5")
    assert meaning.categories["drawer_cabinet"] == "chest of drawers"


def test_meaning_stays_with_the_dataset(tmp_path: Path):
    with Dataset.create_or_open(tmp_path, task=TASK, task_hash=TASK_HASH, seed=0, meaning=MEANINGS["store"]):
        pass
    assert read_info(tmp_path).meanings == {TASK: MEANINGS["store"]}
