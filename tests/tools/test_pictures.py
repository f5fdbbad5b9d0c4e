import pytest

from nimbus.datagen.rooms.settings import FAMILIES
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import parse_task
from tools.docs_site.pictures import room_task


@pytest.mark.parametrize("family", FAMILIES)
def test_room_is_shown_by_one_camera(family: str):
    discover_components()
    task = parse_task(room_task(family, 2))
    assert list(task.cameras) == ["room"]
    assert family in task.scene
