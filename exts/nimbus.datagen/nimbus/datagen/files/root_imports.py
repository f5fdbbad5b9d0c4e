"""Finder that lets packages be imported while the root folder is the current folder.

These packages read the current folder while they are imported, which may be a dataset of others:

- PyTorch for Linux installs cuSPARSELt, whose search path of libraries has an empty entry. The loader takes this entry
  for the current folder: without NVIDIA's driver, an import would execute a file ``libcuda.so.1`` there.
- Matplotlib reads ``matplotlibrc`` of the current folder, and versions before 3.11 evaluate an expression in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGES = ("matplotlib", "torch")


def import_in_root() -> None:
    """Let every later first import of these packages in this process happen in the root folder.

    All threads share the current folder: during such an import, other threads should open no relative paths.
    """
    if not any(isinstance(finder, _RootFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RootFinder())


class _RootFinder(MetaPathFinder):
    """Finder of these packages, but not of their submodules, which read no relative paths."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a package with a loader that executes it in the root folder; None for other modules."""
        spec = self._find(fullname, path, target) if fullname in _PACKAGES else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_in_root(module: ModuleType) -> None:
                with _in_root():
                    execute(module)

            spec.loader.exec_module = execute_in_root
        return spec

    def _find(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
                return spec
        return None


@contextmanager
def _in_root() -> Iterator[None]:
    try:
        before = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # the current folder was removed
        before = None
    os.chdir(os.sep)
    try:
        yield
    finally:
        if before is not None:
            os.fchdir(before)
            os.close(before)
