"""Plan stage in which a policy acts: it is queried and its actions are executed until success or the step limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.trajectory import FAULTS, Outcome, Reason, Trajectory
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.policies.environment import Environment, with_cameras
from nimbus.datagen.policies.open_policy import open_policy, options_from, policy_from
from nimbus.datagen.policies.policy import (
    ANSWER_SPREAD,
    ANSWER_WAIT,
    ARM_EXCESS,
    ASKED_AGAIN,
    CLIPPED,
    CLIPPED_ARM,
    DEFAULT_LIMIT,
    GRIPPER_EXCESS,
    STILL,
    Policy,
    PolicyEpisode,
    PolicyFault,
    WildAction,
    check_actions,
    check_rows,
)
from nimbus.datagen.policies.robot_signals import RobotSignals
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.progress import allow, tick
from nimbus.datagen.stages import Planned, Planner, Randomized
from nimbus.datagen.tasks.task import Task

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

FAULT_ATTEMPTS = 3
"""Largest number of attempts at one layout when the policy or its server has faults."""
FIRST_ANSWER, ANSWER = 300.0, 30.0
"""Time limits of the first answer, for which a model compiles, and of later ones [s]."""


class PolicySettings(StrictModel):
    """Settings of :class:`PolicyPlanner`."""

    policy: str = Field(description="value of --policy: mine.py:make_policy, replay:DIR, ws://host:port")
    execute: Annotated[int, Field(ge=1, le=1000)] = 8
    limit: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_LIMIT
    options: dict[str, str] = Field(default_factory=dict, description="options of the policy by name")
    actions: str | None = Field(default=None, description="control mode; by default the one that the policy declares")
    rotation: str = "6d"
    state: str = "measured"

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with paths that begin in the folder of the pipeline file."""
        options = options_from(folder, self.policy, self.options)
        return self.model_copy(update={"policy": policy_from(folder, self.policy), "options": options})

    @property
    def view(self) -> SignalView | None:
        """Requested view; None for the view that the policy declares."""
        return SignalView(actions=self.actions, rotation=self.rotation, state=self.state) if self.actions else None


class PolicyPlanner(Planner["SceneAssets"]):
    """Planner that runs a policy once at each layout; faults of the policy are retried, but failures are not.

    Args:
        task: The task.
        make_policy: Opens the policy.
        execute: Number of actions of an answer to execute before the policy is queried again.
        limit: Largest number of steps of an episode.
        device: ``cpu`` or ``cuda``, for the policy's images.
        view: Signals that the policy was trained on; by default those that it declares.
    """

    version: ClassVar[int] = 3
    """Version of the planner's results; since 2, episodes count clipped actions, and since 3 those of
    arms apart, with the largest excess."""

    @classmethod
    def create(cls, context: RunContext, settings: PolicySettings) -> Self:
        """Make the planner of an evaluation."""
        opened = partial(open_policy, settings.policy, options=settings.options)
        return cls(
            context.need_task(),
            opened,
            execute=settings.execute,
            limit=settings.limit,
            device=context.device,
            view=settings.view,
        )

    def __init__(
        self,
        task: Task,
        make_policy: Callable[[], Policy],
        *,
        execute: int = 8,
        limit: int = DEFAULT_LIMIT,
        device: str = "cpu",
        view: SignalView | None = None,
    ):
        self._task, self._make_policy, self._device, self._view = task, make_policy, device, view
        self._execute, self._limit = execute, limit
        self._environment: Environment | None = None

    @cached_property
    def _policy(self) -> Policy:
        # Opening takes long, because weights are loaded or a server is busy, so the watchdog is extended.
        with allow(FIRST_ANSWER):
            return self._make_policy()

    def process(self, item: Randomized[SceneAssets]) -> Iterator[Planned[SceneAssets]]:
        """Yield one attempt at a layout, or several after faults."""
        if self._environment is None:
            environment = Environment(self._task, item.scene.assets, needs=self._policy.needs, device=self._device)
            view = self._view or self._policy.view or SignalView()
            self._signals = RobotSignals(item.scene.assets.robot, view)
            self._policy.begin_task(self._signals.conventions(environment.conventions))
            self._environment = environment
        # The images that the policy has seen are not kept; images are rendered again for episodes that are shown.
        unseen = tuple(with_cameras(layout, ()) for layout in item.layouts)
        for attempt in range(FAULT_ATTEMPTS):
            begin, tally = time.process_time(), RolloutTally()
            trajectory = roll_out(
                self._environment,
                self._policy,
                item.layouts[0],
                execute=self._execute,
                limit=self._limit,
                signals=self._signals,
                tally=tally,
            )
            final = trajectory.outcome.reason not in FAULTS or attempt == FAULT_ATTEMPTS - 1
            times = {"plan": time.process_time() - begin, ANSWER_WAIT: tally.wait}
            yield Planned(
                scene=item.scene, layouts=unseen, trajectory=trajectory, attempt=attempt, final=final, times=times
            )
            if final:
                return

    def close(self) -> None:
        """Close the policy."""
        if "_policy" in self.__dict__:
            self._policy.close()


register_component("plan", "policy", PolicyPlanner, PolicySettings)


