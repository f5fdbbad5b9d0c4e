"""The one Kit in this process: started without a window for a worker, waited for until what it loads is loaded."""
# A type checker takes isaacsim for the file beside this one.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError

if TYPE_CHECKING:
    from isaacsim import SimulationApp

VERSION = "6"
"""The first number of the versions whose interface this is."""
EXPERIENCE = "isaacsim.exp.base.zero_delay.kit"
"""After it, one update shows the poses that were just written."""
_LONGEST_LOADING = 6000
"""Updates; a supervisor's deadline comes earlier."""


def start(*, gpu: int = 0) -> SimulationApp:
    """Start Isaac Sim; nothing of it may be imported before. Whoever ends the process need not close it.

    Args:
        gpu: Number of the GPU among those that the process sees.

    Raises:
        InputError: Isaac Sim is not in this Python, or is of another version.
    """
    version = installed_version()
    if version and not version.startswith(f"{VERSION}."):
        what = f"this is Isaac Sim {version}, {VERSION}.0 is needed"
        raise InputError(what, where="--sim isaacsim", instead="see docs/isaacsim.md, or use --sim newton")
    try:
        from isaacsim import SimulationApp
    except ImportError as error:
        instead = "run with the python of Isaac Sim 6.0, see docs/isaacsim.md; or use --sim newton"
        raise InputError(
            f"Isaac Sim is not in this Python ({error})", where="--sim isaacsim", instead=instead
        ) from None
    return SimulationApp(
        {"headless": True, "multi_gpu": False, "active_gpu": gpu, "physics_gpu": gpu, "width": 640, "height": 480},
        experience=EXPERIENCE,
    )


def installed_version() -> str:
    """The version of Isaac Sim around this Python, by pip or as a workstation build; empty when not known."""
    try:
        return importlib.metadata.version("isaacsim")
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return Path(os.environ.get("ISAAC_PATH", ""), "VERSION").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def open_stage(path: str) -> None:
    """Open a stage, and update until all of it is loaded.

    Raises:
        InputError: It cannot be opened, or does not end to load.
    """
    import isaacsim.core.experimental.utils.app as app_utils
    import isaacsim.core.experimental.utils.stage as stage_utils
    from isaacsim.core.simulation_manager import SimulationManager

    opened = stage_utils.open_stage(path)
    if isinstance(opened, tuple) and not opened[0]:
        raise InputError("Isaac Sim cannot open it", where=path)
    for _ in range(_LONGEST_LOADING):
        app_utils.update_app(steps=1)
        if not stage_utils.is_stage_loading() and not SimulationManager.assets_loading():
            return
    raise InputError("its textures and references are still being loaded", where=path, instead="try a smaller scene")
