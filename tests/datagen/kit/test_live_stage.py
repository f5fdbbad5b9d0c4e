"""Live plans and changes in place: skills of the editor act in the open stage of Kit, whose physics is MuJoCo's."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Light, PhysicalLayout, VisualLayout
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.isaacsim import IsaacSimSimulation
from nimbus.datagen.ui.background_tasks import BackgroundTasks
from nimbus.datagen.ui.preview import Preview
from nimbus.datagen.ui.remote.host_link import HostLink
from nimbus.datagen.ui.remote.scene_preview import ScenePreview
from nimbus.datagen.usd.stage import read_stage
from tests.datagen.simulate.test_isaacsim import CAN
from tests.support.desks import TASK, LocalChannel, StubLauncher
from tests.support.played_physics import physics_of, played_physics
from tests.support.started_extension import MENU, Started
from tools.contract.kit_behaviour import Kit

PLAYS = "/app/player/playSimulations"
SUN = Light(direction=(0.0, 0.0, -1.0), color=(1.0, 1.0, 1.0), sky=(1.0, 1.0, 1.0), ground=(0.0, 0.0, 0.0))
MOST_LOOKS = 20_000
"""Largest number of Kit updates for which a test waits."""


class OneCan(Preview):
    """Scene with a can on the table, and an arm that moves to its goal or until it is stopped."""

    end = 3

    def __init__(self) -> None:
        super().__init__()
        self.states: list[np.ndarray] = []

    def plan(self, task: Any, *, seed: int, index: int, simulate: Callable[..., Any] | None = None) -> Any:
        assert simulate is not None
        assets = SimpleNamespace(stage=read_stage("tabletop"), robot=load_robot("panda"))
        simulation = simulate(assets, VisualLayout(light=SUN, cameras=()))
        simulation.load(PhysicalLayout(objects=(CAN,)))
        self.states = list(moved(simulation, self.end))
        motion = SimpleNamespace(outcome=None, step_count=self.end, rate=20.0)
        return SimpleNamespace(motion=motion, layout=None)


def moved(simulation: IsaacSimSimulation, count: int) -> Iterator[np.ndarray]:
    action = simulation.present_action()
    for _ in range(count):
        simulation.advance(action + 0.02)
        yield simulation.data.qpos.copy()


class ThreadedChannel(LocalChannel):
    """Editor in a thread of the test; its orders are lines of text."""

    def __init__(self, folder: Path, preview: Preview) -> None:
        self.orders: list[str] = []
        self.link = HostLink(lambda order: self.orders.append(json.dumps({"order": order})))
        super().__init__(folder, preview=ScenePreview(folder, preview=preview, link=self.link))
        self.editor._tasks = self.tasks = BackgroundTasks()
        self.tasks.report_to(self.editor._set_activity, self.editor.report)

    def send(self, line: str) -> None:
        request = json.loads(line)
        if request["id"] == "answer of the stage":
            self.link.take(request["value"])
        else:
            super().send(line)

    def wait(self, seconds: float) -> bool:
        time.sleep(0.001)
        return bool(self.orders)

    def receive(self) -> list[str]:
        orders = [self.orders.pop(0) for _ in range(len(self.orders))]
        return [*orders, *super().receive()]

    def close(self) -> None:
        self.link.close()
        self.tasks.close()
        super().close()


@pytest.fixture
def preview() -> OneCan:
    return OneCan()


@pytest.fixture
def live(kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, preview: OneCan) -> Iterator[Started]:
    """Return the extension with an editor whose skills run in a thread, and with physics in the open stage."""
    from nimbus.datagen.kit import extension

    monkeypatch.setattr(extension, "ProcessLauncher", lambda *_, **__: SimpleNamespace())
    channels: list[Any] = []

    def channel(*_: Any) -> ThreadedChannel:
        channels.append(ThreadedChannel(tmp_path, preview))
        return channels[-1]

    monkeypatch.setattr(extension, "ProcessChannel", channel)
    monkeypatch.chdir(tmp_path)
    assert kit.standin is not None
    physics_of(kit, kit.standin)
    kit.settings[PLAYS] = True
    made = extension.NimbusExtension()
    made.on_startup("nimbus.datagen-0.1.0")
    kit.show(MENU)
    started = Started(made, kit, StubLauncher(), channels)
    (tmp_path / "mine.yaml").write_text(TASK)
    started.edit("StringField", "task", str(tmp_path / "mine.yaml"))
    started.press("open")
    look_until(started, lambda: "No mistake found." in started.label("status"))
    yield started
    made.on_shutdown()


def look_until(started: Started, done: Callable[[], bool]) -> None:
    """Let Kit update until a condition holds."""
    for _ in range(MOST_LOOKS):
        started.look()
        if done():
            return
        time.sleep(0.001)
    raise AssertionError(f"not seen: {started.label('message')} {started.label('problem')}")


def test_skills_act_in_the_open_stage(live: Started, preview: OneCan):
    """Each state equals that of the same motion executed in the process of the stage.

    Kit itself executes no steps during the plan.
    """
    seen: list[Any] = []
    live.press("live Plan live")
    look_until(live, lambda: seen.append(live.kit.settings[PLAYS]) or live.label("message").startswith("in PhysX"))
    assert live.label("message") == "in PhysX: success, 0.1 s" or "0.2 s" in live.label("message")
    assert False in seen and live.kit.settings[PLAYS] is True and live.kit.timeline == "paused"
    with played_physics():
        own = IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=15.0)
        own.load(PhysicalLayout(objects=(CAN,)))
        expected = list(moved(own, 3))
    np.testing.assert_array_equal(preview.states, expected)


def test_plan_is_stopped_at_its_next_step(live: Started, preview: OneCan):
    preview.end = 10**9
    live.press("live Plan live")
    look_until(live, lambda: live.kit.settings[PLAYS] is False)
    live.kit.timeline = "paused"
    for _ in range(20):
        live.look()
    assert live.label("activity") == "planning live ...", "a paused timeline only waits"
    live.kit.timeline = "playing"
    live.look()
    live.press("live Stop")
    look_until(live, lambda: live.label("message").startswith("stopped after"))
    look_until(live, lambda: live.kit.settings[PLAYS] is True)
    assert live.kit.timeline == "paused" and not live.extension._panel.is_live


def test_plan_stopped_before_its_turn_never_begins(live: Started):
    """The editor plans in its thread after other work, here a task that waits."""
    released = threading.Event()
    cast(ThreadedChannel, live.channel).tasks.submit("drawing a layout", lambda: released.wait(60.0))
    live.press("live Plan live")
    live.press("live Stop")
    released.set()
    look_until(live, lambda: live.label("message") == "stopped before it began")
    assert live.kit.settings[PLAYS] is True and not live.extension._panel.is_live


def test_stopped_timeline_ends_the_plan(live: Started, preview: OneCan):
    preview.end = 10**9
    live.press("live Plan live")
    look_until(live, lambda: live.kit.settings[PLAYS] is False)
    live.kit.timeline = "stopped"
    look_until(live, lambda: "timeline was stopped" in live.label("message"))


def test_failed_physics_ends_the_plan(live: Started, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise RuntimeError("no device")

    from nimbus.datagen.kit import live_stage

    monkeypatch.setattr(live_stage, "obey", fail)
    live.press("live Plan live")
    look_until(live, lambda: "physics failed: no device" in live.label("message"))
    look_until(live, lambda: live.kit.settings[PLAYS] is True)


def test_stage_with_unsaved_changes_is_not_taken(live: Started):
    live.kit.stage, live.kit.has_pending_edit = "mine.usda", True
    live.press("live Plan live")
    look_until(live, lambda: "unsaved changes" in live.label("message"))
    assert live.kit.stage == "mine.usda" and not live.extension._panel.is_live


def test_layer_of_changes_leaves_the_stage_as_it_was(opened: Started, tmp_path: Path):
    from pxr import Sdf, Usd, UsdGeom

    from nimbus.datagen.ui.remote.messages import StageView

    base, changes = tmp_path / "base.usda", tmp_path / "changes.usda"
    stage: Any = Usd.Stage.CreateNew(str(base))
    cube: Any = UsdGeom.Cube.Define(stage, "/World/cube")
    cube.CreateSizeAttr(1.0)
    stage.Save()
    layer: Any = Sdf.Layer.CreateNew(str(changes))
    size: Any = Sdf.AttributeSpec(Sdf.CreatePrimInLayer(layer, "/World/cube"), "size", Sdf.ValueTypeNames.Double)
    size.default = 3.0
    layer.Save()
    text = base.read_text()
    scene = opened.channel.scene
    scene.stage, scene.variation = StageView(path=str(base), duration=0.0), str(changes)
    opened.press("vary Randomize")
    opened.look()
    size = opened.kit.usd_stage.GetAttributeAtPath("/World/cube.size")
    assert size.Get() == 3.0 and not opened.kit.has_pending_edit
    assert opened.kit.usd_stage.GetEditTarget().GetLayer().identifier == str(base), "the user edits the same layer"
    scene.variation = ""
    opened.press("vary Restore")
    assert size.Get() == 1.0 and base.read_text() == text
    assert list(opened.kit.usd_stage.GetSessionLayer().subLayerPaths) == []
