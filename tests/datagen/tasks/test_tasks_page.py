"""Examples on the page about task files, read unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.steps import parse_steps, walk
from nimbus.datagen.tasks.task import parse_task
from tests.support import ROOT
from tests.support.one_can import put, thing, workcell

DOCS = ROOT / "docs"
PAGE = (DOCS / "tasks.md").read_text()
TASK, STEPS, SUCCESS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_skill_and_the_condition_of_ones_own_are_short_and_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    discover()
    monkeypatch.setattr(registry, "_components", dict(registry._components))
    skill, condition, *_ = re.findall(r"```python\n(.*?)```", (DOCS / "your-own.md").read_text(), re.DOTALL)
    for name, text in (("pause", skill), ("lifted", condition)):
        assert len(text.splitlines()) < 60
        (tmp_path / f"{name}.py").write_text(text)
    discover([tmp_path])
    assert registry.lookup("skill", "pause").hand == "keeps"
    cell = workcell(thing())
    lifted = registry.lookup("predicate", "lifted")(object="items_0")
    failure = lifted.failure(cell)
    assert failure is not None and failure.detail == "items_0 rose by 0.0 cm"
    put(cell.simulation, "items_0", cell.start_poses["items_0"][:3, 3] + (0, 0, 0.06))
    assert lifted.failure(cell) is None


def test_the_task_of_the_page_is_complete():
    task = parse_task(TASK)
    assert list(task.cameras) == ["front", "wrist"] and "light" in task.randomize


def test_the_steps_and_conditions_of_the_page_are_steps_and_conditions():
    discover()
    for text, kind, least in ((STEPS, "skill", 15), (SUCCESS, "predicate", 4)):
        document = parse(text, "page.yaml")
        assert len(list(walk(parse_steps(document, (), document.data, kind=kind)))) >= least


def test_the_conditions_of_the_page_exist_and_every_word_is_on_it():
    discover()
    rows = "\n".join(line.split(" | ")[0] for line in PAGE.split("| condition |")[1].splitlines() if line[:3] == "| `")
    shown = re.findall(r"`([a-z_]+)", rows)
    assert len(shown) >= 18 and set(shown) <= set(registry.names("predicate"))
    said = set(re.findall(r"[a-z_]+", PAGE))
    words = {registry.lookup("composite", name).words[:1] for name in registry.names("composite")}
    assert {word for (word,) in words - {()}} <= said
