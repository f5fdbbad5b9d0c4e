"""Setup of the libraries that a run uses: one thread each, no output, and Nimbus's components registered."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen import registry
from nimbus.datagen.machine import silent_stderr

if TYPE_CHECKING:
    from nimbus.datagen.pipeline import Pipeline

_LIBRARY = "nimbus.datagen"
KERNELS = (
    "meshes.simplify",
    "navigate.links",
    "navigate.search",
    "navigate.sight",
    "navigate.triangle_tests",
    "render.baked_light.trace",
    "render.boxes",
    "render.covered_areas",
    "render.raytracer.culling",
    "render.raytracer.placing",
    "render.raytracer.raster",
    "render.raytracer.raytrace",
    "render.raytracer.still",
    "splats.blending",
    "splats.nearest",
    "splats.projection",
)
"""Modules of the library that have kernels."""
_USERS = {"navigate.": frozenset({"scenes"}), "splats.": frozenset({"splats", "splat_path"})}
"""Rooms whose kernels only certain components of a pipeline use; other runs need not compile them."""

_PICTURES = ("meshes.", "render.")
"""Rooms with kernels that only render; a run without cameras compiles none of them."""


def prepare_libraries(*, skill_folders: Iterable[Path] = (), device: str = "cpu") -> None:
    """Load the simulator, the planner and the renderer; importing this module does not load them.

    Args:
        skill_folders: Folders with the user's skills.
        device: Device of the renderer.

    Raises:
        InputError: A folder of skills does not exist, a file in it cannot be imported, the device does not exist, the
            folder of kernels is not writable, or other users can write there.
    """
    from nimbus.datagen.geometry.warp_library import start_warp
    from nimbus.datagen.render.stacked import find_device

    start_warp()
    with silent_stderr():
        find_device(device)
    from nimbus.datagen.tasks.plugins import discover, discover_components

    discover_components()
    discover(skill_folders)


def kernels_are_compiled(device: str, pipeline: Pipeline | None = None, *, has_cameras: bool = True) -> bool:
    """Return True if the renderer's kernels for a device are in Warp's cache; compiling takes about half a minute.

    Call :func:`prepare_libraries` first; otherwise no module with kernels is loaded.

    Args:
        device: Device of the kernels.
        pipeline: Pipeline that uses them; None for all kernels.
        has_cameras: True if images are rendered.
    """
    if not (modules := _kernel_modules(pipeline, has_cameras=has_cameras)):
        return True
    import warp

    block = 1 if warp.get_device(device).is_cpu else None
    names = (warp.get_module(name).get_module_identifier(block) for name in modules)
    return all(Path(str(warp.config.kernel_cache_dir), name).is_dir() for name in names)


def load_kernels(device: str, pipeline: Pipeline | None = None, *, has_cameras: bool = True) -> None:
    """Load the renderer's kernels; those that are not in Warp's cache are compiled.

    Call :func:`prepare_libraries` first; otherwise no module with kernels is loaded. Processes forked from this one
    inherit the kernels.

    Args:
        device: Device of the kernels.
        pipeline: Pipeline that uses them; None for all kernels.
        has_cameras: True if images are rendered.
    """
    if not (modules := _kernel_modules(pipeline, has_cameras=has_cameras)):
        return
    import warp

    for name in modules:
        warp.load_module(sys.modules[name], device=device)


def _kernel_modules(pipeline: Pipeline | None, *, has_cameras: bool = True) -> list[str]:
    """Return the imported modules with kernels: those of the library and of plug-ins.

    Modules that are not imported need no kernels. Kernels must be compiled beforehand, because a worker that compiles
    would look hung.
    """
    unused = _unused_rooms(pipeline, has_cameras=has_cameras)
    used = [name for name in KERNELS if not name.startswith(unused)]
    found = [f"{_LIBRARY}.{name}" for name in used if f"{_LIBRARY}.{name}" in sys.modules]
    return found + [name for name in _plug_ins() if name not in found]


def _unused_rooms(pipeline: Pipeline | None, *, has_cameras: bool) -> tuple[str, ...]:
    """Return the rooms whose kernels no component of a pipeline uses; the user's components may use any kernel."""
    if pipeline is None:
        return ()
    used = {item.name for item in pipeline.components}
    if any(not registry.lookup(item.kind, item.name).__module__.startswith(_LIBRARY) for item in pipeline.components):
        return ()
    return tuple(room for room, users in _USERS.items() if not users & used) + (() if has_cameras else _PICTURES)


def _plug_ins() -> list[str]:
    """Return the imported modules of the user that define kernels.

    A package that was installed is not the user's module. Its folder need not be named ``site-packages``:
    ``pip install --target`` installs into any folder, and that of Warp then holds the other packages, too.
    """
    if (warp := sys.modules.get("warp")) is None:
        return []

    installed = Path(str(warp.__file__)).parents[1]
    registered = (
        (name, sys.modules.get(name)) for name in list(importlib.import_module("warp._src.context").user_modules)
    )
    return sorted(
        name
        for name, module in registered
        if module is not None
        and (path := getattr(module, "__file__", None))
        and not Path(path).is_relative_to(installed)
        and not any(part in ("site-packages", "dist-packages") for part in Path(path).parts)
        and not name.startswith("nimbus.")
    )
