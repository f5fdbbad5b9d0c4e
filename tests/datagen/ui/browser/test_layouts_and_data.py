"""Layouts, motions, images, plots, runs and their data in the studio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.studio.controls import controls, use

OUTSIDE_THE_FORM = {
    *(("", "step"), ("", "motion"), ("Camera pictures", "picture"), ("Plots", "plot")),
    ("", "full meshes"),
    *(("Run", label) for label in ("run", "episodes", "run seed", "folder")),
    *(("Data", label) for label in ("dataset", "Open dataset", "outcome", "reason", "episode", "Replay")),
}
"""Elements with a test below; those of the form are tested with the form."""


def height(studio: Any) -> float:
    return studio.view._bodies["panda_hand"].position[2]


def test_every_element_outside_the_form_is_tested(studio: Any):
    form = {control.label for section in studio.editor.sections() for control in section.controls}
    elsewhere = ("Teleoperate", "Cuts", "Demonstration", "Subtask", "Multiply")  # tested in other files
    shown = {place for place in controls(studio) if place[0] not in elsewhere}
    labels = {place for place in shown if place[1] not in form or place[0] in ("", "Run", "Data")}
    assert labels - {("File", "take this text")} == OUTSIDE_THE_FORM


def test_scrubber_moves_the_bodies(moving: Any):
    low = height(moving)
    use(controls(moving)["", "step"], 29)
    assert height(moving) == pytest.approx(low + 0.2)


def test_motion_is_played_and_stopped(moving: Any):
    group = controls(moving)["", "motion"]
    use(group, "Play")
    assert moving.player.is_playing
    use(group, "Stop")
    assert not moving.player.is_playing


def test_every_modality_is_another_picture(studio: Any):
    seen = set()
    for name in controls(studio)["Camera pictures", "picture"].options:
        use(controls(studio)["Camera pictures", "picture"], name)
        assert studio.tasks.wait(timeout=300)
        seen.add(studio.player._images["front"].image.tobytes())
    assert len(seen) == 7
    use(controls(studio)["Camera pictures", "picture"], "rgb")


def test_plot_is_chosen(moving: Any):
    use(controls(moving)["Plots", "plot"], "other")
    assert moving.player._plot.title == "other"


def test_layouts_samples_and_reach_are_drawn(studio: Any):
    def press(row: str, option: str) -> None:
        use(controls(studio)["Layouts", row], option)
        assert studio.tasks.wait(timeout=300)

    use(controls(studio)["Layouts", "seed"], 5)
    use(controls(studio)["Layouts", "episode"], 2)
    press("layout", "This one")
    assert (studio.player.look.layout.key.seed, studio.player.look.layout.key.index) == (5, 2)
    press("layout", "Next")
    assert studio.player.look.layout.key.index == controls(studio)["Layouts", "episode"].value == 3
    press("layout", "Sample 50")
    assert len(studio.scene.samples) == 50
    assert studio.view.shown("samples")
    press("check", "Reach")
    assert studio.view.shown("reach")
    press("layout", "Clear")
    assert not studio.view.shown("samples")
    assert not studio.view.shown("reach")


def test_run_saves_shipped_task_and_names_copy(studio: Any, monkeypatch: pytest.MonkeyPatch):
    studio.draft.path.unlink(missing_ok=True)
    studio.editor.open("sort_trash")
    monkeypatch.setattr(studio.panel, "run", lambda: None)
    use(controls(studio)["Run", "run"], "Run")
    path = studio.draft.path
    assert path.read_text() == studio.draft.text
    assert f"saved as {path}" in studio.editor.message
    assert studio.panel.task == str(path)


def test_run_refuses_file_of_another_task(studio: Any, monkeypatch: pytest.MonkeyPatch):
    studio.draft.path.unlink(missing_ok=True)
    studio.editor.open("sort_trash")
    studio.draft.path.write_text("robot: panda\n")
    monkeypatch.setattr(studio.panel, "run", lambda: pytest.fail("it runs another task"))
    use(controls(studio)["Run", "run"], "Run")
    assert "press Open to open the file instead" in studio.editor.message


def test_room_and_full_meshes_are_drawn(studio: Any):
    meshes = studio.view._meshes
    assert "backdrop" in {part.instance for part, _, _ in meshes.values()}
    box, sizes = controls(studio)["", "full meshes"], {}
    for is_full in (False, True):
        use(box, is_full)
        assert studio.tasks.wait(timeout=300)
        sizes[is_full] = sum(len(handle.glb_data) for part, _, handle in meshes.values() if part.instance == "robot")
    assert sizes[True] > 3 * sizes[False]


def test_run_is_started_and_reported(studio: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    done: list[str] = []
    for name in ("run", "cancel"):
        monkeypatch.setattr(studio.panel, name, lambda name=name: done.append(name))  # the visit starts a real run
    group = controls(studio)["Run", "run"]
    studio.draft.save()
    studio.draft.set(("rate",), 10)
    use(group, "Run")
    assert "not saved" in studio.editor.message
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
    assert "no report yet" in studio.editor.message
    (tmp_path / "report.html").write_text("<p>all is well</p>")
    assert "default-src" in panel.frame_report(height="9vh")  # the dataset may come from others
    use(group, "Report")
    assert studio.editor.message == ""
    (modal,) = studio.server.gui._modal_handle_from_uuid.values()
    (button,) = [handle for place, handle in controls(studio).items() if place[1] == "Close"]
    use(button)
    assert not studio.server.gui._modal_handle_from_uuid
    studio.panel.set_out("")


def test_data_are_filtered_and_replayed(studio: Any, dataset: Path):
    def of(label: str) -> Any:
        return controls(studio)["Data", label]

    use(of("dataset"), str(dataset.parent))
    use(of("Open dataset"))
    assert studio.tasks.wait(timeout=300)
    assert "no dataset" in studio.editor.message
    use(of("dataset"), str(dataset))
    use(of("Open dataset"))
    assert studio.tasks.wait(timeout=300)
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
    assert studio.tasks.wait(timeout=300)
    assert studio.player.look.motion.step_count > 20
    assert studio.player._images["front"].image.shape == (48, 64, 3)
    use(controls(studio)["", "step"], 20)
    assert studio.tasks.wait(timeout=300)
    assert "step 20" in studio.player._outcome.content
