"""Turns a Python into a stand-in for Isaac Sim's, made from the contract.

``FAKE_ISAACSIM`` configures its faults, and their numbers: ``exit at start x1; hang in a frame x2``.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_FOLDER = Path(os.environ["ISAAC_PATH"])
_WRONG = [text.strip().partition(" x") for text in os.environ.get("FAKE_ISAACSIM", "").split(";")]
_TIMES = {mode: int(times or 1000) for mode, _, times in _WRONG}
_BLOCKED = ("newton", "mujoco", "ompl", "mink", "toppra", "coacd", "trimesh", "torch")
"""Packages that must not be loaded together with Isaac Sim's own."""
_OPEN = "isaacsim.core.experimental.utils.impl.stage:open_stage"
_OPENS = "nimbus.runner.isaac.open_stages"
_OF_RENDERING = (".app:update_app", ".stage:is_stage_loading")
"""Functions that the stand-in for rendering keeps even if plans are executed."""


class _Blocker:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.split(".")[0] in _BLOCKED:
            raise ImportError(f"{name} is not to be imported in Isaac Sim")


def _plans() -> bool:
    """Return True if this instance also executes plans, with MuJoCo as physics."""
    physics = ('"physics": "isaacsim"', '"physics":"isaacsim"', _OPENS)
    return any(text in word for word in sys.orig_argv for text in physics)


def _due(mode: str) -> bool:
    """Return True if this fault must occur now; files count the earlier occurrences."""
    for number in range(_TIMES.get(mode, 0)):
        try:
            (_FOLDER / f"{mode.replace(' ', '_')}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return True
    return False


def _hang() -> None:
    while True:
        time.sleep(1000)


def _install() -> None:
    from tools.contract.kit_behaviour import Kit
    from tools.contract.names import Contract
    from tools.contract.rtx_behaviour import IsaacSim
    from tools.contract.standin import StandIn

    standin = StandIn(Contract.load(), {})
    kit, isaac = Kit(), IsaacSim()
    played = kit.behaviour(standin.make) | isaac.behaviour()
    if _plans():
        from tools.contract.mujoco_physics import MujocoPhysics

        physics, show = MujocoPhysics(), played[_OPEN]
        played |= {name: play for name, play in physics.behaviour().items() if not name.endswith(_OF_RENDERING)}
        play = played[_OPEN]
        played[_OPEN] = lambda path: (show(path), play(path))[1]
    _frames: list[int] = []
    _spins: list[int] = []
    update = "omni.kit.app:GLOBAL_EVENT_UPDATE"
    step = played["omni.replicator.core.orchestrator:step"]

    def start(_: Any, config: Any, *, experience: str) -> None:
        assert Path(experience).is_file(), "a bare name is not found"
        assert config["limit_cpu_threads"] >= 1
        assert config["anti_aliasing"] == 4, "DLSS draws masks and depth with fewer pixels than the images have"
        assert config["disable_viewport_updates"], "nobody looks at it"
        assert config["extra_args"] == [
            "--/rtx/viewTile/limit=1000000",
            "--/rtx/rtpt/cached/enabled=false",
            "--/rtx/rtpt/lightcache/cached/enabled=false",
            "--/app/hangDetector/enabled=false",
            "--/rtx-transient/resourcemanager/enableTextureStreaming=false",
            "--/app/settings/persistent=false",
        ], "K may be larger than Kit's default, nothing of the last batch may be remembered, nobody answers a question"
        note(f"start {config['active_gpu']} {os.environ['NIMBUS_GPU']} {' '.join(sys.argv[1:])}")
        time.sleep(float(os.environ.get("FAKE_ISAACSIM_START", "0")))
        if _due("licence prompt"):
            input("Do you accept the licence? (Yes/No): ")
        if _due("exit at start"):
            sys.stderr.write("GPU crash\n")
            os._exit(7)
        if _due("hang at start"):
            _hang()
        atexit.register(_hang)  # waiting for Kit to close would never end
        kit.dispatch(update)
        note("started")

    def rendered(*args: Any, **options: Any) -> Any:
        _frames.append(1)
        time.sleep(float(os.environ.get("FAKE_ISAACSIM_FRAME", "0")))
        if len(_frames) == 1:
            return step(*args, **options)  # the first may take minutes, so faults occur later
        if _due("hang in a frame"):
            _hang()
        while _spins or _due("spin in a frame"):
            _spins.append(1)
            kit.dispatch(update)  # like a replicator that never gets an image
            time.sleep(0.01)
        if _due("out of memory in a frame"):
            raise RuntimeError("Warp CUDA error 2: out of memory (in function wp_alloc_device_async)")
        if _due("die in a frame"):
            os.kill(os.getpid(), signal.SIGSEGV)
        kit.dispatch(update)
        return step(*args, **options)

    def note(text: str) -> None:
        with (_FOLDER / "log.txt").open("a") as log:
            log.write(f"{time.monotonic():.3f} {text}\n")

    played["isaacsim.simulation_app.simulation_app:SimulationApp.__init__"] = start
    played["omni.replicator.core.orchestrator:step"] = rendered
    standin.behaviour.update(played)
    sys.meta_path.insert(0, standin)
    if not _plans():
        sys.meta_path.insert(0, _Blocker())  # pyright: ignore[reportArgumentType]


if {"nimbus.runner.isaac.worker", _OPENS} & set(sys.orig_argv):
    _install()
