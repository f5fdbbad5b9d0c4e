"""Newton, imported when it is first used, with kernels that compute no gradients.

Its import takes half of the time in which a process starts, and runs without physics need none of it. Newton creates
its kernels when it is imported, and those of a solver when the solver is first named, with Warp's setting of that
moment; without gradients they compile in a third of the time. A user's kernels keep the user's setting.
"""

from __future__ import annotations

import gc
import logging
from functools import cache
from typing import TYPE_CHECKING, Any

import warp

if TYPE_CHECKING:
    import newton
else:

    class _Newton:
        """Stands for the package until it is imported."""

        def __getattr__(self, name: str) -> Any:
            return getattr(_load(), name)

    newton = _Newton()


@cache
def _load() -> Any:
    users_setting, collects = warp.config.enable_backward, gc.isenabled()
    warp.config.enable_backward = False
    gc.disable()  # searching for cycles would take a fourth of the import
    try:
        import newton as library

        solver = library.solvers.SolverMuJoCo  # the only solver that Nimbus uses
    finally:
        warp.config.enable_backward = users_setting
        if collects:
            gc.enable()
    logging.getLogger(solver.__module__).setLevel(logging.WARNING)  # the solver logs every file that it writes
    return library
