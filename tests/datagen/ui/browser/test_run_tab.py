"""Run tab: which file a run reads."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.browser.run_tab import RunTab
from nimbus.datagen.ui.document.draft import TaskDraft


def save_once(draft: TaskDraft) -> str:
    return RunTab(Mock(), Mock(), lambda: draft, Mock()).save_once()


def test_a_task_that_was_opened_by_name_is_saved_once(tmp_path: Path):
    draft = TaskDraft("sort_trash", folder=tmp_path)
    assert save_once(draft) == f"saved as {tmp_path}/sort_trash.yaml, the file of the run"
    assert save_once(draft) == "" and draft.is_stored


@pytest.mark.parametrize("changed", [True, False])
def test_only_open_opens_a_file_that_was_there_before(changed: bool, tmp_path: Path):
    (tmp_path / "sort_trash.yaml").write_text("robot: panda\n")
    draft = TaskDraft("sort_trash", folder=tmp_path)
    if changed:
        draft.set(("rate",), 10)
    with pytest.raises(InputError, match="not the file of the task 'sort_trash'.*press Open") as told:
        save_once(draft)
    assert "reload" not in told.value.instead


def test_a_file_of_another_content_is_not_run(tmp_path: Path):
    save_once(draft := TaskDraft("sort_trash", folder=tmp_path))
    draft.set(("rate",), 10)
    with pytest.raises(InputError, match="the task is not saved; save it first"):
        save_once(draft)
    draft.path.write_text("robot: panda\n")
    with pytest.raises(InputError, match="has changed on disk.*reload it"):
        save_once(draft)
