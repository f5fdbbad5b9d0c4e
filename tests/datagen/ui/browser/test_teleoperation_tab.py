"""Controls of teleoperation without a browser and without a scene."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.ui.browser.teleoperation_tab import TeleoperationTab
from tests.support.studio.controls import inputs, use

viser = pytest.importorskip("viser")


class WaitingTasks:
    """Keeps work until it is called, as while the studio does other work."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def submit(self, task: str, work: Callable[[], object]) -> None:
        self.waiting.append(work)


@pytest.fixture
def server() -> Iterator[Any]:
    server = viser.ViserServer(host="127.0.0.1", port=8355, verbose=False)
    yield server
    server.stop()


def test_stop_ends_a_start_that_waits(server: Any, tmp_path: Path):
    begun: list[str] = []
    tasks: Any = WaitingTasks()
    nothing: Any = None

    def load() -> Any:
        begun.append("task")
        raise LookupError

    with server.gui.add_folder("tab"):
        TeleoperationTab(
            server,
            load,
            lambda: tmp_path,
            tmp_path.joinpath,
            preview=nothing,
            view=nothing,
            player=nothing,
            tasks=tasks,
            launcher=nothing,
            report=begun.append,
        )
    switch = inputs(server.gui)["tab", "teleoperation"]
    use(switch, "Start")
    use(switch, "Stop")
    (work,) = tasks.waiting
    work()
    assert begun == []
    use(switch, "Start")
    with pytest.raises(LookupError):
        tasks.waiting[-1]()
