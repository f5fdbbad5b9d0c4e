"""What uses the studio's layouts, motions, pictures and plots, and sees what comes of it."""

from __future__ import annotations

from typing import Any

import pytest
from controls import Actions, controls, use

ACTIONS = Actions()


def height(studio: Any) -> float:
    return studio.view._bodies["panda_hand"].position[2]


@ACTIONS.at("", "step")
def step(moving: Any) -> None:
    low = height(moving)
    use(controls(moving)["", "step"], 29)
    assert height(moving) == pytest.approx(low + 0.2)


@ACTIONS.at("", "motion")
def motion(moving: Any) -> None:
    group = controls(moving)["", "motion"]
    use(group, "Play")
    assert moving.player.is_playing
    use(group, "Stop")
    assert not moving.player.is_playing


@ACTIONS.at("Camera pictures", "picture")
def picture(studio: Any) -> None:
    seen = set()
    for name in controls(studio)["Camera pictures", "picture"].options:
        use(controls(studio)["Camera pictures", "picture"], name)
        assert studio.errands.wait(timeout=300)
        seen.add(studio.player._images["front"].image.tobytes())
    assert len(seen) == 7
    use(controls(studio)["Camera pictures", "picture"], "rgb")


@ACTIONS.at("Plots", "plot")
def plot(moving: Any) -> None:
    use(controls(moving)["Plots", "plot"], "other")
    assert moving.player._plot.title == "other"


@ACTIONS.at("Layouts", "seed", "episode", "layout")
def seed(studio: Any) -> None:
    use(controls(studio)["Layouts", "seed"], 5)
    use(controls(studio)["Layouts", "episode"], 2)
    use(controls(studio)["Layouts", "layout"], "This one")
    assert studio.errands.wait(timeout=300)
    assert (studio.player.look.layout.key.seed, studio.player.look.layout.key.index) == (5, 2)
    use(controls(studio)["Layouts", "layout"], "Next")
    assert studio.errands.wait(timeout=300)
    assert studio.player.look.layout.key.index == 3
    use(controls(studio)["Layouts", "layout"], "Sample 50")
    assert studio.errands.wait(timeout=300)
    assert len(studio.layouts.samples) == 50
    assert studio.view.shown("samples")
    use(controls(studio)["Layouts", "check"], "Reach")
    assert studio.errands.wait(timeout=300)
    assert studio.view.shown("reach")
    use(controls(studio)["Layouts", "layout"], "Clear")
    assert not studio.view.shown("samples")
    assert not studio.view.shown("reach")


@ACTIONS.at("Layouts", "check")
def check(studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[int] = []
    monkeypatch.setattr(studio.layouts, "plan_one", lambda: planned.append(1))  # the browser's visit plans for real
    use(controls(studio)["Layouts", "check"], "Plan one")
    assert studio.errands.wait(timeout=300)
    assert planned == [1]
