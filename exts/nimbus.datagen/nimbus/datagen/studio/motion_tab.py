"""The second tab: layouts as they are drawn, one attempt as it is planned, and the pictures of the cameras."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nimbus.datagen.layout import PhysicalLayout
from nimbus.datagen.studio.errands import Errands
from nimbus.datagen.studio.preview import Motion, Preview, SceneLook
from nimbus.datagen.studio.scene_view import SceneView
from nimbus.datagen.task import Task

SAMPLE_COUNT = 50
_FRAME_RATE = 30.0
"""[Hz] at which a motion is played."""


class MotionTab:
    """Samples, reach, plan, scrubber and pictures.

    Args:
        server: A ``viser.ViserServer``.
        task: The task as it stands.
        preview: Draws and plans.
        view: Shows it.
        errands: Where long work is done.
    """

    def __init__(
        self, server: Any, task: Callable[[], Task], preview: Preview, view: SceneView, errands: Errands
    ) -> None:
        self._server, self._task, self._preview, self._view, self._errands = server, task, preview, view, errands
        self._look: SceneLook | None = None
        self._pictures_of: Callable[[int], dict[str, Any]] | None = None
        self._samples: list[PhysicalLayout] = []
        self._images: dict[str, Any] = {}
        self._plot: Any = None
        self._playing = threading.Event()
        gui = server.gui
        self._seed = gui.add_number("seed", 0, min=0, max=2**31 - 1, step=1)
        self._index = gui.add_number("episode", 0, min=0, max=10**7, step=1)
        draw = gui.add_button_group("layout", ("This one", "Next", f"Sample {SAMPLE_COUNT}", "Clear"))
        draw.on_click(lambda event: self._draw(event.target.value))
        more = gui.add_button_group("check", ("Reach", "Plan one", "Pictures"))
        more.on_click(lambda event: self._check(event.target.value))
        self._outcome = gui.add_markdown("Nothing drawn yet.")
        self._step = gui.add_slider("step", 0, 1, 1, 0)
        self._step.on_update(lambda event: self._scrub(int(event.target.value)))
        play = gui.add_button_group("motion", ("Play", "Stop"))
        play.on_click(lambda event: self._play(event.target.value == "Play"))
        self._folder = gui.add_folder("Camera pictures", expand_by_default=True)
        self._plots = gui.add_folder("Joints", expand_by_default=False)

    @property
    def look(self) -> SceneLook | None:
        """What is shown."""
        return self._look

    @property
    def samples(self) -> list[PhysicalLayout]:
        """The layouts that were drawn last."""
        return self._samples

    # What buttons do

    def _draw(self, what: str) -> None:
        if what == "Clear":
            self._view.hide("samples")
            self._view.hide("reach")
        elif what in ("This one", "Next"):
            self._index.value = int(self._index.value) + (what == "Next")
            self._errands.send("drawing a layout", self.draw_layout)
        else:
            self._errands.send(f"drawing {SAMPLE_COUNT} layouts", self.draw_samples)

    def _check(self, what: str) -> None:
        work = {"Reach": self.draw_reach, "Plan one": self.plan_one, "Pictures": self.take_pictures}[what]
        self._errands.send({"Plan one": "planning"}.get(what, what.lower()), work)

    def draw_layout(self) -> None:
        """Show the layout of the episode that is chosen."""
        task = self._task()
        look = self._preview.layout(task, seed=int(self._seed.value), index=int(self._index.value))
        count = len(look.layout.physical.objects) if look.layout else 0
        self.show(look, f"Episode {self._index.value}: {count} objects.")

    def draw_samples(self) -> None:
        """Mark the objects of many layouts."""
        begin, samples = time.monotonic(), []
        for layout in self._preview.samples(self._task(), seed=int(self._seed.value), count=SAMPLE_COUNT):
            samples.append(layout)
        self._samples = samples
        self._view.show_samples(samples)
        self._outcome.content = f"{len(samples)} layouts in {time.monotonic() - begin:.1f} s."

    def draw_reach(self) -> None:
        """Show where the robot can work."""
        task = self._task()
        assets, heights = self._preview.assets(task), self._preview.heights(task)
        self._view.show_reach(assets.reach, {name: heights[region.on] for name, region in task.regions.items()})
        cells = [bool(cell) for found in assets.reach.values() for cell in found.cells.ravel()]
        self._outcome.content = f"{sum(cells)} of {len(cells)} cells of the regions are within reach."

    def plan_one(self) -> None:
        """Plan and execute one attempt, and show its motion."""
        look = self._preview.plan(self._task(), seed=int(self._seed.value), index=int(self._index.value))
        self.show(look, outcome_line(look.motion))

    def take_pictures(self) -> None:
        """Show what the cameras see."""
        if self._look is None:
            return
        step = int(self._step.value)
        if self._pictures_of is not None:
            self._show_pictures(self._pictures_of(step))
            return
        frames = self._preview.pictures(self._task(), self._look, step)
        self._show_pictures({name: frame.rgb[0] for name, frame in frames.items()})

    # What is shown

    def show(self, look: SceneLook, line: str, *, pictures: Callable[[int], dict[str, Any]] | None = None) -> None:
        """Show a layout or a motion, from its first step.

        Args:
            look: What.
            line: What is said of it.
            pictures: What was recorded of a step, by name; rendered anew where nothing was.
        """
        self._playing.clear()
        self._look, self._pictures_of = look, pictures
        self._view.show(look)
        self._step.value = 0
        self._step.max = max(1, look.motion.step_count - 1)
        self._outcome.content = line
        self._show_plot(look.motion)
        self._errands.send("pictures", self.take_pictures)

    def _scrub(self, step: int) -> None:
        look = self._look
        if look is None:
            return
        step = min(step, look.motion.step_count - 1)
        self._view.place(look.motion, step)
        if phase := look.motion.phase(step):
            self._outcome.content = f"{outcome_line(look.motion)}  \nstep {step}: {phase}"
        if not self._playing.is_set() and look.motion.step_count > 1:
            self._errands.send("pictures", self.take_pictures)

    def _play(self, on: bool) -> None:
        if not on or self._look is None or self._look.motion.step_count < 2 or self._playing.is_set():
            self._playing.clear()
            return
        self._playing.set()
        threading.Thread(target=self._run_motion, args=(self._look.motion,), daemon=True).start()

    def _run_motion(self, motion: Motion) -> None:
        """Show a motion in its own time, between its steps too."""
        begin = time.monotonic() - int(self._step.value) / motion.rate
        while self._playing.is_set():
            at = (time.monotonic() - begin) * motion.rate
            if at >= motion.step_count - 1:
                break
            self._view.place(between(motion, at), 0)
            if int(at) % 5 == 0:
                self._outcome.content = f"{outcome_line(motion)}  \nstep {int(at)}: {motion.phase(int(at))}"
            time.sleep(1.0 / _FRAME_RATE)
        self._playing.clear()
        self._step.value = min(int((time.monotonic() - begin) * motion.rate), motion.step_count - 1)

    def _show_pictures(self, pictures: dict[str, Any]) -> None:
        for name in [name for name in self._images if name not in pictures]:
            self._images.pop(name).remove()
        with self._folder:
            for name, picture in pictures.items():
                if name in self._images:
                    self._images[name].image = picture
                else:
                    self._images[name] = self._server.gui.add_image(picture, label=name, format="jpeg")
                self._view.show_picture(name, picture)

    def _show_plot(self, motion: Motion) -> None:
        if self._plot is not None:
            self._plot.remove()
            self._plot = None
        if motion.signals is None or motion.step_count < 2:
            return
        with self._plots:
            self._plot = joint_plot(self._server.gui, motion)


def joint_plot(gui: Any, motion: Motion) -> Any:
    """Joint positions over time."""
    from viser import uplot  # pyright: ignore[reportMissingImports]

    signals = motion.signals if motion.signals is not None else np.zeros((motion.step_count, 0))
    colors = [f"hsl({hue}, 60%, 45%)" for hue in np.linspace(0, 320, max(1, signals.shape[1])).astype(int)]
    series = [
        uplot.Series(label=name, stroke=color, width=1.5)
        for name, color in zip(motion.signal_names, colors, strict=False)
    ]
    time_axis = np.arange(motion.step_count) / motion.rate
    return gui.add_uplot(
        data=(time_axis, *signals.T),
        series=(uplot.Series(label="time [s]"), *series),
        scales={"x": uplot.Scale(time=False)},
        title="joints [rad, m]",
        aspect=1.3,
    )


def between(motion: Motion, at: float) -> Motion:
    """The one step of a motion that lies at a broken number of steps."""
    low = int(at)
    share, high = at - low, min(low + 1, motion.step_count - 1)
    one, other = motion.wxyz[low], motion.wxyz[high]
    other = np.where((one * other).sum(axis=1, keepdims=True) < 0, -other, other)
    wxyz = (1 - share) * one + share * other
    return Motion(
        rate=motion.rate,
        names=motion.names,
        positions=((1 - share) * motion.positions[low] + share * motion.positions[high])[None],
        wxyz=(wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True))[None],
    )


def outcome_line(motion: Motion) -> str:
    """How it ended, in one line."""
    outcome = motion.outcome
    if outcome is None:
        return ""
    length = f"{motion.step_count / motion.rate:.1f} s"
    if outcome.success:
        return f"**Success**, {length}."
    return f"**Failed** after {length} in {outcome.phase}: {outcome.reason.value} {outcome.detail}"
