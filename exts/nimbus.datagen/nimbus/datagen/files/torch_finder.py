"""Finder that lets PyTorch be imported while the root folder is the current folder.

PyTorch for Linux installs cuSPARSELt, whose search path of libraries has an empty entry. The loader takes this entry
for the current folder, which may be a dataset of others: without NVIDIA's driver, an import of PyTorch would execute a
file ``libcuda.so.1`` there.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def find_torch_in_root() -> None:
    """Let every later first import of PyTorch in this process happen in the root folder, whoever imports it.

    The current folder is one of the whole process: during that import, other threads should open no relative paths.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finder of the package ``torch`` alone; others find its submodules, which load later libraries by full paths."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the package with a loader that executes it in the root folder; None for other modules."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == "torch" else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_in_root(module: ModuleType) -> None:
                with contextlib.chdir(os.sep):
                    execute(module)

            spec.loader.exec_module = execute_in_root
        return spec
