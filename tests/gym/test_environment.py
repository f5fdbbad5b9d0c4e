"""Tasks as Gymnasium environments: addressed layouts, equivalent control modes, and bad input in one line."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import nimbus.gym
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.policies.control_modes import MODE_NAMES
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.task import task_names
from tests.support.runs import TINY


@cache
def environment(control_mode: str = "joint", cameras: tuple[str, ...] = ()) -> nimbus.gym.NimbusEnv:
    return nimbus.gym.NimbusEnv(TINY, control_mode=control_mode, cameras=cameras, environment_state=True)


def test_every_task_is_registered():
    names = {name for name in gymnasium.registry if name.startswith("nimbus/")}
    assert names == {f"nimbus/{name}-v0" for name in (*task_names(), "any")}


def test_environment_follows_the_interface():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about spaces without bounds
        check_env(environment(cameras=("wrist",)), skip_render_check=True)


def test_reset_is_the_layout_whatever_came_before():
    env = environment()
    first, info = env.reset(seed=5)
    env.step(env._environment.present_action())
    env.reset()
    again, _ = env.reset(seed=5)
    assert info["layout"] == 5
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert env.reset()[1]["layout"] == 6


def test_held_out_layouts_are_none_of_a_run():
    held_out, run = environment().layout(0), nimbus.gym.NimbusEnv(TINY, cameras=(), split="run").layout(0)
    assert held_out.physical != run.physical and held_out.key.id != run.key.id


@cache
def demonstrated() -> Trajectory:
    """Return the first layout's demonstration, which is independent of the control mode."""
    env = environment()
    layout, assets = env.layout(0), env._assets
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=env._task.rate)
    return run_attempt(env._task, simulation, layout.physical, streams=layout.key.generator, planner="ompl")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODE_NAMES)
def test_demonstration_succeeds_in_every_control_mode(mode: str):
    env = environment(mode)
    env.reset(seed=0)
    demonstration = demonstrated()
    assert demonstration.outcome.success
    info: dict[str, object] = {}
    fed = demonstration.executed_actions if mode == "joint" else demonstration.actions
    assert fed is not None
    for step in range(demonstration.step_count + 30):
        command = fed[min(step, demonstration.step_count - 1)]
        action = env._signals._control.from_commands(command[None], env._environment.present_action())[0]
        observation, reward, is_over, _, info = env.step(action)
        if mode == "joint" and step + 1 < demonstration.step_count and not is_over:
            assert np.array_equal(observation["agent_pos"], demonstration.joint_positions[step + 1])
        if is_over:
            assert reward == 1.0
            break
    assert info["is_success"]


def test_action_that_is_none_is_refused():
    env = environment()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="finite numbers"):
        env.step(np.full(8, np.nan))
    with pytest.raises(ValueError, match=r"expected \(8,\)"):
        env.step(np.zeros(3))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"control_mode": "joints"}, "did you mean 'joint'"),
        ({"cameras": ("side",)}, "the task has front, wrist"),
        ({"task": "sort_trahs"}, "did you mean 'sort_trash'"),
        ({"task": Path("none.yaml")}, "no such file"),
        ({"cameras": "front"}, "cameras: 'front' is not a valid value; give a list of names, or None for all"),
        ({"skills": "folder"}, "skills: 'folder' is not a valid value; give a list of folders"),
        ({"split": "train"}, "split: 'train' is not a valid value; give 'evaluation' or 'run'"),
        ({"split": np.zeros(2)}, "split: array"),
        ({"max_steps": 0}, "max_steps: 0 is not a valid value; give a whole number from 1"),
        ({"max_steps": float("nan")}, "max_steps: nan"),
        ({"seed": -1}, "seed: -1 is not a valid value; give a whole number from 0"),
        ({"seed": "\x1b[31m"}, r"seed: '\\x1b\[31m' is not a valid value"),
        ({"control_mode": []}, r"control_mode: \[\] is not a valid value"),
        ({"environment_state": "no"}, "environment_state: 'no' is not a valid value; give True or False"),
    ],
)
def test_mistakes_are_one_line(values: dict[str, object], said: str):
    with pytest.raises(InputError, match=said):
        nimbus.gym.NimbusEnv(**({"task": TINY} | values))  # pyright: ignore[reportArgumentType]


def vector(kind: str) -> Any:
    """Return two environments that are not reset automatically."""
    words: Any = {"vectorization_mode": kind, "vector_kwargs": {"autoreset_mode": AutoresetMode.DISABLED}}
    return gymnasium.make_vec("nimbus/any-v0", num_envs=2, task=str(TINY), cameras=(), max_steps=5, **words)


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise an error after a time, because waiting for environments in processes has no limit."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_vectorized_environments_are_single_ones():
    """Two environments in separate processes equal single ones with the same seeds, step by step to the bit."""
    both: dict[str, Any] = {}
    single = environment()
    with limited(300):
        try:
            both |= {kind: vector(kind) for kind in ("sync", "async")}
            seen = {kind: env.reset(seed=[7, 3])[0]["agent_pos"] for kind, env in both.items()}
            np.testing.assert_array_equal(seen["sync"], seen["async"])
            for place, seed in enumerate((7, 3)):
                start, _ = single.reset(seed=seed)
                np.testing.assert_array_equal(seen["sync"][place], start["agent_pos"])
                action = single._environment.present_action() + 0.01
                rows = [single.step(action)[0]["agent_pos"] for _ in range(5)]
                for kind, env in both.items():
                    _, info = env.reset(seed=[7, 3])
                    assert info["layout"].tolist() == [7, 3]
                    steps = [env.step(np.tile(action, (2, 1))) for _ in range(5)]
                    np.testing.assert_array_equal([step[0]["agent_pos"][place] for step in steps], rows)
                    assert steps[-1][3].all() and list(steps[-1][4]["reason"]) == ["time_limit"] * 2, kind
        finally:
            for kind, env in both.items():
                env.close(**({"terminate": True} if kind == "async" else {}))


@pytest.mark.slow
def test_vectorized_reset_of_one_keeps_the_other():
    env = vector("sync")
    env.reset(seed=[7, 3])
    hold = np.stack([one.unwrapped._environment.present_action() for one in env.envs])
    before = [env.step(hold)[0]["agent_pos"] for _ in range(5)][-1]
    after, info = env.reset(seed=[9, None], options={"reset_mask": np.array([True, False])})
    assert info["layout"][0] == 9
    np.testing.assert_array_equal(after["agent_pos"][1], before[1])
    fresh, _ = environment().reset(seed=9)
    np.testing.assert_array_equal(after["agent_pos"][0], fresh["agent_pos"])
    env.close()
