"""Cloth and cable in the CPU engine: cost, and ability of two fingers to pinch, fold and release them.

Run it as ``python benchmarks/deformables.py [VARIANT ...]``; without a name, all variants run in order. Two fingers as
wide as a Panda's pads move on slides. They press on a corner of a flat cloth of 15 x 15 vertices, squeeze it between
them, carry it across the cloth to the opposite corner, open and move away. They also lift the end of a cable of 30
segments. Times are CPU seconds of one core per simulated second, over the whole motion. A cloth is *held* when its
corner is within 4 cm of the hand at the end of the arc, and *folded* when it lies on the opposite corner two seconds
later.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

COUNT, SPACING = 15, 0.02
"""Number of vertices along each side of the cloth, and their distance [m]."""
SEGMENTS, CABLE_LENGTH = 30, 0.6
"""Number of segments of the cable, and its length [m]."""
MOST_CPU = 2.0
"""Largest acceptable cost [CPU-s per simulated second]."""
_ON_CLOTH, _ON_TABLE, _ON_HAND = 1, 2, 4
_OPEN, _INSET = 0.016, 0.025
"""Distance of each pad from the middle before closing, and distance of the hand from the corner [m]."""
_UNSTABLE = tuple(int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC"))


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Method to simulate a cloth."""

    stretch: str = "edges"
    """``edges``: equality constraints of edges; ``elastic``: two-dimensional elasticity."""
    integrator: str = "discrete"
    solver: str = "CG"
    timestep: float = 1 / 600
    """[s]"""
    table: str = "vertices"
    """Contact with the table: ``vertices`` as small spheres, ``plane``, or ``faces`` with a box."""
    layers: str = "vertices"
    """Contact of the cloth with itself: ``none``, ``faces`` with faces, or ``vertices`` with faces."""
    cone: str = "pyramidal"
    impratio: float = 1.0
    condim: int = 3
    low: float = 0.002
    """Height of the finger tips above the table while they close [m]; the cloth is 4 mm thick."""
    is_passive: bool = False
    """Contacts of the cloth as springs without friction, which MuJoCo calls passive."""


VARIANTS = {
    "chosen": Variant(),
    "2400 Hz": Variant(timestep=1 / 2400),
    "1200 Hz": Variant(timestep=1 / 1200),
    "500 Hz": Variant(timestep=1 / 500),
    "elastic": Variant(stretch="elastic"),
    "Newton": Variant(solver="Newton"),
    "implicitfast": Variant(integrator="implicitfast"),
    "elliptic": Variant(cone="elliptic", impratio=50.0, condim=6),
    "condim 4": Variant(condim=4),
    "no layers": Variant(layers="none"),
    "layers of faces": Variant(layers="faces"),
    "table of faces": Variant(table="faces"),
    "plane": Variant(table="plane", layers="none"),
    "passive": Variant(is_passive=True, table="plane", layers="faces"),
    "tips at 3 mm": Variant(low=0.003),
    "tips at 1 mm": Variant(low=0.001),
}


@dataclass(frozen=True, kw_only=True)
class Result:
    """Measurement of one variant."""

    cpu: float
    """CPU seconds per simulated second."""
    contacts: float
    """Mean number of contacts."""
    is_held: bool
    is_folded: bool
    note: str = ""

    @property
    def passes(self) -> bool:
        """True if it is fast enough and works."""
        return self.cpu <= MOST_CPU and self.is_held and self.is_folded


def build(variant: Variant) -> mujoco.MjModel:
    """Make a table, a cloth and two fingers."""
    radius = 0.002
    stretch = '<edge equality="true" damping="0.001"/>'
    if variant.stretch == "elastic":
        stretch = '<elasticity young="2e4" poisson="0.2" thickness="1e-3" elastic2d="both" damping="1e-4"/>'
    near = _ON_HAND | (0 if variant.table == "vertices" else _ON_TABLE)
    own = _ON_CLOTH if variant.layers != "none" else 0
    selfcollide = "auto" if variant.layers == "faces" else "none"
    plane = variant.table == "plane"
    spec = mujoco.MjSpec.from_string(f"""<mujoco>
  <option timestep="{variant.timestep}" integrator="{variant.integrator}" solver="{variant.solver}" iterations="20"
      ls_iterations="20" tolerance="1e-6" cone="{variant.cone}" impratio="{variant.impratio}"/>
  <size memory="200M"/>
  <default><geom solref="0.004 1" solimp="0.95 0.99 0.001"/></default>
  <worldbody>
    <geom type="{"plane" if plane else "box"}" size="0.4 0.4 0.02" pos="0 0 {0.0 if plane else -0.02}" friction="0.5"
        contype="{_ON_TABLE}" conaffinity="{_ON_TABLE}"/>
    {_hand(variant)}
    <flexcomp name="cloth" type="grid" dim="2" count="{COUNT} {COUNT} 1" spacing="{SPACING} {SPACING} {SPACING}"
        pos="0 0 {radius}" radius="{radius}" mass="0.03">
      {stretch}
      <contact selfcollide="{selfcollide}" condim="{variant.condim}" friction="0.6" solref="0.004 1"
          solimp="0.95 0.99 0.001" contype="{near | (own if variant.layers == "faces" else 0)}"
          conaffinity="{own}" passive="{"true" if variant.is_passive else "false"}"/>
    </flexcomp>
  </worldbody>
  {_actuators()}
</mujoco>""")
    touched = (_ON_TABLE if variant.table == "vertices" else 0) | (_ON_CLOTH if variant.layers == "vertices" else 0)
    for body in spec.bodies if touched else ():
        if body.name.startswith("cloth_"):
            body.add_geom(
                size=[radius, 0, 0], mass=0, contype=touched, conaffinity=0, condim=3, friction=[0.6, 5e-3, 1e-4]
            )
    return spec.compile()


