"""PyTorch, imported while the root folder is the current folder; all modules import PyTorch from here.

The current folder may be a dataset of other people, and PyTorch would execute a library in it; see
:mod:`nimbus.datagen.files.root_imports`. Other packages that import PyTorch, such as ``safetensors.torch``, are
imported after this module.
"""

from __future__ import annotations

from nimbus.datagen.files.root_imports import import_in_root

__all__ = ["torch"]

import_in_root()
import torch  # noqa: E402 # pyright: ignore[reportMissingImports]
