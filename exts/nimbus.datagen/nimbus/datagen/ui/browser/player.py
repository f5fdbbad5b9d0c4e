"""Player below the tabs, which shows a layout or motion step by step, with camera images and plots of joint values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.media.colormaps import depth_colors, flow_colors, mask_colors, normal_colors
from nimbus.datagen.ui.browser.markdown import escape

if TYPE_CHECKING:
    from nimbus.datagen.arrays import ImageArray
    from nimbus.datagen.episode.layout import Camera
    from nimbus.datagen.tasks.task import Task
    from nimbus.datagen.ui.background_tasks import BackgroundTasks
    from nimbus.datagen.ui.browser.scene_view import SceneView
    from nimbus.datagen.ui.preview import Preview
    from nimbus.datagen.ui.scene_look import Plot, PreviewMotion, SceneLook

_FRAME_RATE = 30.0
"""Rate at which a motion is played [Hz]."""
_PICTURE_DEBOUNCE = 0.2
"""Time without a scrubber movement before images are rendered [s], because rendering slows down the scene."""
_MOST_LINES = 16
"""Largest number of lines in a plot."""

Frames = Mapping[str, CameraFrames]
"""Images of one step by camera."""


def boxed(rgb: ImageArray, boxes: NDArray[np.float32], instance: NDArray[np.uint8]) -> ImageArray:
    """Return the image with a box around every visible instance, in the color of its mask."""
    picture = rgb.copy()
    height, width = rgb.shape[:2]
    for index in np.unique(instance):
        if index and index < len(boxes) and np.isfinite(boxes[index]).all():
            color = mask_colors(index)
            x_min, y_min, x_max, y_max = boxes[index].astype(int)
            x_max, y_max = min(x_max, width) - 1, min(y_max, height) - 1
            for rows, columns in (
                ((y_min, y_max), slice(x_min, x_max + 1)),
                (slice(y_min, y_max + 1), (x_min, x_max)),
            ):
                picture[rows, columns] = color
    return picture


_DRAWN: dict[str, Callable[[CameraFrames, int], ImageArray]] = {
    "rgb": lambda frames, step: frames.rgb[step],
    "depth": lambda frames, step: depth_colors(frames.depth[step]),
    "instance": lambda frames, step: mask_colors(frames.instance[step]),
    "semantic": lambda frames, step: mask_colors(frames.semantic[step]),
    "normals": lambda frames, step: normal_colors(frames.normals[step]),
    "boxes": lambda frames, step: boxed(frames.rgb[step], frames.boxes_2d[step], frames.instance[step]),
    "flow": lambda frames, step: flow_colors(frames.flow[step]),  # pyright: ignore[reportOptionalSubscript],
}
MODALITIES = tuple(_DRAWN)
"""Names of all possible images of a step."""


def picture_of(frames: CameraFrames, step: int, wanted: str) -> ImageArray:
    """Return one modality of one step; a black image if the camera does not store it."""
    stored = {"boxes": len(frames.boxes_2d) and len(frames.instance), "flow": frames.flow is not None}
    has_picture = stored[wanted] if wanted in stored else len(getattr(frames, wanted))
    return _DRAWN[wanted](frames, step) if has_picture else frames.rgb[step] * 0


class Player:
    """Scrubber, images and plots of the layout or motion in the scene.

    Args:
        server: A ``viser.ViserServer``.
        task: The current task.
        preview: Renders images of steps without recorded ones.
        view: The scene.
        tasks: Runs long work.
    """

    def __init__(
        self, server: Any, task: Callable[[], Task], preview: Preview, view: SceneView, tasks: BackgroundTasks
    ) -> None:
        self._gui, self._task, self._preview, self._view, self._tasks = server.gui, task, preview, view, tasks
        self._look: SceneLook | None = None
        self._recorded: Callable[[int], Frames] | None = None
        self._images: dict[str, Any] = {}
        self._plot: Any = None
        self._playing = threading.Event()
        self._observers: list[Callable[[SceneLook, int], None]] = []
        gui = server.gui
        self._outcome = gui.add_markdown("Nothing drawn yet.")
        self._step = gui.add_slider("step", 0, 1, 1, 0)
        self._step.on_update(lambda event: self._scrub(int(event.target.value)))
        play = gui.add_button_group("motion", ("Play", "Stop"))
        play.on_click(lambda event: self._play(event.target.value == "Play"))
        self._folder = gui.add_folder("Camera pictures", expand_by_default=True)
        with self._folder:
            self._modality = gui.add_dropdown("picture", MODALITIES, initial_value=MODALITIES[0])
            self._modality.on_update(lambda _: tasks.submit("pictures", self.take_pictures))
        self._plots = gui.add_folder("Plots", expand_by_default=False)
        with self._plots:
            self._plotted = gui.add_dropdown("plot", ("none",), initial_value="none")
            self._plotted.on_update(lambda _: self._show_plot())

    @property
    def look(self) -> SceneLook | None:
        """Layout or motion in the scene."""
        return self._look

    @property
    def is_playing(self) -> bool:
        """True while a motion plays."""
        return self._playing.is_set()

    @property
    def step(self) -> int:
        """Current step."""
        return int(self._step.value)

    def observe(self, observer: Callable[[SceneLook, int], None]) -> None:
        """Call ``observer`` with the layout or motion in the scene and its step, whenever one of them changes."""
        self._observers.append(observer)

    def go_to(self, look: SceneLook, step: int) -> None:
        """Show a step of a motion, unless another one is in the scene."""
        if look is self._look:
            self._step.value = max(0, min(step, look.motion.step_count - 1))

    def draw_simply(self, simple: bool) -> None:
        """Draw with fewer triangles, or with all of them."""
        self._view.draw_simply(simple)
        if self._look is not None:
            self._view.show(self._look)
            self._view.place(self._look.motion, min(self.step, self._look.motion.step_count - 1))

    def say(self, line: str) -> None:
        """Show a line above the scrubber."""
        self._outcome.content = line

    def show(self, look: SceneLook, line: str, *, recorded: Callable[[int], Frames] | None = None) -> None:
        """Show a layout or a motion from its first step.

        Args:
            look: Layout or motion.
            line: Line above the scrubber.
            recorded: Returns the recorded images of a step; images are rendered if None.
        """
        self._playing.clear()
        self._look, self._recorded = look, recorded
        self._view.show(look)
        self._step.value = 0
        self._step.max = max(1, look.motion.step_count - 1)
        self.say(line)
        titles = tuple(plot.title for plot in look.motion.plots) or ("none",)
        self._plotted.options, self._plotted.value = titles, titles[0]
        self._show_plot()
        self._tell(0)
        self._tasks.submit("pictures", self.take_pictures)

    def look_through(self, cameras: tuple[Camera, ...]) -> None:
        """Set the cameras for rendering; recorded images are unaffected."""
        if self._look is not None and self._look.layout is not None and self._recorded is None:
            visual = replace(self._look.layout.visual, cameras=cameras)
            self._look = replace(self._look, layout=replace(self._look.layout, visual=visual))
            self._tasks.submit("pictures", self.take_pictures)

    def take_pictures(self) -> None:
        """Show the cameras' images of the current step."""
        look, recorded = self._look, self._recorded
        if look is None:
            return
        step = min(self.step, look.motion.step_count - 1)
        frames = recorded(step) if recorded else self._preview.pictures(self._task(), look, step)
        wanted = self._modality.value
        self._show_pictures({name: picture_of(seen, 0, wanted) for name, seen in frames.items()})
        for name, seen in frames.items():
            self._view.show_picture(name, seen.rgb[0])

    def _scrub(self, step: int) -> None:
        look = self._look
        if look is None:
            return
        step = min(step, look.motion.step_count - 1)
        self._view.place(look.motion, step)
        self._tell(step)
        if phase := look.motion.phase(step):
            self.say(f"{outcome_line(look.motion)}  \nstep {step}: {escape(phase)}")
        if not self._playing.is_set() and look.motion.step_count > 1:
            self._tasks.submit("pictures", self.take_pictures, debounce=_PICTURE_DEBOUNCE)

    def _tell(self, step: int) -> None:
        if self._look is not None:
            for observer in self._observers:
                observer(self._look, step)

    def _play(self, on: bool) -> None:
        if not on or self._look is None or self._look.motion.step_count < 2 or self._playing.is_set():
            self._playing.clear()
            return
        self._playing.set()
        threading.Thread(target=self._run_motion, args=(self._look.motion,), daemon=True).start()

    def _run_motion(self, motion: PreviewMotion) -> None:
        """Show a motion in real time, with interpolation between its steps."""
        first = self.step if self.step < motion.step_count - 1 else 0
        begin = time.monotonic() - first / motion.rate
        while self._playing.is_set():
            at = (time.monotonic() - begin) * motion.rate
            if at >= motion.step_count - 1:
                break
            self._view.place(motion.at(at), 0)
            if int(at) % 5 == 0:
                self.say(f"{outcome_line(motion)}  \nstep {int(at)}: {escape(motion.phase(int(at)))}")
            time.sleep(1.0 / _FRAME_RATE)
        self._playing.clear()
        self._step.value = min(int((time.monotonic() - begin) * motion.rate), motion.step_count - 1)

    def _show_pictures(self, pictures: Mapping[str, Any]) -> None:
        for name in [name for name in self._images if name not in pictures]:
            self._images.pop(name).remove()
        with self._folder:
            for name, picture in pictures.items():
                if name in self._images:
                    self._images[name].image = picture
                else:
                    self._images[name] = self._gui.add_image(picture, label=name, format="jpeg")

    def _show_plot(self) -> None:
        if self._plot is not None:
            self._plot.remove()
            self._plot = None
        motion = self._look.motion if self._look else None
        chosen = next((plot for plot in motion.plots if plot.title == self._plotted.value), None) if motion else None
        if motion and chosen and motion.step_count > 1:
            with self._plots:
                self._plot = draw_plot(self._gui, chosen, rate=motion.rate)


