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

from nimbus.datagen.simulate.deferred_modules import defer_modules, defer_package

if TYPE_CHECKING:
    import newton
else:

    class _Newton:
        """Stands for the package until it is imported."""

        def __getattr__(self, name: str) -> Any:
            return getattr(_load(), name)

    newton = _Newton()

_UNUSED = ("controllers", "ik", "selection", "sensors", "viewer", "_src.solvers.coupled")
"""Modules that Newton imports and Nimbus does not use; they run when a name is read from them."""
_MUJOCO_WARP = {"OverflowType": "_src.types", "put_model": "_src.io", "put_data": "_src.io"}
"""Names of MuJoCo Warp that Newton's solver reads on the CPU, each with its submodule."""


@cache
def _load() -> Any:
    users_setting, collects = warp.config.enable_backward, gc.isenabled()
    warp.config.enable_backward = False
    gc.disable()  # searching for cycles would take a fourth of the import
    defer_modules("newton", _UNUSED)
    defer_package("mujoco_warp", _MUJOCO_WARP)
    try:
        import newton as library

        solver = library.solvers.SolverMuJoCo  # the only solver that Nimbus uses
        solver.import_mujoco()
        _follow_assets_only()
    finally:
        warp.config.enable_backward = users_setting
        if collects:
            gc.enable()
    logging.getLogger(solver.__module__).setLevel(logging.WARNING)  # the solver logs every file that it writes
    return library


def _follow_assets_only() -> None:
    """Let Newton open a file of a stage only if the attribute has the type of a file, and USD found the file.

    Newton also opens files and addresses that are plain texts, or that USD did not find. USD does not count these among
    the files of a stage, so neither the check of a foreign scene nor its hash covers them.
    """
    from newton._src.actuators import usd_parser
    from newton._src.usd import utils
    from pxr import Sdf

    def resolve_asset(asset: Any, *_: Any) -> str | None:
        return str(asset.resolvedPath) or None if isinstance(asset, Sdf.AssetPath) else None

    utils._resolve_asset_path = usd_parser._resolve_asset_path = resolve_asset
