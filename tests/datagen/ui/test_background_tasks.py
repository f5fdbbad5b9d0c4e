"""Background tasks run in order; of tasks with one name, only the newest one runs."""

from __future__ import annotations

import threading
import time

from nimbus.datagen.ui.background_tasks import BackgroundTasks
from nimbus.datagen.ui.document.draft import TaskDraft


def test_newest_task_of_a_name_runs_in_order():
    done, lines = [], []
    tasks = BackgroundTasks()
    tasks.report_to(lambda task: None, lines.append)
    submitted = threading.Event()
    tasks.submit("first", lambda: submitted.wait(60))
    for number in range(3):
        tasks.submit("same", lambda number=number: done.append(number))
    tasks.submit("wrong", lambda: TaskDraft("no_such_task"))
    tasks.submit("last", lambda: done.append("last"))
    submitted.set()
    assert tasks.wait(timeout=60)
    assert done == [2, "last"]
    assert [line for line in lines if "no_such_task" in line] == lines != []
    tasks.close()


def test_debounced_task_runs_once_and_delays_no_other():
    done: list[str] = []
    tasks = BackgroundTasks()
    for _ in range(5):
        tasks.submit("pictures", lambda: done.append("pictures"), debounce=3.0)
        time.sleep(0.02)
    tasks.submit("other", lambda: done.append("other"))
    assert tasks.wait(timeout=60)
    assert done == ["other", "pictures"]
    tasks.close()
