"""Teleoperation tab of the studio: the operator moves the tools and records demonstrations."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import check_own
from nimbus.datagen.geometry.transforms import make_transform, quat_from_matrix
from nimbus.datagen.teleoperate.control_loop import ControlLoop, LoopState
from nimbus.datagen.teleoperate.device_file import read_device
from nimbus.datagen.teleoperate.device_process import JoinedInput, ProcessDevice
from nimbus.datagen.teleoperate.operator_input import InputDevice
from nimbus.datagen.teleoperate.page_input import PageInput, read_report
from nimbus.datagen.teleoperate.recording import RecordingFolder
from nimbus.datagen.teleoperate.session import TeleoperationSession
from nimbus.datagen.ui.browser.live_cameras import LiveCameras
from nimbus.datagen.ui.browser.markdown import escape
from nimbus.datagen.ui.browser.operator_status import describe_making, describe_state, draw_status
from nimbus.datagen.ui.page_script import PageScript
from nimbus.datagen.ui.runs.run_panel import read_run_status
from nimbus.datagen.ui.scene_look import PreviewMotion, SceneLook, look_parts

if TYPE_CHECKING:
    from nimbus.datagen.robots.robot import Robot
    from nimbus.datagen.tasks.task import Task
    from nimbus.datagen.ui.background_tasks import BackgroundTasks
    from nimbus.datagen.ui.browser.player import Player
    from nimbus.datagen.ui.browser.scene_view import SceneView
    from nimbus.datagen.ui.preview import Preview
    from nimbus.datagen.ui.runs.launch import Launcher, RunningProcess

_SCRIPT = Path(__file__).with_name("scripts") / "teleoperation.js"
_HELP = """Drag the frame at the tool, or use keys: **W S** move along x, away from the robot and back, **A D** along y,
**E Q** up and down; **U O**, **I K**, **J L** turn about x, y and z; **space** closes and opens the gripper;
**1 2** choose the arm; **M** connects a six-axis mouse. A gamepad works once a button is pressed."""
_BUTTONS = ("Record", "Keep", "Discard")
_OFF = "Press <i>Start</i>."
_FAILED = "<b>stopped by an internal error; press <i>Start</i>: the recording is kept</b> (details in the terminal)"
_SHORTEST = 0.1
"""Resolution of the time to go back to [s]."""
_FRAME = 0.15
"""Length of the arrows of a tool frame [m]."""


class TeleoperationTab:
    """Controls of a session, draggable frames at the tools, and the measured latency.

    Args:
        server: A ``viser.ViserServer``.
        task: The current task.
        file: Returns the path of the saved task, for the process that makes episodes; raises for an unsaved task.
        out: Returns the folder of the demonstrations of a task.
        preview: Source of the task's assets.
        view: The scene.
        player: Shows the layout; motions are not played during teleoperation.
        tasks: Runs long work.
        launcher: Starts the process that makes episodes from the recordings.
        report: Called with one line on failure, with "" on success.
    """

    def __init__(
        self,
        server: Any,
        task: Callable[[], Task],
        file: Callable[[], Path],
        out: Callable[[str], Path],
        *,
        preview: Preview,
        view: SceneView,
        player: Player,
        tasks: BackgroundTasks,
        launcher: Launcher,
        report: Callable[[str], None],
    ) -> None:
        self._server, self._task, self._file, self._out = server, task, file, out
        self._preview, self._view, self._player, self._tasks = preview, view, player, tasks
        self._launcher, self._report = launcher, report
        self._loop: ControlLoop | None = None
        self._input = PageInput(())
        self._device: InputDevice = self._input
        self._device_file: Path | None = None
        self._frames: dict[str, Any] = {}
        self._dragging: set[str] = set()
        self._seen: tuple[int, tuple[bool, ...]] = (0, ())
        """Number of the last report that the robot followed, and for each arm, True if its hand is closed since."""
        self._images: dict[str, Any] = {}
        self._process: RunningProcess | None = None
        self._is_wanted = False
        """True from *Start* to *Stop*, also while the scene is loaded."""
        gui = server.gui
        self._switch = gui.add_button_group("teleoperation", ("Start", "Stop"))
        self._switch.on_click(lambda event: self._turn(event.target.value == "Start"))
        self._operator = gui.add_text("operator", "", hint="Your name, recorded with each demonstration")
        self._prompt = gui.add_text("prompt", "", hint="Instruction; if empty, that of the layout")
        self._prompt.on_update(lambda event: self._write_prompt(event.target.value))
        buttons = gui.add_button_group("demonstration", _BUTTONS)
        buttons.on_click(lambda event: self._press(event.target.value))
        self._renders = gui.add_checkbox("images", True, hint="Off: Keep makes episodes of states only")
        back = gui.add_button_group("undo", ("1 s", "5 s", "Pause"))
        back.on_click(lambda event: self._go_back(event.target.value))
        self._moment = gui.add_slider("time [s]", 0.0, _SHORTEST, _SHORTEST, 0.0, hint="Time to go back to")
        gui.add_button("Go back to this time", hint="What was done later is removed").on_click(lambda _: self._go_to())
        self._line = gui.add_html(draw_status(_OFF))
        self._made = gui.add_markdown("")
        with gui.add_folder("Keys", expand_by_default=True):
            gui.add_markdown(_HELP)
        self._applied = gui.add_html('<span id="nimbus-applied" hidden>0</span>')
        self._pictures = gui.add_folder("Live cameras", expand_by_default=True)

    def start(self, device: Path | None = None, *, has_images: bool = True) -> None:
        """Start with the first layout that has no recording.

        Args:
            device: File of a device that moves the robot in addition to the page.
            has_images: False to make episodes of states only.
        """
        self._renders.value = has_images
        self._device_file = device
        self._turn(True)

    def close(self) -> None:
        """Stop; an unfinished recording stays on the disk."""
        self._is_wanted = False
        if (loop := self._loop) is not None:
            loop.close()
            self._cameras.close()
            self._loop = None
            self._prompt.value = ""
        for frame in self._frames.values():
            frame.remove()
        self._frames.clear()

    def _end(self) -> None:
        """Report an unexpected error of the loop, in the thread of the loop."""
        self._line.content = draw_status(_FAILED)
        self.close()

    def answer(self, text: str) -> str:
        """Answer a report of the page with the number of the last report that was followed, and the closed hands.

        Raises:
            InputError: The text is not a report.
        """
        self._input.report(read_report(text))
        number, closed = self._seen
        return to_json({"is_on": self._loop is not None, "number": number, "closed": closed})

    def refresh(self) -> None:
        """Show the process that makes episodes; this is called a few times per second."""
        if self._process is None:
            return
        if (code := self._process.poll()) is None:
            return self._show_making()
        output, self._process = self._process.output().strip().splitlines(), None
        if code not in (0, 1):
            self._made.content = escape(f"making episodes failed: {output[-1] if output else code}")
        elif len(self._folder.indices()) > self._asked:
            try:
                self._make_episodes()
            except InputError as error:
                self._report(str(error))
        else:
            failed = "; not every recording succeeds" if code else ""
            self._show_count(f"dataset ready: {self._dataset}{failed}")

    def _turn(self, is_on: bool) -> None:
        if is_on and self._loop is None:
            self._is_wanted = True
            self._line.content = draw_status("Loading the scene …")
            self._tasks.submit("teleoperation", self._begin)
        elif not is_on:
            self.close()
            self._line.content = draw_status(_OFF)

    def _begin(self) -> None:
        if self._loop is not None or not self._is_wanted:  # stopped before its turn
            return
        task = self._task()
        assets = self._preview.assets(task)
        self._folder = RecordingFolder.beside(self._out(task.name))
        page = self._input = PageInput(assets.robot.arm_names)
        self._session = session = TeleoperationSession(task, assets)
        if (unfinished := self._folder.unfinished()) is not None:
            session.resume(unfinished)
        else:
            session.reset(self._folder.next_index())
        # The device is opened last, because only the loop ends the device's process: an error above would leave it
        # running.
        self._device = self._open_device(page, assets.robot)
        self._cameras = LiveCameras(assets, self._show_picture)
        self._show_layout()
        for name, pose in session.targets().items():
            self._frames[name] = self._add_frame(name, pose)
        self._loop = ControlLoop(session, self._device, self._folder, show=self._show, fail=self._end)
        self._loop.start()
        if not self._is_wanted:  # stopped while the scene was loaded
            return self._turn(False)
        self._show_making()

    def _open_device(self, page: PageInput, robot: Robot) -> InputDevice:
        """Return the page's input, combined with that of the device if there is one."""
        if self._device_file is None:
            return page
        settings = read_device(self._device_file, robot)
        return JoinedInput((page, ProcessDevice(settings, robot, where=str(self._device_file))))

    def _show_count(self, state: str) -> None:
        """Show the number of kept recordings, and the state of the episodes that are made from them."""
        count = len(self._folder.indices())
        lines = (f"{count} kept, in {self._folder.folder}" if count else "", state)
        if (content := "  \n".join(escape(line) for line in lines if line)) != self._made.content:
            self._made.content = content

    def _show_making(self) -> None:
        """Show the progress of the process that makes episodes, if it runs."""
        is_making = self._process is not None
        status = read_run_status(self._dataset, since=self._making_since) if is_making else None
        self._show_count(describe_making(status) if is_making else "")

    def _add_frame(self, arm: str, pose: FloatArray) -> Any:
        frame = self._server.scene.add_transform_controls(
            f"/teleoperation/{arm}",
            scale=_FRAME,
            depth_test=False,
            position=pose[:3, 3],
            wxyz=quat_from_matrix(pose[:3, :3]),
        )

        def moved(event: Any) -> None:
            (self._dragging.discard if event.phase == "end" else self._dragging.add)(arm)
            self._input.drag(arm, make_transform(event.target.position, event.target.wxyz))

        frame.on_update(moved)
        return frame

    def _show_layout(self) -> None:
        session = self._session
        parts = look_parts(session.assets.stage, session.assets.robot, session.drawn.physical)
        look = SceneLook(parts=parts, layout=session.drawn, motion=self._motion())
        self._player.show(look, f"Teleoperation, layout {session.index}.")
        self._shown_index = session.index
        if not self._prompt.value:
            self._prompt.value = session.prompt or session.drawn.visual.instruction

    def _motion(self) -> PreviewMotion:
        simulation = self._session.environment.simulation
        return PreviewMotion(
            rate=simulation.rate,
            names=simulation.body_names,
            positions=simulation.body_positions()[None],
            wxyz=simulation.body_wxyz()[None],
        )

    def _show(self, state: LoopState) -> None:
        """Show a period, in the thread of the loop."""
        assert self._loop is not None
        closed = tuple(opening < 0.5 for opening in state.session.openings.values())
        self._seen = self._input.number, closed
        # The lock of the loop is needed, because keeping a demonstration resets physics in another thread.
        motion, targets, drawn = self._loop.do(lambda session: (self._motion(), session.targets(), session.drawn))
        line = describe_state(state, latency=self._input.latency)
        if is_new := line != self._line.content:
            # Before the poses and images, which take the browser longer.
            self._line.content = line
        with self._server.atomic():
            self._view.place(motion, 0)
            for name, pose in targets.items():
                if name not in self._dragging and name in self._frames:
                    frame = self._frames[name]
                    frame.position, frame.wxyz = pose[:3, 3], quat_from_matrix(pose[:3, :3])
            self._applied.content = f'<span id="nimbus-applied" hidden>{self._input.number}</span>'
        self._cameras.look(drawn, motion.names, motion.positions[0], motion.wxyz[0])
        if is_new:
            # The line changes every second of a recording.
            self._moment.max = end = max(_SHORTEST, round(state.session.seconds, 1))
            self._moment.value = min(float(self._moment.value), end)

    def _show_picture(self, camera: str, picture: ImageArray) -> None:
        if camera in self._images:
            self._images[camera].image = picture
            return
        with self._pictures:
            self._images[camera] = self._server.gui.add_image(picture, label=camera, format="jpeg")

    def _do(self, act: Callable[[TeleoperationSession], object]) -> None:
        try:
            if self._loop is None:
                raise InputError("teleoperation is off", where="studio", instead="press Start")
            self._loop.do(act)
            self._report("")
        except InputError as error:
            self._report(str(error))

    def _write_prompt(self, text: str) -> None:
        if self._loop is not None:
            self._do(lambda session: setattr(session, "prompt", _own_prompt(session, text)))

    def _go_back(self, what: str) -> None:
        if what == "Pause":
            self._do(lambda session: session.pause())
        else:
            self._do(lambda session: session.undo(float(what.split()[0])))

    def _go_to(self) -> None:
        seconds = float(self._moment.value)
        self._do(lambda session: session.go_to(round(seconds * session.task.rate)))

    def _press(self, what: str) -> None:
        if what == "Record":
            self._do(lambda session: session.record())
        elif what == "Discard":
            self._do(self._discard) if self._loop else self._forget()
        else:
            self._do(self._keep)

    def _discard(self, session: TeleoperationSession) -> None:
        session.discard()
        self._folder.forget_unfinished()

    def _forget(self) -> None:
        """Remove an unfinished recording that cannot be continued."""
        try:
            RecordingFolder.beside(self._out(self._task().name)).forget_unfinished()
            self._report("")
        except InputError as error:
            self._report(str(error))

    def _keep(self, session: TeleoperationSession) -> None:
        session.operator, session.device = self._operator.value.strip(), self._device.name
        session.prompt = _own_prompt(session, self._prompt.value)
        self._folder.keep(session.recording())
        session.reset(self._folder.next_index())
        self._prompt.value = ""
        self._show_layout()
        self._make_episodes()

    def _make_episodes(self) -> None:
        if self._process is not None:
            self._show_making()
            return  # the next process starts when this one has ended
        self._show_count("")
        self._asked = len(self._folder.indices())
        task, folder = self._session.task, self._folder.folder
        self._dataset, words = self._out(task.name), ["demonstrate", str(self._file())]
        if not self._renders.value:
            self._dataset = self._dataset.with_name(f"{self._dataset.name}-states")
            check_own(self._dataset)
            words += ["--images", "none"]
        words += ["--recordings", str(folder.absolute()), "--serial"]
        self._making_since = time.time()
        self._process = self._launcher.start([*words, "--out", str(self._dataset.absolute())])
        self._show_making()


def _own_prompt(session: TeleoperationSession, text: str) -> str:
    """Return the operator's prompt; empty if it equals the layout's instruction."""
    return "" if text.strip() == session.drawn.visual.instruction else text.strip()


def script_of(answer: Callable[[str], str]) -> PageScript:
    """Return the script of teleoperation for the page."""
    return PageScript(name="teleoperation", source=_SCRIPT, answer=answer)
