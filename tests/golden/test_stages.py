"""Golden values of physics, planner, one attempt and the renderer, within tolerances."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.datagen.episode.trajectory import TELEOPERATION
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.policies.correction import run_correction
from nimbus.datagen.policies.environment import Environment, with_cameras
from nimbus.datagen.policies.planner import roll_out
from nimbus.datagen.policies.policy import Needs, Policy, PolicyObservation
from nimbus.datagen.random_streams import generator
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.teleoperate.demonstration_planner import perform_recording
from nimbus.datagen.teleoperate.recording import OperatorRecording
from nimbus.skills.pick import Pick
from tests.golden.values import GoldenFile, sketch
from tests.golden.versions import GENERATOR, version_of
from tests.support.one_can import home_action, layout, make, simulation, task, thing, workcell
from tests.support.render_scene import layout as shown_layout
from tests.support.render_scene import stage_and_robot

PHYSICS = version_of("simulator", "newton") | GENERATOR
PLANNING = version_of("planner", "ompl") | PHYSICS


@lru_cache
def cell() -> SimulatedWorkcell:
    """Return a scene with a can on the table and the arm at home, without motion."""
    return workcell(thing())


def test_physics_moves_as_its_version_says(golden: GoldenFile) -> None:
    made = simulation(thing(z=0.03))
    action = home_action(made)
    action[1] += 0.05
    for _ in range(6):
        made.advance(action)
    golden.check("simulator newton", sketch(made.body_positions()), PHYSICS, tolerance=1e-3)


def test_planner_plans_as_its_version_says(golden: GoldenFile) -> None:
    here = cell()
    goal, rng = make_transform((0.4, 0.3, 0.2), (0.0, 1.0, 0.0, 0.0)), generator(0, "golden")
    free = here.planner.plan_pose(here.look(), here.arm_command, [goal], rng=rng)
    line = here.planner.plan_line(
        here.look(), here.arm_command, here.tool_pose() @ make_transform((0, 0, 0.1), (1, 0, 0, 0))
    )
    value = [str(free.status), str(line.status), float(free.duration), *sketch(line.end), *sketch(free.end)]
    golden.check("planner ompl", value, PLANNING, tolerance=0.02)


def test_attempt_goes_as_its_version_says(golden: GoldenFile) -> None:
    can = thing()
    made = run_attempt(task(), simulation(can), layout(can), streams=partial(generator, 0), planner="ompl")
    phases = [f"{segment.skill}.{segment.phase}" for segment in made.segments]
    ends = made.body_positions[[segment.stop - 1 for segment in made.segments], made.body_names.index("panda_hand")]
    value = [str(made.outcome.reason), " ".join(phases), *sketch(ends)]
    skills = version_of("skill", "pick") | version_of("skill", "place")
    golden.check("plan skills", value, version_of("plan", "skills") | skills | PLANNING, tolerance=0.03)


def test_picked_object_ends_where_its_version_says(golden: GoldenFile) -> None:
    here = workcell(thing())
    make(Pick, object="items_0").run(here)
    versions = version_of("skill", "pick") | PLANNING
    position = [float(value) for value in here.pose("items_0")[:3, 3]]
    golden.check("picked object", [round(value, 4) for value in position], versions, tolerance=4e-3)


class Nod(Policy):
    """Skill that bends the second joint and closes the gripper."""

    needs = Needs(cameras=())

    def act(self, observation: PolicyObservation) -> np.ndarray:
        rows = np.tile([*observation.state[:7], 0.02], (8, 1))
        rows[:, 1] += np.linspace(0.01, 0.08, 8)
        return rows


def test_policy_acts_as_its_version_says(golden: GoldenFile) -> None:
    can = thing()
    still = simulation(can)
    assets = SceneAssets(task=task(), stage=still.stage, robot=still.robot, libraries={}, reach={})
    key = EpisodeKey(task="golden", task_hash="0", seed=0, index=0)
    drawn = Layout(key=key, physical=layout(can), visual=with_cameras(shown_layout(), ()).visual)
    made = roll_out(Environment(task(), assets, needs=Nod.needs), Nod(), drawn, execute=8, limit=20)
    value = [str(made.outcome.reason), made.step_count, *sketch(made.joint_positions[-1])]
    golden.check("plan policy", value, version_of("plan", "policy") | PHYSICS, tolerance=1e-3)


def test_demonstration_moves_as_its_version_says(golden: GoldenFile) -> None:
    can = thing()
    still = simulation(can)
    assets = SceneAssets(task=task(), stage=still.stage, robot=still.robot, libraries={}, reach={})
    key = EpisodeKey(task="golden", task_hash="0", seed=0, index=0)
    environment = Environment(task(), assets, needs=Needs(cameras=()), skill=TELEOPERATION)
    environment.reset(Layout(key=key, physical=layout(can), visual=with_cameras(shown_layout(), ()).visual))
    rows = np.tile(environment.present_action(), (12, 1)) + np.linspace(0.0, 0.1, 12)[:, None]
    recording = OperatorRecording(
        task="golden",
        task_hash="0",
        robot="panda",
        rate=15.0,
        index=0,
        action_names=still.robot.action_names,
        actions=tuple(tuple(map(float, row)) for row in rows),
    )
    made = perform_recording(environment, recording)
    value = [str(made.outcome.reason), made.step_count, *sketch(made.joint_positions[-1])]
    golden.check("plan demonstration", value, version_of("plan", "demonstration") | PHYSICS, tolerance=1e-3)


def test_renderer_shows_as_its_version_says(golden: GoldenFile) -> None:
    stage, robot = stage_and_robot()
    world = NewtonSimulation(stage, robot, rate=15)
    world.load(shown_layout().physical)
    renderer = SceneRenderer(stage, robot, stack=1, shadows=True)
    renderer.load(shown_layout())
    shown = renderer.render(world.body_names, world.body_positions()[None], world.body_wxyz()[None], first_step=0)
    for camera, frames in shown.items():
        color = frames.rgb[0].reshape(4, 12, 4, 16, 3).mean(axis=(1, 3))
        depth = frames.depth[0].reshape(4, 12, 4, 16).mean(axis=(1, 3))
        seen = np.bincount(frames.instance[0].ravel(), minlength=12)[:12] / frames.instance[0].size
        value = [*sketch(color / 255), *sketch(depth), *sketch(seen)]
        golden.check(f"render newton {camera}", value, version_of("render", "newton") | GENERATOR, tolerance=0.03)


def test_correction_takes_over_as_its_version_says(golden: GoldenFile) -> None:
    can = thing()
    here = simulation(can)
    played = np.repeat(here.present_action()[None], 6, axis=0)
    streams = partial(generator, 0, "golden correction")
    made = run_correction(task(), here, layout(can), played, streams=streams, planner="ompl")
    value = [made.outcome.success, *(part.phase for part in made.segments[:4])]
    golden.check("plan correction", value, version_of("plan", "correction") | PLANNING)