@dataclass
class RolloutTally:
    """Counters of a rollout."""

    clipped: int = 0
    """Number of actions with a command beyond the robot's limits."""
    clipped_arm: int = 0
    """Number of those with a command beyond the limits of an arm joint."""
    arm_excess: float = 0.0
    """Largest excess of a command over the limits of an arm joint [rad or m]."""
    gripper_excess: float = 0.0
    """Largest excess of a command over the limits of a gripper [rad or m]."""
    wait: float = 0.0
    """Total time of waiting for answers [s, wall clock]."""


def roll_out(
    environment: Environment,
    policy: Policy,
    layout: Layout,
    *,
    execute: int,
    limit: int,
    signals: RobotSignals | None = None,
    tally: RolloutTally | None = None,
) -> Trajectory:
    """Run a policy in one layout to the end; failures and faults are outcomes, not errors.

    Args:
        environment: Environment of the task.
        policy: Policy whose ``begin_task`` was called.
        layout: The drawn layout.
        execute: Number of actions of an answer to execute before the policy is queried again.
        limit: Largest number of steps.
        signals: Signals of the view that the policy was trained on; the stored ones by default.
        tally: Counters to add to.
    """
    signals = signals or RobotSignals(environment.assets.robot, SignalView())
    tally = tally or RolloutTally()
    environment.reset(layout)
    signals.begin(environment.simulation)
    seed = int(layout.key.generator("policy").integers(2**31))
    episode = PolicyEpisode(key=layout.key, instruction=layout.visual.instruction, seed=seed)
    statistics = {}
    try:
        if layout.key.index % ASKED_AGAIN == 0:
            spread = _answer_spread(environment, policy, signals, episode)
            statistics = {ANSWER_SPREAD: np.array([spread])}
        policy.reset(episode)
        outcome = _act(environment, policy, signals, tally, execute=execute, limit=limit)
    except PolicyFault as fault:
        outcome = Outcome(success=False, phase="policy", reason=fault.reason, detail=fault.detail)
    except WildAction as wild:
        phase = environment.activity
        outcome = Outcome(success=False, phase=phase, reason=Reason.WILD_ACTION, detail=str(wild))
    counted = {
        CLIPPED: tally.clipped,
        CLIPPED_ARM: tally.clipped_arm,
        ARM_EXCESS: tally.arm_excess,
        GRIPPER_EXCESS: tally.gripper_excess,
    }
    statistics |= {name: np.array([float(value)]) for name, value in counted.items()}
    return replace(environment.finish(outcome), plan_statistics=statistics)


def _answer_spread(environment: Environment, policy: Policy, signals: RobotSignals, episode: PolicyEpisode) -> float:
    """Query a policy twice with the same seed; return the largest difference between its next actions."""
    answers = []
    for _ in range(2):
        policy.reset(episode)
        answers.append(_ask(environment, policy, signals, RolloutTally(), execute=1))
    one, other = answers
    return float(np.abs(one - other).max())


def _act(
    environment: Environment, policy: Policy, signals: RobotSignals, tally: RolloutTally, *, execute: int, limit: int
) -> Outcome:
    failure = environment.judge()
    while environment.step_count < limit:
        actions = _ask(environment, policy, signals, tally, execute=min(execute, limit - environment.step_count))
        for action in actions:
            result = environment.step(_command(environment, signals, tally, action))
            failure = result.failure
            if not result.is_stable and failure:
                return failure
            if result.is_success:
                return Outcome(success=True, phase=STILL if environment.activity == STILL else "")
    detail = f"{failure.phase}: {failure.detail or failure.reason}" if failure else "done, but not to the end"
    return Outcome(success=False, phase=environment.activity, reason=Reason.TIME_LIMIT, detail=detail)


def _ask(
    environment: Environment, policy: Policy, signals: RobotSignals, tally: RolloutTally, *, execute: int
) -> FloatArray:
    first = environment.step_count == 0
    observation = signals.observed(environment.observe())
    tick()
    asked = time.perf_counter()
    try:
        with allow(FIRST_ANSWER if first else ANSWER):
            answer = policy.act(observation)
    finally:
        tally.wait += time.perf_counter() - asked
    return check_rows(answer, names=signals.action_names, execute=execute)[:execute]


def _command(environment: Environment, signals: RobotSignals, tally: RolloutTally, action: FloatArray) -> FloatArray:
    """Return the command (A,) of one action, which may be relative to the posture at its execution."""
    posture = environment.present_action()
    first = environment.step_count == 0
    try:
        command = signals.command(action, posture)
    except PolicyFault as fault:
        if first:
            raise
        raise WildAction(fault.detail) from None  # an unreachable pose is the policy's failure; a retry would repeat it
    checked = check_actions(command[None], task=environment.conventions, posture=posture, execute=1, first=first)
    tally.clipped += checked.clipped
    tally.clipped_arm += checked.clipped_arm
    tally.arm_excess = max(tally.arm_excess, checked.arm_excess)
    tally.gripper_excess = max(tally.gripper_excess, checked.gripper_excess)
    signals.asked(checked.actions[0])
    return checked.actions[0]
