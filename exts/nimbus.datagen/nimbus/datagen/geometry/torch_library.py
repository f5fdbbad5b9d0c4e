"""PyTorch, imported while the root folder is the current folder; all modules import PyTorch from here.

The current folder may be a dataset of other people, and PyTorch would execute a library in it; see
:mod:`nimbus.datagen.files.root_imports`. Other packages that import PyTorch, such as ``safetensors.torch``, are
imported after this module.

PyTorch compiles into a private folder of the cache, or into that of ``TORCHINDUCTOR_CACHE_DIR``; see
:mod:`nimbus.datagen.geometry.torch_folder`.
"""

from __future__ import annotations

import os

from nimbus.datagen.files.root_imports import import_in_root
from nimbus.datagen.geometry.torch_folder import torch_settings

__all__ = ["torch"]

os.environ.update(torch_settings())
import_in_root()
import torch  # noqa: E402 # pyright: ignore[reportMissingImports]