def build_cable() -> mujoco.MjModel:
    """Make a table, a cable and two fingers."""
    return mujoco.MjModel.from_xml_string(f"""<mujoco>
  <extension><plugin plugin="mujoco.elasticity.cable"/></extension>
  <option timestep="{1 / 600}" integrator="implicitfast" iterations="20" tolerance="1e-6"/>
  <default><geom solref="0.004 1" solimp="0.95 0.99 0.001"/></default>
  <worldbody>
    <geom type="box" size="0.5 0.5 0.02" pos="0 0 -0.02" contype="{_ON_TABLE}" conaffinity="{_ON_TABLE}"/>
    {_hand(Variant(condim=4))}
    <composite prefix="cable" type="cable" curve="s 0 0" count="{SEGMENTS + 1} 1 1" size="{CABLE_LENGTH}"
        offset="{-CABLE_LENGTH / 2} 0 0.006" initial="free">
      <plugin plugin="mujoco.elasticity.cable">
        <config key="twist" value="1e6"/><config key="bend" value="1e6"/>
      </plugin>
      <joint kind="main" damping="1e-4" armature="1e-5"/>
      <geom type="capsule" size="0.005" density="1200" condim="4" friction="1" contype="{_ON_TABLE | _ON_HAND}"
          conaffinity="0"/>
    </composite>
  </worldbody>
  {_actuators()}
</mujoco>""")


def measure_cloth(variant: Variant, *, seconds: float | None = None) -> Result:
    """Pinch and fold a cloth.

    Args:
        variant: Method to simulate it.
        seconds: Simulated time after which to stop, for a quick test; the whole motion by default.
    """
    model = build(variant)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    half = (COUNT - 1) * SPACING / 2
    corner = _nearest(data, np.array([half, half]))
    opposite = _nearest(data, np.array([-half, -half]))
    motion = _fold(np.array([half, half]), low=variant.low)
    arc_end = motion[-4, 0]
    held: list[float] = []

    def watch(now: float) -> None:
        """Record the distance of the corner from the hand at the end of the arc."""
        if now >= arc_end and not held:
            held.append(float(np.linalg.norm(data.flexvert_xpos[corner] - data.body("hand").xpos)))

    cpu, contacts, note = _run(model, data, motion, yaw=-np.pi / 4, watch=watch, seconds=seconds)
    vertices = data.flexvert_xpos
    gap = float(np.linalg.norm(vertices[corner] - vertices[opposite]))
    is_flat = float(vertices[:, 2].max()) < 0.06
    return Result(
        cpu=cpu, contacts=contacts, is_held=bool(held) and held[0] < 0.04, is_folded=gap < 0.06 and is_flat, note=note
    )


def measure_cable() -> Result:
    """Pinch the end of a cable and lift it; *folded* means that it lies flat again afterwards."""
    model = build_cable()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    end = np.array([CABLE_LENGTH / 2 - 0.03, 0.0])
    last = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "cableB_last")
    rows = [(0.0, *end, 0.1, _OPEN), (0.6, *end, 0.002, _OPEN), (1.2, *end, 0.002, -0.002), (1.4, *end, 0.002, -0.002)]
    rows += [(2.4, *(end - 0.1), 0.15, -0.002), (3.4, *(end - 0.2), 0.02, -0.002)]
    rows += [(3.6, *(end - 0.2), 0.02, 0.03), (4.1, *(end - 0.2), 0.12, 0.03), (5.0, *(end - 0.2), 0.12, 0.03)]
    heights: list[float] = []

    def watch(now: float) -> None:
        """Record the height of the end."""
        if 2.3 < now < 2.5:
            heights.append(float(data.xpos[last][2]))

    cpu, contacts, note = _run(model, data, np.array(rows), yaw=np.pi / 2, watch=watch)
    flat = float(data.geom_xpos[model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE][:, 2].max()) < 0.02
    return Result(cpu=cpu, contacts=contacts, is_held=min(heights, default=0.0) > 0.08, is_folded=flat, note=note)


