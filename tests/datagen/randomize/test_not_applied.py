"""Values that a simulator does not support are reported as not applied, and a layout contains no unused value."""

from __future__ import annotations

import pytest

from nimbus.datagen import registry
from nimbus.datagen.episode.layout import Layout, RobotSetup
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.randomize.tabletop import TabletopRandomizer, not_applied
from nimbus.datagen.render.isaacsim.renderer import IsaacSimRenderer
from nimbus.datagen.simulate.isaacsim import IsaacSimSimulation
from nimbus.datagen.stages import Request, Scene
from tests.support.one_can import TEXT, assets, task

ALL = "randomize: {delay: {action: [10 ms, 20 ms]}, gains: {}, mass: {}, lens: {}, sensor: {}, depth: {}, light: {}}\n"
NEWTON, RTX = {"sim": "newton"}, {"sim": "isaacsim", "physics": "newton"}
PHYSX = {"sim": "isaacsim", "physics": "isaacsim"}


def layout(settings: dict[str, str] | None) -> Layout:
    text = TEXT + ALL
    scene = Scene(request=Request(index=1), assets=assets(), provenance=Provenance(task_text=text, task_hash=""))
    (randomized,) = TabletopRandomizer(task(text), 3, settings).process(scene)
    return randomized.layouts[0]


def left_out(drawn: dict) -> set[str]:
    return {name for name, values in drawn.items() if values == {"not applied": "isaacsim"}}


def test_the_default_simulator_applies_everything():
    assert layout(NEWTON) == layout(None)
    shown = layout(NEWTON)
    assert left_out(shown.physical.drawn) | left_out(shown.visual.drawn) == set()
    assert shown.visual.cameras[0].distortion != (0.0, 0.0)
    assert shown.physical.robot.delay > 0


def test_what_rtx_shows_is_what_the_default_renderer_shows():
    known, shown = layout(NEWTON), layout(RTX)
    assert left_out(shown.visual.drawn) == set()
    assert shown == known


def test_physx_executes_what_the_default_simulator_does():
    shown = layout(PHYSX)
    assert left_out(shown.physical.drawn) == set()
    assert shown.physical.robot != RobotSetup()
    assert shown.physical == layout(NEWTON).physical


@pytest.mark.parametrize("simulator", [IsaacSimSimulation, IsaacSimRenderer])
def test_what_is_declared_are_names_of_randomizers(simulator: type):
    declared = simulator.NOT_APPLIED  # pyright: ignore[reportAttributeAccessIssue]
    assert declared <= set(registry.names("randomizer"))
    part = "physical" if simulator is IsaacSimSimulation else "visual"
    assert not_applied("isaacsim", part) == declared
    assert {registry.lookup("randomizer", name).part for name in declared} <= {part}
