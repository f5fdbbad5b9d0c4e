"""The page with the table of tasks agrees with the records, and shows small images."""

from __future__ import annotations

import json
import re

from nimbus.datagen.tasks.task import task_names
from tests.support import ROOT

PAGE = (ROOT / "docs/task-table.md").read_text()
RECORDS = json.loads((ROOT / "benchmarks/task_table.json").read_text())


def test_every_row_gives_the_share_that_the_records_of_its_task_give():
    rows = re.findall(r"\| \[(\w+)\]\(\.\./scenes/tasks/\1\.yaml\) \|.*?\| (\d+)% of (\d+) \|", PAGE)
    assert rows and set(RECORDS) <= set(task_names())
    assert {name for name, _, _ in rows} == set(RECORDS)
    for name, share, count in rows:
        good = [attempt["success"] for attempt in RECORDS[name].values()]
        assert (int(share), int(count)) == (round(100 * sum(good) / len(good)), len(good))


def test_attempts_that_count_as_success_have_believable_contact():
    for attempts in RECORDS.values():
        for attempt in attempts.values():
            if attempt["success"]:
                assert attempt["held_mm"] <= 2 and attempt["creep_mm_s"] <= 0.5


def test_every_picture_that_the_page_shows_is_there_and_they_are_small():
    shown = [ROOT / "docs" / path for path in re.findall(r"!\[\w+\]\(([^)]+)\)", PAGE)]
    assert shown and all(path.exists() for path in shown)
    assert sum(path.stat().st_size for path in shown) <= 400_000
