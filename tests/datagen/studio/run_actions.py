"""What uses the studio's runs and their data, and sees what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from controls import Actions, controls, use

ACTIONS = Actions()


@ACTIONS.at("Run", "run", "episodes", "run seed", "folder")
def run_it(studio: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[str] = []
    for name in ("run", "cancel"):
        monkeypatch.setattr(studio.panel, name, lambda name=name: done.append(name))  # the visit runs for real
    group = controls(studio)["Run", "run"]
    studio.draft.set(("rate",), 10)
    use(group, "Run")
    assert "not saved" in studio._complaint
    studio.draft.undo()
    studio.draft.save()
    for label, value in (("episodes", 3), ("run seed", 7), ("folder", str(tmp_path))):
        use(controls(studio)["Run", label], value)
    use(group, "Run")
    use(group, "Cancel")
    panel = studio.panel
    assert done == ["run", "cancel"]
    assert (panel.task, panel.episodes, panel.seed) == (str(studio.draft.path), 3, 7)
    assert panel.out_folder == tmp_path
    use(group, "Report")
    assert "no report yet" in studio._complaint
    (tmp_path / "report.html").write_text("<p>all is well</p>")
    use(group, "Report")
    assert studio._complaint == ""
    (modal,) = studio.server.gui._modal_handle_from_uuid.values()
    (button,) = [handle for place, handle in controls(studio).items() if place[1] == "Close"]
    use(button)
    assert not studio.server.gui._modal_handle_from_uuid
    studio.panel.set_out("")


@ACTIONS.at("Data", "dataset", "Open dataset", "outcome", "reason", "episode", "Replay")
def data(studio: Any, dataset: Path) -> None:
    def of(label: str) -> Any:
        return controls(studio)["Data", label]

    use(of("dataset"), str(dataset.parent))
    use(of("Open dataset"))
    assert studio.errands.wait(timeout=300)
    assert "no dataset" in studio._complaint
    use(of("dataset"), str(dataset))
    use(of("Open dataset"))
    assert studio.errands.wait(timeout=300)
    (label,) = [option for option in of("episode").options if "stored" in option]
    use(of("outcome"), "stored")
    assert of("episode").options == (label,)
    use(of("outcome"), "failed")
    assert label not in of("episode").options
    use(of("outcome"), "all")
    use(of("reason"), of("reason").options[-1])
    use(of("reason"), "any reason")
    use(of("episode"), label)
    use(of("Replay"))
    assert studio.errands.wait(timeout=300)
    assert studio.player.look.motion.step_count > 20
    assert studio.player._images["front"].image.shape == (48, 64, 3)
    use(controls(studio)["", "step"], 20)
    assert studio.errands.wait(timeout=300)
    assert "step 20" in studio.player._outcome.content
