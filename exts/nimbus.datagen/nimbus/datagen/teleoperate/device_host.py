"""Process of a teleoperation device, run by an interpreter of its own: no import but the device's and Python's.

It makes an object with the interface of LeRobot's teleoperators (``config_class``, ``connect``, ``get_action``,
``disconnect``), and writes one line of JSON for each action: ``{"action": {"shoulder_pan.pos": 12.5, ...}}``, or
``{"error": "..."}`` before it exits. It ends when its standard input is closed.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import sys
import time
from typing import Any


def main() -> int:
    """Serve the device that the first line of the standard input describes."""
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # prints of the device's packages go to the log, not into the wire
    spec = json.loads(sys.stdin.readline())
    # Without this file's own folder, whose names could hide those of the device's packages.
    sys.path[:1] = spec["path"]
    device = None
    try:
        device = make_device(spec["class"], spec["config"])
        device.connect()
        serve(device, float(spec["rate"]), wire)
    except (BrokenPipeError, KeyboardInterrupt):
        return 0
    except BaseException as error:  # whatever a driver raises becomes a message, and the process ends
        text = str(error).strip() or type(error).__name__
        wire.write(json.dumps({"error": f"{type(error).__name__}: {text.splitlines()[0]}"[:300]}) + "\n")
        return 1
    finally:
        if device is not None:
            disconnect(device)
    return 0


def make_device(path: str, config: dict[str, Any]) -> Any:
    """Make the object of a class, given as ``package.module:Class``, from the entries of its configuration."""
    module, _, name = path.partition(":")
    kind = getattr(importlib.import_module(module), name)
    return kind(kind.config_class(**config))


def serve(device: Any, rate: float, wire: Any) -> None:
    """Write the device's actions at a rate [Hz] until the standard input is closed."""
    due = time.monotonic()
    while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
        due = max(due + 1.0 / rate, time.monotonic())
        action = device.get_action()
        numbers = {str(name): float(value) for name, value in action.items() if is_number(value)}
        wire.write(json.dumps({"action": numbers}) + "\n")


def is_number(value: object) -> bool:
    """Return True for a number, also of NumPy or PyTorch; texts and images are left out."""
    try:
        float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)


def disconnect(device: Any) -> None:
    """Disconnect a device, which may be gone."""
    try:
        device.disconnect()
    except Exception as error:
        sys.stderr.write(f"disconnecting: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
