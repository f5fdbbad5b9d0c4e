"""Process of cuRobo: reports whether cuRobo can be used, then serves queries until the client disconnects."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from nimbus.datagen.plan.curobo import wire


def main(descriptor: int) -> None:
    """Serve one client.

    Args:
        descriptor: Socket to the client.
    """
    faulthandler.enable()
    faulthandler.register(signal.SIGTERM, chain=True)  # the stacks show where it was interrupted
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client ends this process by closing the socket
    with socket.socket(fileno=descriptor) as channel, contextlib.suppress(EOFError, ConnectionError):
        found = look_for_curobo()
        wire.send(channel, found)
        if found["state"] == "ready":
            _serve(channel)


def look_for_curobo() -> dict[str, Any]:
    """Report the state of this interpreter: ``state`` is ready, missing, version_1, no_torch or no_cuda."""
    if not _has("curobo.motion_planner"):
        old = _has("curobo.wrap.reacher.motion_gen")
        return {"state": "version_1" if old else "missing", "python": sys.executable}
    if not _has("torch"):
        return {"state": "no_torch", "python": sys.executable}
    import torch

    if not torch.cuda.is_available():
        return {"state": "no_cuda", "python": sys.executable, "torch": str(torch.__version__)}
    return {"state": "ready", "python": sys.executable, "device": str(torch.cuda.get_device_name(0))}


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _serve(channel: socket.socket) -> None:
    from nimbus.datagen.plan.curobo.adapter import CuroboAdapter

    with tempfile.TemporaryDirectory(prefix="nimbus-curobo-") as folder:
        adapter = CuroboAdapter(Path(folder), lambda what: wire.send(channel, {"notice": what}))
        try:
            while True:
                header, arrays = wire.receive(channel)
                try:
                    answer, found = adapter.plan(header, arrays)
                except Exception:  # the client gets the error and may send another query
                    answer, found = {"error": traceback.format_exc()}, {}
                wire.send(channel, answer, found)
        finally:
            adapter.close()
