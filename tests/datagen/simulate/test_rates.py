"""The path between commands, for all steps of a period at once."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nimbus.datagen.episode.layout import RobotSetup
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.simulate.rates import smooth_reference
from tests.support.one_can import layout, simulation

COMMANDS = arrays(np.float64, (3, 4), elements=st.floats(-10, 10))


@given(COMMANDS, st.integers(1, 200), st.sampled_from([1 / 15, 1 / 30, 0.01]))
def test_every_step_follows_the_formula(commands: np.ndarray, steps: int, period: float) -> None:
    first, second, target = commands
    position, velocity = smooth_reference(first, second, target, steps=steps, period=period)
    for step in range(steps):
        u = (step + 1) / steps
        assert np.array_equal(position[step], one_step(first, second, target, u, period)[0])
        assert np.array_equal(velocity[step], one_step(first, second, target, u, period)[1])


@given(COMMANDS)
def test_path_ends_midway_between_commands(commands: np.ndarray) -> None:
    first, second, target = commands
    position, velocity = smooth_reference(first, second, target, steps=160, period=0.1)
    assert np.allclose(position[-1], (second + target) / 2, atol=1e-12)
    assert np.allclose(velocity[-1], (target - second) / 0.1, atol=1e-9)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.1])
def test_states_equal_stepwise_control(delay: float) -> None:
    """Commands for a whole period lead to the same states as a loop that computes each step's command."""
    made, plain = simulation(), simulation()
    for one in (made, plain):
        one.load(replace(layout(), robot=RobotSetup(delay=delay)))
    late = deque([(plain.reference, plain.reference)] * round(delay * 2400))
    commands = [plain.reference, plain.reference]
    action = made.present_action()
    for turn in (0.02, 0.05, 0.03, 0.0):
        action[:7] += turn
        made.advance(action)
        advance_stepwise(plain, commands, action, late)
        assert np.array_equal(made.data.qpos, plain.data.qpos)
        assert np.array_equal(made.data.qvel, plain.data.qvel)


def one_step(
    first: np.ndarray, second: np.ndarray, target: np.ndarray, u: float, period: float
) -> tuple[np.ndarray, np.ndarray]:
    position = 0.5 * ((1 - u) ** 2 * first + (1 + 2 * u - 2 * u * u) * second + u * u * target)
    return position, ((u - 1) * first + (1 - 2 * u) * second + u * target) / period


def advance_stepwise(
    plain: NewtonSimulation, commands: list[np.ndarray], action: np.ndarray, late: deque[tuple[np.ndarray, np.ndarray]]
) -> None:
    first, second = commands
    target, period = action[plain._action_index] * plain._ratios, 1 / plain.rate
    wanted, lead = np.zeros(plain.model.nv), np.zeros(len(target))
    wanted[plain.dof_index] = (first - 2 * second + target) / period**2
    for step in range(plain.steps_per_period):
        if step % 10 == 0:
            torque = np.zeros(plain.model.nv)
            mujoco.mj_mulM(plain.model, plain.data, torque, wanted)
            lead = torque[plain.dof_index] / plain._stiffness
        reference, velocity = one_step(first, second, target, (step + 1) / plain.steps_per_period, period)
        late.append((reference, reference + plain._lead_time * velocity + lead))
        _, order = late.popleft()
        plain.data.ctrl[plain._actuators] = order
        mujoco.mj_step(plain.model, plain.data)
    commands[:] = second, target
