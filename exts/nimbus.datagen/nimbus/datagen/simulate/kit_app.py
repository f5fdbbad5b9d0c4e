"""The one Kit in this process: started without a window for a worker, waited for until what it loads is loaded."""
# A type checker takes isaacsim for the file beside this one.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError

if TYPE_CHECKING:
    from isaacsim import SimulationApp

VERSION = "6"
"""The first number of the versions whose interface this is."""
EXPERIENCE = "isaacsim.exp.base.zero_delay.kit"
"""After it, one update shows the poses that were just written."""
_LONGEST_LOADING = 6000
"""Updates; a supervisor's deadline comes earlier."""


_held: list[Any] = []
"""What Kit forgets when nobody holds it."""


def start(*, gpu: int = 0, on_update: Callable[[], None] | None = None) -> SimulationApp:
    """Start Isaac Sim; nothing of it may be imported before. Whoever ends the process need not close it.

    Args:
        gpu: Number of the GPU, in the order of the bus.
        on_update: Called at each round of Kit's loop.

    Raises:
        InputError: Isaac Sim is not in this Python, or is of another version.
    """
    version = installed_version()
    if version and not version.startswith(f"{VERSION}."):
        what = f"this is Isaac Sim {version}, {VERSION}.0 is needed"
        raise InputError(what, where="--sim isaacsim", instead="see docs/isaacsim.md, or use --sim newton")
    try:
        from isaacsim import SimulationApp
    except EOFError:
        raise _unlicensed() from None
    except ImportError as error:
        instead = "run with the python of Isaac Sim 6.0, see docs/isaacsim.md; or use --sim newton"
        raise InputError(
            f"Isaac Sim is not in this Python ({error})", where="--sim isaacsim", instead=instead
        ) from None
    try:
        app = SimulationApp(
            {"headless": True, "multi_gpu": False, "active_gpu": gpu, "physics_gpu": gpu, "width": 640, "height": 480},
            experience=EXPERIENCE,
        )
    except EOFError:
        raise _unlicensed() from None
    if on_update is not None:
        _listen(on_update)
    return app


def _unlicensed() -> InputError:
    """It asks for its licence, and nobody is there to answer."""
    instead = "read it, then set OMNI_KIT_ACCEPT_EULA=YES (in a container ACCEPT_EULA=Y)"
    return InputError("the licence of Isaac Sim is not accepted", where="--sim isaacsim", instead=instead)


def _listen(on_update: Callable[[], None]) -> None:
    """Hear of each round of Kit's loop."""
    import carb.eventdispatcher
    import omni.kit.app

    subscription = carb.eventdispatcher.get_eventdispatcher().observe_event(
        event_name=omni.kit.app.GLOBAL_EVENT_UPDATE,
        on_event=lambda _: on_update(),
        observer_name="nimbus.datagen.worker",
    )
    _held.append(subscription)


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
