"""PyTorch, imported while the root folder is the current folder; all modules import PyTorch from here.

The current folder may be a dataset of other people, and PyTorch would execute a library in it; see
:mod:`nimbus.datagen.files.torch_finder`. Other packages that import PyTorch, such as ``safetensors.torch``, are
imported after this module.
"""

from __future__ import annotations

from nimbus.datagen.files.torch_finder import find_torch_in_root

__all__ = ["torch"]

find_torch_in_root()
import torch  # noqa: E402 # pyright: ignore[reportMissingImports]
