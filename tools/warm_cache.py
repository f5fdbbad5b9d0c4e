"""Compiles kernels once, before several processes need them: ``python -m tools.warm_cache``.

Warp has no lock: processes that start together with an empty cache compile the same kernels, each for half a minute.
A second call waits until the first one ends.
"""

from __future__ import annotations

import fcntl
import importlib

from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.runner.system.threads import KERNELS, load_kernels, prepare_libraries


def compile_kernels() -> None:
    """Load all modules with kernels, a scene and its robot, so that all kernels are in Warp's cache.

    Call :func:`~nimbus.runner.system.threads.prepare_libraries` first.
    """
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.tasks.task import load_task

    for name in KERNELS:
        importlib.import_module(f"nimbus.datagen.{name}")
    load_kernels("cpu")
    load_assets(load_task(scene_folder("tasks") / "open_drawer.yaml"))


def main() -> None:
    """Compile all kernels."""
    with (cache_folder("warp") / "compiling.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prepare_libraries()
        compile_kernels()


if __name__ == "__main__":
    main()
