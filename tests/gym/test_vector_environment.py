"""Episodes in lockstep equal those of single environments, independently of their number."""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import nimbus.gym
from nimbus.datagen.errors import InputError
from tests.support.runs import TINY

CAMERAS = ("front", "wrist")


@cache
def single() -> nimbus.gym.NimbusEnv:
    return nimbus.gym.NimbusEnv(TINY, cameras=CAMERAS)


def many(count: int, **options: Any) -> nimbus.gym.NimbusVectorEnv:
    given: dict[str, Any] = {"cameras": CAMERAS} | options
    return nimbus.gym.NimbusVectorEnv(count, task=str(TINY), **given)


@cache
def alone(layout: int, steps: int) -> tuple[dict[str, Any], ...]:
    """Return observations of an episode in which the arm moves a little."""
    env = single()
    seen, _ = env.reset(seed=layout)
    rows, action = [seen], env.environment.present_action() + 0.02
    rows += [env.step(action)[0] for _ in range(steps)]
    return tuple({"agent_pos": row["agent_pos"], **row["pixels"]} for row in rows)


@pytest.mark.parametrize("together", [True, False], ids=["one-launch", "one-by-one"])
def test_lockstep_is_single_environments_to_the_bit(together: bool):
    envs, layouts = many(3, together=together), (7, 2, 4)
    seen, info = envs.reset(seed=layouts)
    assert info["layout"].tolist() == list(layouts)
    assert envs.observation_space.contains(seen)
    action = np.stack([env.environment.present_action() + 0.02 for env in envs.envs])
    for step in range(2):
        for place, layout in enumerate(layouts):
            expected = alone(layout, 1)[step]
            found = {"agent_pos": seen["agent_pos"], **seen["pixels"]}
            for name, values in expected.items():
                np.testing.assert_array_equal(found[name][place], values, err_msg=f"layout {layout} {step} {name}")
        seen = envs.step(action)[0]


def test_ended_episodes_continue_with_layouts_that_none_had():
    envs = many(2, cameras=(), max_steps=1)
    envs.reset(seed=5)
    hold = np.stack([env.environment.present_action() for env in envs.envs])
    assert envs.step(hold)[3].all()
    seen, rewards, over, late, info = envs.step(hold)
    assert info["layout"].tolist() == [7, 8] and not (over | late).any() and not rewards.any()
    np.testing.assert_array_equal(seen["agent_pos"][0], envs.envs[0].environment.simulation.joint_positions())


def test_same_step_reset_keeps_the_last_observation():
    envs = many(2, max_steps=1, autoreset_mode=AutoresetMode.SAME_STEP)
    start, _ = envs.reset(seed=0)
    seen, _, _, late, info = envs.step(np.stack([env.environment.present_action() for env in envs.envs]))
    assert late.all() and info["layout"].tolist() == [2, 3]
    assert info["final_info"]["layout"].tolist() == [0, 1]
    assert set(info["final_obs"][0]["pixels"]) == set(CAMERAS)
    assert np.any(seen["pixels"]["front"] != start["pixels"]["front"])


def test_masked_reset_keeps_the_others():
    envs = many(2, cameras=(), max_steps=1, autoreset_mode="Disabled")
    envs.reset(seed=0)
    hold = np.stack([env.environment.present_action() for env in envs.envs])
    before = envs.step(hold)[0]
    with pytest.raises(ValueError, match=r"episodes \[0, 1\] have ended"):
        envs.step(hold)
    after, info = envs.reset(seed=[9, None], options={"reset_mask": np.array([True, False])})
    assert info["layout"][0] == 9
    np.testing.assert_array_equal(after["agent_pos"][1], before["agent_pos"][1])


def test_tasks_are_made_as_vectors():
    made: Any = gymnasium.make_vec(
        "nimbus/any-v0", num_envs=2, vectorization_mode="vector_entry_point", task=str(TINY), cameras=()
    )
    assert made.unwrapped.num_envs == 2
    with pytest.raises(InputError, match="num_envs: 0 is not a valid value; give a whole number from 1"):
        many(0)
    with pytest.raises(ValueError, match="expected 2 seeds"):
        made.reset(seed=[1])
