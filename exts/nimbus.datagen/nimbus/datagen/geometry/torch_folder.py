"""Settings with which PyTorch keeps compiled code in a private folder; they are set before it is imported.

By default, PyTorch makes a folder with a known name in ``/tmp`` as soon as an optimizer is made. Another user can make
it first.
"""

from __future__ import annotations

import os

from nimbus.datagen.files.cache import COMPILED, code_folder

_HEADERS = "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"
"""Variable for precompiled headers, which always lie in ``/tmp``; compiled code would contain what they define."""


def torch_settings() -> dict[str, str]:
    """Return environment variables for PyTorch; a setting of the user for precompiled headers is kept.

    Raises:
        InputError: ``TORCHINDUCTOR_CACHE_DIR`` is a relative path, it cannot be used, or others can write there.
    """
    return {COMPILED["torch"]: str(code_folder("torch")), _HEADERS: os.environ.get(_HEADERS, "0")}
