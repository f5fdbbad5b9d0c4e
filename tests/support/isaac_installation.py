"""A stand-in for an installation of Isaac Sim: ``python.sh``, a version, and faults."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from nimbus.datagen.simulate.kit_app import EXPERIENCE
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.isaac.find import find_instances
from nimbus.runner.system.gpus import Gpu
from tests.support import ROOT
from tests.support.cells import make_spec

SITE = Path(__file__).parent / "fake_isaacsim" / "site"
RTX = tuple(
    Gpu(number=number, uuid=f"GPU-0000000{number}", name="RTX PRO 6000", capability=(12, 0), free_bytes=80 << 30)
    for number in (2, 5)
)


PIPELINE = ROOT / "tests/support/isaac_pipelines/rtx.yaml"


def rtx_spec(tmp_path: Path, *, wrong: str = "", start: float = 0.0, frame: float = 0.0, **values: Any) -> CellSpec:
    """Return the spec of a run of the point robot whose renderers are instances of Isaac Sim.

    Args:
        tmp_path: Folder for all files.
        wrong: Faults of the installation, as for :func:`install`.
        start: Duration of a start [s].
        frame: Duration of a frame [s].
        values: Fields of the spec and of its resources.
    """
    environ = install(tmp_path / "isaac", wrong=wrong, start_seconds=start, frame_seconds=frame)
    instances = find_instances(environ=environ, gpus=RTX)
    spec = make_spec(
        tmp_path / "data",
        pipeline=str(PIPELINE),
        instances=replace(instances, folder=str(tmp_path / "roots")),
        **{"episodes": 3, "fixed_roles": True, **values},
    )
    return replace(spec, skills=(*spec.skills, str(PIPELINE.parent)))


def install(
    folder: Path,
    *,
    version: str = "6.0.1",
    wrong: str = "",
    python: str = "",
    start_seconds: float = 0.0,
    frame_seconds: float = 0.0,
) -> dict[str, str]:
    """Write the installation into a folder; return an environment in which it is found and its license is accepted.

    Args:
        folder: Folder of the installation.
        version: Version of the installation.
        wrong: Faults; see ``fake_isaacsim/site/sitecustomize.py``.
        python: Lines of the start script that replace those that start a Python.
        start_seconds: Duration of a start [s].
        frame_seconds: Duration of a frame [s].
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "VERSION").write_text(version + "\n")
    folder.joinpath("apps").mkdir(exist_ok=True)
    folder.joinpath("apps", EXPERIENCE).touch()
    path = os.pathsep.join(map(str, (SITE, ROOT)))
    lines = [f"export ISAAC_PATH={shlex.quote(str(folder))}", f"export PYTHONPATH={shlex.quote(path)}"]
    lines += [f"export EXP_PATH={shlex.quote(str(folder / 'apps'))}"]
    lines += [f"export FAKE_ISAACSIM_START={start_seconds} FAKE_ISAACSIM_FRAME={frame_seconds}"]
    lines += [f"export FAKE_ISAACSIM={shlex.quote(wrong)}", f'{shlex.quote(sys.executable)} "$@"']
    script = folder / "python.sh"
    script.write_text("\n".join(["#!/bin/sh", *(lines if not python else [python]), ""]))
    script.chmod(0o755)
    return {**os.environ, "NIMBUS_ISAACSIM": str(folder), "OMNI_KIT_ACCEPT_EULA": "YES"}
