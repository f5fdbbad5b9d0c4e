"""An interpreter with the stand-in for cuRobo: ``curobo_python.py -c CODE ARGUMENTS``."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.contract.curobo_behaviour import Curobo  # noqa: E402
from tools.contract.names import Contract  # noqa: E402
from tools.contract.standin import StandIn  # noqa: E402


def standin() -> StandIn:
    """Return the stand-in with its behavior."""
    contract = Contract.load()
    found = StandIn(contract, {})

    def make(key: str) -> Any:
        return object.__new__(found.kind(key))

    found.behaviour.update(Curobo(contract, make).behaviour())
    return found


def install() -> None:
    """Make cuRobo and a PyTorch with one device importable."""
    sys.meta_path.insert(0, standin())
    torch = ModuleType("torch")
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    device = SimpleNamespace(is_available=lambda: True, get_device_name=lambda index: "a stand-in")
    torch.__dict__.update(cuda=device, __version__="0")
    sys.modules["torch"] = torch


if __name__ == "__main__":
    install()
    code = sys.argv[2]
    sys.argv = ["-c", *sys.argv[3:]]
    exec(compile(code, "<command>", "exec"))
