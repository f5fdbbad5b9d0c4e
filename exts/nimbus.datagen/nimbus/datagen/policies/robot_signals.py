"""Signals of a robot in a view: a policy's state, and the commands of its actions."""

from __future__ import annotations

from dataclasses import replace

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.policies.control_modes import make_control
from nimbus.datagen.policies.policy import PolicyObservation, PolicyTask
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.policies.state_forms import StateForm
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.newton import NewtonSimulation


class RobotSignals:
    """States and actions of one robot in a view.

    Args:
        robot: The robot.
        view: The view; its ``done`` and ``environment_state`` are ignored here.

    Raises:
        InputError: There is no such control mode, or the robot cannot follow it.
    """

    def __init__(self, robot: Robot, view: SignalView) -> None:
        self._control = make_control(view.actions, robot, rotation=view.rotation)
        self._form = StateForm(robot, view.state)
        self.view = view
        self.action_names, self.state_names = self._control.names, self._form.names

    def conventions(self, task: PolicyTask) -> PolicyTask:
        """Return the names and limits of a task in the policy's view."""
        low, high = self._control.limits(task.action_low, task.action_high)
        return replace(
            task,
            state_names=self.state_names,
            action_names=self.action_names,
            action_low=low,
            action_high=high,
            control_mode=self.view.actions,
            rotation=self.view.rotation,
        )

    def begin(self, simulation: NewtonSimulation) -> None:
        """Prepare for the episode that is loaded in the simulation."""
        self._control.begin(simulation)
        self._asked = simulation.present_action()

    def observed(self, seen: PolicyObservation) -> PolicyObservation:
        """Return an observation with the state (S,) of the view [rad or m]."""
        return replace(seen, state=self._form.rows(seen.state[None], self._asked[None])[0])

    def command(self, action: FloatArray, posture: FloatArray) -> FloatArray:
        """Return the command (A,) [rad or m] of an action (M,) in a posture (A,).

        Raises:
            PolicyFault: The action has no command.
        """
        return self._control.to_commands(action[None], posture)[0]

    def asked(self, command: FloatArray) -> None:
        """Record a command (A,) that was executed [rad or m]."""
        self._asked = command