def draw_plot(gui: Any, plot: Plot, *, rate: float) -> Any:
    """Plot lines over time; if there are too many, only those that change the most."""
    from viser import uplot  # pyright: ignore[reportMissingImports]

    busiest = np.argsort(-np.ptp(plot.rows, axis=0), kind="stable")[:_MOST_LINES]
    kept = sorted(int(column) for column in busiest)
    hues = np.linspace(0, 320, max(1, len(kept))).astype(int)
    series = [
        uplot.Series(label=plot.names[column], stroke=f"hsl({hue}, 60%, 45%)", width=1.5)
        for column, hue in zip(kept, hues, strict=False)
    ]
    return gui.add_uplot(
        data=(np.arange(len(plot.rows)) / rate, *(plot.rows[:, column] for column in kept)),
        series=(uplot.Series(label="time [s]"), *series),
        scales={"x": uplot.Scale(time=False)},
        title=plot.title,
        aspect=1.3,
    )


def outcome_line(motion: PreviewMotion) -> str:
    """Describe the outcome in one line."""
    outcome = motion.outcome
    if outcome is None:
        return ""
    length = f"{motion.step_count / motion.rate:.1f} s"
    if outcome.success:
        return f"**Success**, {length}."
    reason = escape(f"{outcome.phase}: {outcome.reason.value} {outcome.detail}")
    return f"**Failed** after {length} in {reason}"