def _hand(variant: Variant) -> str:
    finger = (
        f'size="0.0076 0.00875 0.03" mass="0.1" friction="1.5" condim="{variant.condim}" priority="1" '
        f'contype="0" conaffinity="{_ON_HAND}"'
    )
    slides = "".join(f'<joint name="h{axis}" type="slide" axis="{at}" armature="1"/>' for axis, at in _AXES.items())
    fingers = "".join(
        f'<body><joint name="f{side}" type="slide" axis="{sign} 0 0" armature="0.1"/>'
        f'<geom type="box" pos="{0.0076 * sign} 0 0.03" {finger}/></body>'
        for side, sign in (("l", -1), ("r", 1))
    )
    weight = '<inertial pos="0 0 0" mass="0.5" diaginertia="1e-3 1e-3 1e-3"/>'
    yaw = '<joint name="yaw" axis="0 0 1" armature="0.1"/>'
    return f'<body name="hand" pos="0 0 0.2">{weight}{slides}{yaw}{fingers}</body>'


_AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def _actuators() -> str:
    slides = "".join(f'<position joint="h{axis}" kp="4000" kv="200"/>' for axis in _AXES)
    fingers = "".join(f'<position joint="f{side}" kp="1500" kv="40" forcerange="-15 15"/>' for side in "lr")
    return f'<actuator>{slides}<position joint="yaw" kp="400" kv="20"/>{fingers}</actuator>'


def _fold(corner: NDArray[np.float64], *, low: float) -> NDArray[np.float64]:
    """Return rows of time, x, y, z of the tips and position of the pads [s, m]."""
    inward = -corner / np.linalg.norm(corner)
    start, end = corner + _INSET * inward, -corner - _INSET * inward
    rows = [(0.0, *start, 0.1, _OPEN), (0.6, *start, low, _OPEN), (0.8, *start, low, _OPEN)]
    rows += [(1.6, *start, low, -0.001), (1.8, *start, low, -0.001)]
    for share in np.linspace(0, 1, 25)[1:]:
        angle = np.pi * share * share * (3 - 2 * share)
        place = start + (1 - np.cos(angle)) / 2 * (end - start)
        height = low + 0.36 * np.linalg.norm(end - start) * np.sin(angle) + 0.004 * (1 - np.cos(angle)) / 2
        rows.append((1.8 + 2.5 * share, *place, float(height), -0.001))
    rows += [(4.5, *end, low + 0.004, -0.001), (4.8, *end, low + 0.004, 0.03), (5.3, *end, 0.12, 0.03)]
    return np.array([*rows, (6.3, *end, 0.12, 0.03)])


def _run(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    motion: NDArray[np.float64],
    *,
    yaw: float,
    watch: Callable[[float], None],
    seconds: float | None = None,
) -> tuple[float, float, str]:
    """Move the hand; return CPU seconds per simulated second, mean contacts, and a note on instability."""
    steps = round((motion[-1, 0] if seconds is None else seconds) / model.opt.timestep)
    contacts = 0
    begin = time.process_time()
    for step in range(steps):
        now = step * model.opt.timestep
        x, y, z, pad = (np.interp(now, motion[:, 0], column) for column in motion[:, 1:].T)
        data.ctrl[:] = (x, y, z - 0.2, yaw, pad, pad)
        mujoco.mj_step(model, data)
        contacts += data.ncon
        watch(now)
        if any(data.warning[kind].number for kind in _UNSTABLE):
            return (time.process_time() - begin) / (now + model.opt.timestep), contacts / (step + 1), "unstable"
    return (time.process_time() - begin) / (steps * model.opt.timestep), contacts / steps, ""


def _nearest(data: mujoco.MjData, place: NDArray[np.float64]) -> int:
    return int(np.argmin(np.linalg.norm(data.flexvert_xpos[:, :2] - place, axis=1)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", choices=[*VARIANTS, "cable", []], help="variants to run (default: all)")
    names = parser.parse_args(arguments).variants or [*VARIANTS, "cable"]
    sys.stdout.write("| variant | CPU-s / s | contacts | held | folded | |\n|---|---|---|---|---|---|\n")
    for name in names:
        try:
            found = measure_cable() if name == "cable" else measure_cloth(VARIANTS[name])
        except (mujoco.FatalError, ValueError) as error:
            sys.stdout.write(f"| {name} | | | | | {error} |\n")
            continue
        cells = (f"{found.cpu:.2f}", f"{found.contacts:.0f}", "yes" if found.is_held else "no")
        folded = "yes" if found.is_folded else "no"
        sys.stdout.write(f"| {name} | {' | '.join(cells)} | {folded} | {found.note} |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
