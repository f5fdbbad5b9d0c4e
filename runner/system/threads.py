"""The libraries below a run: one thread each, quiet, with the components that come with Nimbus registered."""

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
"""Components of pipelines that alone use the kernels of a room: other runs need not compile them."""

_PICTURES = ("meshes.", "render.")
"""Rooms whose kernels draw pictures, and nothing else: a run without cameras compiles none of them."""


def prepare_libraries(*, skill_folders: Iterable[Path] = (), device: str = "cpu") -> None:
    """Load simulator, planner and renderer; importing this module loads none of them.

    Args:
        skill_folders: Folders with further skills.
        device: Where pictures are to be rendered.

    Raises:
        InputError: A folder of skills does not exist, or a file in it cannot be imported; there is no such device; the
            cache folder cannot be written.
    """
    import logging

    import mujoco
    import warp

    from nimbus.datagen.files.cache import cache_folder
    from nimbus.datagen.render.stacked import find_device

    # Left alone, it writes a file where the user happens to be; an unstable attempt has a reason of its own.
    mujoco.set_mju_user_warning(logging.getLogger("nimbus.mujoco").debug)
    warp.config.log_level = warp.LOG_ERROR  # it reports every kernel that it loads
    if warp.config.kernel_cache_dir is None:  # not yet initialized
        warp.config.kernel_cache_dir = str(cache_folder("warp"))
    with silent_stderr():  # and, past its own log, every machine without a GPU
        warp.init()
        find_device(device)
    from nimbus.datagen.tasks.plugins import discover, discover_components

    discover_components()
    discover(skill_folders)


def kernels_are_compiled(device: str, pipeline: Pipeline | None = None, *, has_cameras: bool = True) -> bool:
    """Return True if the renderer's kernels for a device are in Warp's cache; compiling takes about half a minute.

    Call :func:`prepare_libraries` before; without it, there is nothing to compile.

    Args:
        device: Device of the kernels.
        pipeline: Pipeline that uses them; None for all kernels.
        has_cameras: Pictures are rendered.
    """
    if not (modules := _kernel_modules(pipeline, has_cameras=has_cameras)):
        return True
    import warp

    block = 1 if warp.get_device(device).is_cpu else None
    names = (warp.get_module(name).get_module_identifier(block) for name in modules)
    return all(Path(str(warp.config.kernel_cache_dir), name).is_dir() for name in names)


def load_kernels(device: str, pipeline: Pipeline | None = None, *, has_cameras: bool = True) -> None:
    """Load the renderer's kernels, and compile them when they are not in Warp's cache.

    Call :func:`prepare_libraries` before; without it, there is nothing to load. Processes forked from this one have
    them.

    Args:
        device: Device of the kernels.
        pipeline: Pipeline that uses them; None for all kernels.
        has_cameras: Pictures are rendered.
    """
    if not (modules := _kernel_modules(pipeline, has_cameras=has_cameras)):
        return
    import warp

    for name in modules:
        warp.load_module(sys.modules[name], device=device)


def _kernel_modules(pipeline: Pipeline | None, *, has_cameras: bool = True) -> list[str]:
    """Modules with kernels that are imported: those of the library, and those of plug-ins beside it.

    A component that imports one of them alone needs no other, and what it compiles at its first use would look like a
    worker that hangs.
    """
    unused = _unused_rooms(pipeline, has_cameras=has_cameras)
    used = [name for name in KERNELS if not name.startswith(unused)]
    found = [f"{_LIBRARY}.{name}" for name in used if f"{_LIBRARY}.{name}" in sys.modules]
    return found + [name for name in _plug_ins() if name not in found]


def _unused_rooms(pipeline: Pipeline | None, *, has_cameras: bool) -> tuple[str, ...]:
    """Return the rooms whose kernels no component of a pipeline uses; a component of the user may use any."""
    if pipeline is None:
        return ()
    used = {item.name for item in pipeline.components}
    if any(not registry.lookup(item.kind, item.name).__module__.startswith(_LIBRARY) for item in pipeline.components):
        return ()
    return tuple(room for room, users in _USERS.items() if not users & used) + (() if has_cameras else _PICTURES)


def _plug_ins() -> list[str]:
    """Imported modules of the user that have kernels of their own."""
    if "warp" not in sys.modules:
        return []

    registered = (
        (name, sys.modules.get(name)) for name in list(importlib.import_module("warp._src.context").user_modules)
    )
    return sorted(
        name
        for name, module in registered
        if module is not None
        and (path := getattr(module, "__file__", None))
        and not any(part in ("site-packages", "dist-packages") for part in Path(path).parts)
        and not name.startswith("nimbus.")
    )
