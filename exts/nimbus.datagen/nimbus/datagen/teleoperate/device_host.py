"""Process of a teleoperation device. It runs in another interpreter, and imports only the device and Python's library.

It creates an object with the interface of LeRobot's teleoperators (``config_class``, ``connect``, ``get_action``,
``disconnect``), and writes each action as one line of JSON, ``{"action": {"shoulder_pan.pos": 12.5, ...}}``. After an
error it writes ``{"error": "..."}`` and exits. It also exits when its standard input is closed.
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
    """Serve the device that the first line of standard input describes."""
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of the device's packages goes to the log instead of the wire
    spec = json.loads(sys.stdin.readline())
    # The folder of this file is removed, because its modules could hide modules of the device's packages.
    sys.path[:1] = spec["path"]
    device = None
    try:
        device = make_device(spec["class"], spec["config"])
        device.connect()
        serve(device, float(spec["rate"]), wire)
    except (BrokenPipeError, KeyboardInterrupt):
        return 0
    except BaseException as error:  # any error of a driver is reported, and the process exits
        text = str(error).strip() or type(error).__name__
        wire.write(json.dumps({"error": f"{type(error).__name__}: {text.splitlines()[0]}"[:300]}) + "\n")
        return 1
    finally:
        if device is not None:
            disconnect(device)
    return 0


def make_device(path: str, config: dict[str, Any]) -> Any:
    """Create an object of a class ``package.module:Class`` from the entries of its configuration."""
    module, _, name = path.partition(":")
    kind = getattr(importlib.import_module(module), name)
    return kind(kind.config_class(**config))


def serve(device: Any, rate: float, wire: Any) -> None:
    """Write the actions of the device at a rate [Hz] until standard input is closed."""
    due = time.monotonic()
    while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
        due = max(due + 1.0 / rate, time.monotonic())
        action = device.get_action()
        numbers = {str(name): float(value) for name, value in action.items() if is_number(value)}
        wire.write(json.dumps({"action": numbers}) + "\n")


def is_number(value: object) -> bool:
    """Return True for numbers, including those of NumPy and PyTorch, and False for texts and images."""
    try:
        float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)


def disconnect(device: Any) -> None:
    """Disconnect a device, even if it is already lost."""
    try:
        device.disconnect()
    except Exception as error:
        sys.stderr.write(f"disconnecting: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
