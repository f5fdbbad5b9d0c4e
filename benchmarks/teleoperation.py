"""Teleoperation on this machine: control rate, and time from input to the frame that shows it.

    python benchmarks/teleoperation.py --out DIR [--task pick_and_place] [--seconds 30] [--cores 2]

Two measurements. The first runs the control loop by itself, in real time, with a scripted hand. The second opens the
studio in headless Chromium without a GPU, presses keys at the rate of a person, and reads the rate and the latency that
the page itself measures: from a key press or release to the frame of the scene that shows the moved robot. The browser
runs on the same cores, as on a laptop.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]

import numpy as np  # noqa: E402

from nimbus.datagen.load.scene_loader import load_assets  # noqa: E402
from nimbus.datagen.tasks.task import load_task  # noqa: E402
from nimbus.datagen.teleoperate.control_loop import ControlLoop, LoopState  # noqa: E402
from nimbus.datagen.teleoperate.operator_input import (  # noqa: E402
    InputDevice,
    OperatorInput,
    ToolCommand,
    ToolTwist,
)
from nimbus.datagen.teleoperate.recording import RecordingFolder  # noqa: E402
from nimbus.datagen.teleoperate.session import TeleoperationSession  # noqa: E402
from nimbus.runner.system.output import write_out  # noqa: E402
from tests.support.studio.browser import Browser  # noqa: E402
from tests.support.studio.visit import served, visited  # noqa: E402

LEAST_RATE, MOST_LATENCY = 15.0, 0.150
"""Required control rate [Hz] and median latency [s]."""
_KEYS = ("KeyQ", "KeyA", "KeyE", "KeyD", "KeyW", "KeyJ", "KeyS", "KeyL")
"""Keys that are held in sequence: down, left, up, right, forward, turn, back, turn back."""
_HELD, _RELEASED = 0.6, 0.3
"""Time for which a key is held, and time before the next one [s]."""
_SLACK = 0.98
"""Fraction of the required rate that suffices, because the clock of the operating system is coarse."""


class SwayingHand(InputDevice):
    """Hand that moves back and forth in a circle.

    Args:
        arms: Arms that it moves.
    """

    name = "script"

    def __init__(self, arms: tuple[str, ...]) -> None:
        self._arms, self._count = arms, 0

    def poll(self) -> OperatorInput:
        """Return the velocity of this period."""
        self._count += 1
        angle = self._count / 10
        linear = 0.15 * np.array([np.cos(angle), np.sin(angle), 0.3 * np.sin(2 * angle)])
        twist = ToolTwist(linear=linear, angular=np.array([0.0, 0.0, 0.3 * np.cos(angle)]))
        return OperatorInput(arms={arm: ToolCommand(motion=twist) for arm in self._arms})


def measure_loop(task: str, folder: Path, *, seconds: float) -> dict[str, float]:
    """Run the control loop alone, in real time; return its rate, its work and the fraction of a CPU.

    Args:
        task: Name of a task.
        folder: Folder for the recording.
        seconds: Duration [s].
    """
    loaded = load_task(task)
    session = TeleoperationSession(loaded, load_assets(loaded))
    states: list[LoopState] = []
    loop = ControlLoop(
        session,
        SwayingHand(session.assets.robot.arm_names),
        RecordingFolder(folder / "recordings"),
        show=states.append,
        fail=lambda: None,
    )
    loop.start()
    time.sleep(2.0)  # first steps load kernels
    states.clear()
    begin, cpu = time.monotonic(), time.process_time()
    time.sleep(seconds)
    wall, used, count = time.monotonic() - begin, time.process_time() - cpu, len(states)
    loop.close()
    work = statistics.median(state.work for state in states)
    return {"rate": count / wall, "work": work, "cpu": used / wall, "asked": loaded.rate}


def measure_page(task: str, folder: Path, *, seconds: float) -> dict[str, float]:
    """Steer by keys in a browser; return the control rate, and the median and tail of the latency.

    Args:
        task: Name of a task.
        folder: Folder of the studio.
        seconds: Duration [s].
    """
    with served(folder, task, "--port", "8290", "--teleoperate") as address, visited(address, folder) as browser:
        browser.tab("Teleoperate")
        browser.wait_for("practice, nothing is recorded")
        browser.run("document.activeElement.blur()")
        _steer(browser, 5.0)
        latencies, rates = _steer(browser, seconds)
        browser.picture(folder / "teleoperation.png")
    tail = sorted(latencies)[int(0.9 * len(latencies))]
    return {
        "rate": statistics.median(rates),
        "latency": statistics.median(latencies),
        "latency_p90": tail,
        "samples": len(latencies),
    }


def _steer(browser: Browser, seconds: float) -> tuple[list[float], list[float]]:
    """Hold keys in turn; return the latencies [s] and control rates [Hz] that the page shows."""
    latencies, rates, ended = list[float](), list[float](), time.monotonic() + seconds
    while time.monotonic() < ended:
        key = _KEYS[len(rates) % len(_KEYS)]
        for kind, pause in (("keyDown", _HELD), ("keyUp", _RELEASED)):
            browser.send("Input.dispatchKeyEvent", type=kind, code=key, key=key[-1].lower())
            time.sleep(pause)
            if latency := browser.run("window.nimbusTeleoperation.state().latency"):
                latencies.append(float(latency) / 1e3)
        if found := re.search(r"control (\d+) Hz", browser.text()):
            rates.append(float(found[1]))
    return latencies, rates


def run() -> int:
    """Measure both; return 0 if rate and latency meet the requirements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", default="pick_and_place")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    load = os.getloadavg()[0]
    alone = measure_loop(given.task, given.out, seconds=given.seconds)
    page = measure_page(given.task, given.out, seconds=given.seconds)
    (given.out / "teleoperation.json").write_text(json.dumps({"load": load, "loop": alone, "page": page}, indent=1))
    write_out(f"{given.task} on {given.cores} cores, load before {load:.1f}, threads {threading.active_count()}\n")
    write_out(f"loop alone   {alone['rate']:.1f} Hz, work {alone['work'] * 1e3:.1f} ms, {alone['cpu']:.0%} of a core\n")
    figures = f"median {page['latency'] * 1e3:.0f} ms, 90 % below {page['latency_p90'] * 1e3:.0f} ms"
    write_out(f"in the page  {page['rate']:.1f} Hz, input to picture {figures} ({page['samples']:.0f} samples)\n")
    least = min(LEAST_RATE, alone["asked"]) * _SLACK
    is_met = min(alone["rate"], page["rate"]) >= least and page["latency"] <= MOST_LATENCY
    write_out(f"required are {LEAST_RATE:g} Hz and {MOST_LATENCY * 1e3:g} ms: {'met' if is_met else 'not met'}\n")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(run())
