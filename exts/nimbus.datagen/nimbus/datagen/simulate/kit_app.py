"""Kit application of a worker process, started without a window."""
# A type checker mistakes the package isaacsim for the module of that name in this folder.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.progress import tick

if TYPE_CHECKING:
    from isaacsim import SimulationApp

VERSION = "6"
"""Major version of Isaac Sim that this code is written for."""
EXPERIENCE = "isaacsim.exp.base.zero_delay.kit"
"""Experience file without frame delay: one update renders the poses that were just written."""
_LONGEST_LOADING = 6000
"""Largest number of updates while a stage loads; in a run, the supervisor's deadline comes earlier."""
_MANY_TILES = "--/rtx/viewTile/limit=1000000"
"""Setting of the largest number of cameras per tiled sensor (one per region); Kit reads it at startup only."""
_NATIVE = 4
"""Number of the antialiasing mode that renders every pixel; DLSS renders fewer, including those of masks and depth."""
_FORGETFUL = ("--/rtx/rtpt/cached/enabled=false", "--/rtx/rtpt/lightcache/cached/enabled=false")
"""Settings that disable temporal caches, because a camera jumps by K steps from batch to batch."""
_ALONE = (
    "--/app/hangDetector/enabled=false",  # it shows a dialog after two minutes without work, and waits for a user
    "--/rtx-transient/resourcemanager/enableTextureStreaming=false",  # the first image must have all of its textures
    "--/app/settings/persistent=false",  # settings of an earlier instance must not change this one
)
"""Settings for unattended operation: no prompts, no waiting, and no saved preferences."""


def start(*, gpu: int = 0, threads: int = 32) -> SimulationApp:
    """Start Isaac Sim, before any of its modules is imported; it need not be closed before the process ends.

    Args:
        gpu: Number of the GPU in bus order.
        threads: Largest number of CPU threads.

    Raises:
        InputError: Isaac Sim is not installed in this Python, has another version, or lacks the experience file.
    """
    version = installed_version()
    if version and not version.startswith(f"{VERSION}."):
        what = f"this is Isaac Sim {version}; version {VERSION}.0 is needed"
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
            {
                "headless": True,
                "multi_gpu": False,
                "active_gpu": gpu,
                "physics_gpu": gpu,
                "limit_cpu_threads": threads,
                "width": 640,
                "height": 480,
                "disable_viewport_updates": True,  # the viewport is not shown
                "anti_aliasing": _NATIVE,
                "extra_args": [_MANY_TILES, *_FORGETFUL, *_ALONE],
            },
            experience=str(experience()),
        )
    except EOFError:
        raise _unlicensed() from None
    _compute_on(gpu)
    return app


def experience() -> Path:
    """Return the full path of the experience file, because Kit does not search for a file name.

    Raises:
        InputError: The file is missing.
    """
    folder = os.environ.get("EXP_PATH", "")  # it is set when isaacsim is imported
    path = Path(folder, EXPERIENCE)
    if folder and path.is_file():
        return path
    what = f"{path} is missing" if folder else "the folder of experience files is unknown (EXP_PATH is not set)"
    raise InputError(what, where="--sim isaacsim", instead="install all of Isaac Sim 6.0, see docs/isaacsim.md")


def _compute_on(gpu: int) -> None:
    """Make the instance's GPU Warp's default device, to which images are copied, in place of the first GPU."""
    import warp

    if gpu < warp.get_cuda_device_count():
        warp.set_device(f"cuda:{gpu}")


def _unlicensed() -> InputError:
    """Return the error for a license that was not accepted."""
    instead = "read the license, then set OMNI_KIT_ACCEPT_EULA=YES (in a container ACCEPT_EULA=Y)"
    return InputError("the license of Isaac Sim is not accepted", where="--sim isaacsim", instead=instead)


@contextmanager
def progress_by_update() -> Iterator[None]:
    """Count each iteration of Kit's loop as progress in the block, which must not render.

    It is for the loading of a stage. Replicator's rendering step has inner loops that may run forever without an image.
    """
    import carb.eventdispatcher
    import omni.kit.app

    subscription = carb.eventdispatcher.get_eventdispatcher().observe_event(
        event_name=omni.kit.app.GLOBAL_EVENT_UPDATE,
        on_event=lambda _: tick(),
        observer_name="nimbus.datagen.worker",
    )
    try:
        yield
    finally:
        del subscription  # the subscription ends with its last reference


def _set_rendering() -> None:
    """Set the options for stacked rendering; this is done for each stage, because a stage may override them."""
    import carb.settings

    carb.settings.get_settings().set_int("/rtx/post/aa/op", _NATIVE)


def installed_version() -> str:
    """Return the version of Isaac Sim in this Python, from pip or a workstation build; empty if unknown."""
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
        InputError: The stage cannot be opened, or does not finish loading.
    """
    import isaacsim.core.experimental.utils.app as app_utils
    import isaacsim.core.experimental.utils.stage as stage_utils
    from isaacsim.core.simulation_manager import SimulationManager

    opened = stage_utils.open_stage(path)
    if isinstance(opened, tuple) and not opened[0]:
        raise InputError("Isaac Sim cannot open it", where=path, instead="check the file with usdchecker")
    _set_rendering()
    for _ in range(_LONGEST_LOADING):
        app_utils.update_app(steps=1)
        if not stage_utils.is_stage_loading() and not SimulationManager.assets_loading():
            return
    raise InputError(
        f"still loading textures and references after {_LONGEST_LOADING} updates",
        where=path,
        instead="try a smaller scene",
    )


def refresh_places() -> None:
    """Force Fabric to compute the pose of every prim of the stage.

    From the second stage of a process on, Isaac Sim 6.0.1 loads the local poses of a stage without updating world
    poses, so that prims stay at the origin until they are moved. Writing each local position forces the update.
    """
    import isaacsim.core.experimental.utils.backend as backend_utils
    import isaacsim.core.experimental.utils.stage as stage_utils
    import isaacsim.core.experimental.utils.xform as xform_utils
    from pxr import UsdGeom

    stage: Any = stage_utils.get_current_stage()
    places = {str(prim.GetPath()): _place(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Imageable)}
    with backend_utils.use_backend("usdrt"):
        for path, place in places.items():
            xform_utils.set_local_pose(path, translation=place)  # writing rotations as well would lose the scale


def _place(prim: Any) -> list[float]:
    """Return the position of a prim in its parent's frame, as authored in USD [m]."""
    from pxr import UsdGeom

    if not prim.IsA(UsdGeom.Xformable):
        return [0.0, 0.0, 0.0]
    matrix: Any = UsdGeom.Xformable(prim).GetLocalTransformation()
    return list(matrix.ExtractTranslation())
