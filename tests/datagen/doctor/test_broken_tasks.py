from __future__ import annotations

import time
from pathlib import Path

import pytest

from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.examine import CHECKS, examine, refuse_hopeless
from nimbus.datagen.errors import InputError
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import load_task
from tests.support.broken_tasks import BROKEN, RIGHT, Broken

discover_components()


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_the_field_that_breaks_a_task_is_named_with_something_to_write_in_ten_seconds(
    broken: Broken, tmp_path: Path
) -> None:
    path = tmp_path / f"{broken.name}.yaml"
    path.write_text(broken.text)
    begin = time.process_time()
    findings = examine(path, probe=False).findings
    assert time.process_time() - begin <= 10
    named = [found for found in findings if found.field.startswith(broken.field)]
    assert named, [found.line for found in findings]
    assert any(found.instead for found in named) or named[0].where.startswith(str(path))


def test_a_right_task_has_nothing_to_change_and_a_forecast(tmp_path: Path) -> None:
    path = tmp_path / "right.yaml"
    path.write_text(RIGHT)
    diagnosis = examine(path)
    assert diagnosis.findings == () and diagnosis.to_plain()["works"]
    made = diagnosis.forecast
    assert made and made.probes >= 3 and made.successes and (expected := made.episode)
    assert 0 < expected.low <= expected.success_rate <= expected.high <= 1
    assert expected.cpu_seconds > 0 and expected.byte_count > 1e6 and expected.length > 1
    assert diagnosis.reach["start"]["reached"] == ["1111"] * 4
    assert diagnosis.seen == {"front": {"start": 1.0}}
    counts = diagnosis.grasps["item"]
    assert len(counts) >= 4 and all(name.startswith("can ") and count > 0 for name, count in counts.items())


def test_a_task_that_is_about_its_motion_may_begin_as_it_ends() -> None:
    task = load_task("shake_can")
    assert list(CHECKS["already"](Case(task, load_assets(task)))) == []


def test_a_run_refuses_what_cannot_work_at_the_field_and_quickly(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(next(broken for broken in BROKEN if broken.name == "too_large_for_the_gripper").text)
    task = load_task(path)
    assets = load_assets(task)
    begin = time.process_time()
    with pytest.raises(InputError, match="objects.item.scale: the gripper cannot hold any object of 'item'"):
        refuse_hopeless(task, assets)
    assert time.process_time() - begin < 2


def test_a_run_refuses_a_camera_inside_the_table(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(next(broken for broken in BROKEN if broken.name == "camera_inside_the_table").text)
    with pytest.raises(InputError, match="cameras.front.position: the camera is inside 'table'; write a height above"):
        load_assets(load_task(path))
