"""Input from a device in a process with its own interpreter, and combination of several devices."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import parse_json
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.teleoperate.device_file import DeviceFile, StillnessFilter
from nimbus.datagen.teleoperate.operator_input import IDLE, DeviceLost, InputDevice, OperatorInput, ToolCommand

_HOST = Path(__file__).with_name("device_host.py")
_SILENCE = 2.0
"""Age of the last reading above which a device counts as lost [s]."""
_START = 60.0
"""Time until the first reading of a device [s]: it may import PyTorch and ask for a calibration."""
_AGAIN = 2.0
"""Time before the connection to a lost device is retried [s]."""
_LARGEST = 1e300
"""Largest number of a device; larger whole numbers do not fit into a float."""
_LINE = 1 << 16
"""Longest line of a device's output [bytes]."""


class ProcessDevice(InputDevice):
    """Device with the interface of LeRobot's teleoperators, in the interpreter that has its packages.

    The connection to a lost device is retried in the background, so that it works again after it is plugged in.

    Args:
        settings: Content of the device file.
        robot: Robot that the device moves.
        where: Name of the device file, for messages.
    """

    def __init__(self, settings: DeviceFile, robot: Robot, *, where: str) -> None:
        self._settings, self._robot, self._where = settings, robot, where
        self.name = settings.device.partition(":")[2]
        self._lock = threading.Lock()
        self._is_lost = False
        self._start()

    def _start(self) -> None:
        settings = self._settings
        self._entries: dict[str, float] | None = None
        self._error, self._read = "", time.monotonic()
        self._still = StillnessFilter()
        self._log = tempfile.TemporaryFile()
        command = [str(Path(settings.interpreter).expanduser()), "-u", str(_HOST)]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=settings.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                errors="replace",
            )
        except OSError as error:
            what = f"{settings.interpreter}: {error.strerror or error}"
            raise InputError(what, where=self._where, instead="give the device's interpreter") from None
        folders = [str(Path(folder).expanduser().absolute()) for folder in settings.path]
        spec = {"class": settings.device, "path": folders, "config": settings.config, "rate": settings.rate}
        threading.Thread(target=self._listen, args=(self._process,), name="nimbus-device", daemon=True).start()
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(spec) + "\n")
            self._process.stdin.flush()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        while line := process.stdout.readline(_LINE):
            entries, error = _parse(line)
            with self._lock:
                if process is not self._process:
                    return
                self._error = self._error or error
                if entries is not None:
                    self._entries, self._read = entries, time.monotonic()

    def poll(self) -> OperatorInput:
        """Return the newest input.

        Raises:
            DeviceLost: The device does not answer.
            InputError: It lacks entries that its file names.
        """
        with self._lock:
            entries, error, age = self._entries, self._error, time.monotonic() - self._read
            has_ended = self._process.poll() is not None
        if self._is_lost:
            return self._try_again(entries, has_ended, age)
        if error or has_ended or age > (_SILENCE if entries is not None else _START):
            self._is_lost = True
            with self._lock:
                self._entries = None  # a reading from before the loss is no sign that the device is back
            raise DeviceLost(error or self._last_words(has_ended), where=self.name, instead="connect it again")
        return self._input(entries)

    def _try_again(self, entries: dict[str, float] | None, has_ended: bool, age: float) -> OperatorInput:
        if entries is not None and not has_ended and age < _SILENCE:
            self._is_lost, self._error = False, ""
            return self._input(entries)
        if age > (_AGAIN if has_ended else _START):
            self.close()
            self._start()
        return IDLE

    def _input(self, entries: dict[str, float] | None) -> OperatorInput:
        if entries is None:
            return IDLE
        for name, arm in self._settings.arms.items():
            for entry in arm.entries():
                if entry not in entries:
                    what = f"{self.name} has no entry '{entry}' for the arm '{name}'"
                    instead = f"name one of {', '.join(sorted(entries)) or 'none'}"
                    raise InputError(what, where=self._where, instead=instead)
        return OperatorInput(arms=self._still.changes(self._settings.commands(entries, self._robot)))

    def _last_words(self, has_ended: bool) -> str:
        if not has_ended:
            return "does not answer"
        self._log.seek(0)
        lines = self._log.read()[-_LINE:].decode(errors="replace").strip().splitlines()
        return f"its process ended: {lines[-1] if lines else self._process.returncode}"

    def close(self) -> None:
        """End the process; the device disconnects first."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_AGAIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class JoinedInput(InputDevice):
    """Several devices at once; if two of them move the same arm, the last one takes precedence.

    Args:
        devices: The devices.
    """

    def __init__(self, devices: Sequence[InputDevice]) -> None:
        self._devices = tuple(devices)

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Names of the used devices, joined by ``+``."""
        return "+".join(filter(None, (device.name for device in self._devices)))

    def poll(self) -> OperatorInput:
        """Return the newest input of all devices.

        Raises:
            DeviceLost: One of them does not answer.
        """
        arms: dict[str, ToolCommand] = {}
        for given in [device.poll() for device in self._devices]:
            for arm, command in given.arms.items():
                before = arms.get(arm, ToolCommand())
                opening = before.opening if command.opening is None else command.opening
                arms[arm] = ToolCommand(motion=command.motion or before.motion, opening=opening)
        return OperatorInput(arms=arms)

    def close(self) -> None:
        """Close all devices."""
        for device in self._devices:
            device.close()


def _parse(line: str) -> tuple[dict[str, float] | None, str]:
    """Return the entries of a line of a device, and its error."""
    try:
        found = parse_json(line)
    except ValueError:
        return None, "writes lines that are not JSON"
    if not isinstance(found, dict):
        return None, "writes lines that are not JSON objects"
    if "error" in found:
        return None, str(found["error"])[:300]
    entries = found.get("action")
    if not isinstance(entries, dict) or not all(isinstance(value, (int, float)) for value in entries.values()):
        return None, "gives an action with values that are not numbers"
    if not all(-_LARGEST <= value <= _LARGEST for value in entries.values()):
        return None, "gives a number that is not finite"
    return {str(name): float(value) for name, value in entries.items()}, ""
