"""Steps per second of MuJoCo-Warp and of MuJoCo's own engine on the CPU, for 1, 64 and 1,024 copies of one scene.

The scene, an arm that swings through objects on a table, is defined here; MuJoCo-Warp simulates no episode of Nimbus.
The positions after some steps are compared.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.result import MissingError, PartResult, Row
from benchmarks.gpu.timing import repeat
from nimbus.datagen.errors import InputError

_ARM = "".join(
    f'<body name="link{place}" pos="0 0 {0.12 if place else 0.1}"><joint name="j{place}" axis="{axis}"/>'
    f'<geom type="capsule" fromto="0 0 0 0 0 0.12" size="0.04" mass="1.5"/>'
    for place, axis in enumerate(("0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1"))
)
_OBJECTS = "".join(
    f'<body name="item{place}" pos="{0.35 + 0.1 * (place % 3)} {0.16 * (place // 3) - 0.16} 0.05"><freejoint/>'
    f'<geom type="{kind}" size="0.03 {size}" mass="0.1"/></body>'
    for place, (kind, size) in enumerate([("box", "0.03 0.04"), ("cylinder", "0.05"), ("box", "0.02 0.02")] * 3)
)
SCENE = f"""
<mujoco>
  <option timestep="0.002" cone="elliptic" impratio="10" integrator="implicitfast"/>
  <default><joint damping="4" armature="0.1"/><position kp="300" kv="30"/><geom friction="0.8"/></default>
  <worldbody>
    <geom type="box" size="0.6 0.6 0.02" pos="0.4 0 -0.02"/>
    {_ARM}{"</body>" * 7}
    {_OBJECTS}
  </worldbody>
  <actuator>{"".join(f'<position joint="j{place}"/>' for place in range(7))}</actuator>
</mujoco>
"""
_COMMANDS = (0.4, 0.9, 0.2, 0.8, 0.1, 0.6, 0.0)
"""Commanded joint positions [rad]; they make the arm swing down to the objects."""
_COPIES, _CPU_COPIES = (1, 64, 1024), (1, 8)
_COMPARED = 50
"""Number of steps after which positions are compared: 0.1 s, in which objects settle on the table."""
CLOSE = 1e-3
"""Largest difference at that time [m, rad]; MuJoCo-Warp computes in float32."""


def measure(device: str, *, is_asked: bool = True) -> PartResult:
    """Step the scene with both engines.

    Args:
        device: Device of MuJoCo-Warp; ``cuda`` or ``cpu``.
        is_asked: True to compile MuJoCo-Warp also for a CPU.

    Raises:
        MissingError: MuJoCo is not installed.
    """
    mujoco = need("mujoco")
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = _start(mujoco, model)
    rows: list[Row] = [{"engine": "mujoco, one core", "copies": 1} | _rate(lambda: mujoco.mj_step(model, data), 1, 100)]
    if device == "cpu" and not is_asked:
        reason = (
            "MuJoCo-Warp: compiling it for a CPU takes over a minute; ask for it: benchmarks.gpu --device cpu physics"
        )
        return PartResult(rows=tuple(rows), skipped=reason)
    try:
        engine, warp = need("mujoco_warp"), need("warp")
        from nimbus.datagen.render.stacked import find_device  # needs Warp

        find_device(device)
    except (MissingError, InputError) as error:
        return PartResult(rows=tuple(rows), skipped=str(error))
    problems = []
    with warp.ScopedDevice(device):
        for copies in _CPU_COPIES if device == "cpu" else _COPIES:
            row, apart = _measure_copies(mujoco, engine, warp, model, copies)
            rows.append({"engine": f"mujoco_warp, {device}", "copies": copies} | row)
            if not apart <= CLOSE:
                problems.append(
                    f"{copies} copies: {apart:.2e} from MuJoCo after {_COMPARED} steps, at most {CLOSE:.0e}"
                )
    return PartResult(rows=tuple(rows), problems=tuple(problems))


def need(name: str) -> Any:
    """Import a package that this machine may lack.

    Raises:
        MissingError: The package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingError(f"no package {name}") from None


def _measure_copies(mujoco: Any, engine: Any, warp: Any, model: Any, copies: int) -> tuple[Row, float]:
    """Return the rate, and the largest distance of any copy from MuJoCo [m, rad]."""
    data = _start(mujoco, model)
    start = time.perf_counter()
    device_model = engine.put_model(model)
    device_data = engine.put_data(model, data, nworld=copies, nconmax=64, njmax=256)
    engine.step(device_model, device_data)
    warp.synchronize()
    compiled = time.perf_counter() - start

    def step() -> None:
        engine.step(device_model, device_data)

    if warp.get_device().is_cuda:
        with warp.ScopedCapture() as capture:
            step()
        # Capturing does not execute anything.
        step = _launcher(warp, capture.graph)
    for _ in range(_COMPARED - 1):
        step()
    for _ in range(_COMPARED):
        mujoco.mj_step(model, data)
    apart = float(np.abs(device_data.qpos.numpy() - data.qpos).max())
    row = _rate(step, copies, 20, wait=warp.synchronize)
    return row | {"first_step_s": compiled, "apart": apart}, apart


def _launcher(warp: Any, graph: Any) -> Callable[[], None]:
    return lambda: warp.capture_launch(graph)


def _rate(step: Callable[[], None], copies: int, batch: int, *, wait: Callable[[], None] = lambda: None) -> Row:
    """Return the steps per second of all copies together, in batches after which the device is synchronized."""
    wait()

    def some() -> None:
        for _ in range(batch):
            step()
        wait()

    timing = repeat(some)
    steps = timing.calls * batch
    return {"steps": steps, "steps_per_s": steps * copies / timing.wall}


def _start(mujoco: Any, model: Any) -> Any:
    data = mujoco.MjData(model)
    data.ctrl[:] = _COMMANDS
    mujoco.mj_forward(model, data)
    return data
