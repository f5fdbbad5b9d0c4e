"""Script that opens stages in Isaac Sim one after the other and writes the numbers of their prims to a file.

Kit is imported first, as in :mod:`nimbus.runner.isaac.worker`, and the process exits without waiting for Kit to close.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from nimbus.datagen.errors import InputError
from nimbus.datagen.simulate.kit_app import open_stage, start
from nimbus.runner.system.output import write_error

_STEPS = 24
"""Number of physics steps at 240 Hz, which is a tenth of a second."""
_FASTEST = 1.0
"""Speed above which a body counts as thrown or falling [m/s], because colliders overlap or there is none below it."""


def main(words: list[str]) -> NoReturn:
    """Open the stages, write their numbers of prims, and exit.

    Args:
        words: Stages as JSON, the output file, the number of the GPU, further library folders as JSON;
            then Kit's own arguments.
    """
    stages, answer, gpu, libraries, *kits = words
    sys.argv[1:] = kits
    code = 0
    try:
        app = start(gpu=int(gpu))
        sys.path += [path for path in json.loads(libraries) if path not in sys.path and Path(path).is_dir()]
        with Path(answer).open("w") as file:
            for stage in json.loads(stages):
                row = {"name": stage["name"], **_try(stage["path"], has_bodies=bool(stage["bodies"]))}
                file.write(json.dumps(row) + "\n")
                file.flush()
        del app  # not closed, because closing may hang
    except InputError as error:
        write_error(f"{error}\n")
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def count_prims(stage: Any) -> dict[str, int]:
    """Count the visible meshes, the visible meshes with a material, the colliders and the rigid bodies of a stage."""
    from pxr import Usd, UsdGeom, UsdPhysics, UsdShade

    found = dict.fromkeys(("meshes", "painted", "colliders", "bodies"), 0)
    for prim in Usd.PrimRange(stage.GetPrimAtPath("/World"), Usd.TraverseInstanceProxies()):
        if prim.IsA(UsdGeom.Mesh) and UsdGeom.Imageable(prim).ComputePurpose() != UsdGeom.Tokens.guide:
            found["meshes"] += 1
            found["painted"] += bool(UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0])
        found["colliders"] += prim.HasAPI(UsdPhysics.CollisionAPI)
        found["bodies"] += prim.HasAPI(UsdPhysics.RigidBodyAPI)
    return found


def _try(path: str, *, has_bodies: bool) -> dict[str, Any]:
    import isaacsim.core.experimental.utils.app as app_utils
    import isaacsim.core.experimental.utils.stage as stage_utils

    app_utils.stop()
    open_stage(path)
    row: dict[str, Any] = {**count_prims(stage_utils.get_current_stage()), "steady": True}
    if has_bodies:
        row["steady"] = _is_steady(stage_utils.get_current_stage())
    return row


def _is_steady(stage: Any) -> bool:
    """Step the physics; return False if an object of the layout is thrown."""
    import isaacsim.core.experimental.utils.app as app_utils
    import numpy as np
    from isaacsim.core.experimental.prims import RigidPrim
    from isaacsim.core.simulation_manager import SimulationManager
    from pxr import UsdPhysics

    objects = [child for child in stage.GetPrimAtPath("/World/objects").GetChildren()]
    loose = [str(prim.GetPath()) for prim in objects if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    SimulationManager.setup_simulation(dt=1.0 / 240.0, device="cpu")
    bodies = RigidPrim(loose) if loose else None
    app_utils.play(commit=True)
    SimulationManager.initialize_physics()
    for _ in range(_STEPS):
        SimulationManager.step(steps=1)
    if bodies is None:
        return True
    linear, _ = bodies.get_velocities()
    speed = np.linalg.norm(np.asarray(linear.numpy(), dtype=float), axis=-1)
    return bool(np.isfinite(speed).all() and (speed < _FASTEST).all())


if __name__ == "__main__":
    main(sys.argv[1:])
