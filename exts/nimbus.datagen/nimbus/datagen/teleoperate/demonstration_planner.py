"""Plan stage for demonstrations, which executes the recorded commands of an operator again in physics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import TELEOPERATION, Outcome, Trajectory
from nimbus.datagen.execute.planner import find_unbelievable
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.policies.environment import Environment
from nimbus.datagen.policies.policy import Needs
from nimbus.datagen.progress import report_activity
from nimbus.datagen.stages import Planned, Planner, Randomized
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.teleoperate.recording import OperatorRecording, RecordingFolder
from nimbus.datagen.teleoperate.session import with_prompt

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

_PATIENCE = 15
"""Number of periods for objects to come to rest after the last command; it equals that after a skill's last step."""


class DemonstrationSettings(StrictModel):
    """Settings of :class:`DemonstrationPlanner`."""

    recordings: str = Field(description="folder with recordings of operators")

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with a path that begins in the folder of the pipeline file."""
        return self.model_copy(update={"recordings": str(folder / self.recordings)})


class DemonstrationPlanner(Planner["SceneAssets"]):
    """Planner that executes the recording of a layout; equal commands give the operator's motion.

    Args:
        task: Task of the recordings.
        recordings: Folder with recordings.
    """

    version: ClassVar[int] = 2

    @classmethod
    def create(cls, context: RunContext, settings: DemonstrationSettings) -> Self:
        """Create the planner of a run."""
        return cls(context.need_task(), RecordingFolder(Path(settings.recordings)))

    def __init__(self, task: Task, recordings: RecordingFolder) -> None:
        self._task, self._recordings = task, recordings
        self._environment: Environment | None = None

    def process(self, item: Randomized[SceneAssets]) -> Iterator[Planned[SceneAssets]]:
        """Yield the demonstration of a layout.

        Raises:
            InputError: The layout has no recording, or the recording is of another task or robot.
        """
        begin, assets, index = time.process_time(), item.scene.assets, item.layouts[0].key.index
        recording = self._recordings.read(index)
        recording.check(self._task, assets.robot, where=str(self._recordings.path(index)))
        if self._environment is None:
            self._environment = Environment(self._task, assets, needs=Needs(cameras=()), skill=TELEOPERATION)
        layouts = tuple(with_prompt(layout, recording.prompt) for layout in item.layouts)
        self._environment.reset(layouts[0])
        trajectory = perform_recording(self._environment, recording)
        provenance: Provenance = item.scene.provenance
        own = ancestors_of(recording)
        scene = replace(item.scene, provenance=replace(provenance, ancestors=provenance.ancestors | own))
        times = {"plan": time.process_time() - begin}
        yield Planned(scene=scene, layouts=layouts, trajectory=trajectory, times=times)


register_component("plan", "demonstration", DemonstrationPlanner, DemonstrationSettings)


def ancestors_of(recording: OperatorRecording) -> dict[str, str]:
    """Return the ancestors of a demonstration, for its provenance."""
    given = {"operator": recording.operator, "device": recording.device}
    found = {name: value for name, value in given.items() if value}
    return {"role": "demonstration", "recording": recording.content, "undone": str(recording.undone)} | found


def perform_recording(environment: Environment, recording: OperatorRecording) -> Trajectory:
    """Execute recorded commands in a reset environment, wait for rest, and evaluate success.

    Args:
        environment: Environment at the start of the recording's layout.
        recording: Recording with the commands.
    """
    rows = recording.rows
    each, total = max(1, round(recording.rate)), len(rows) / recording.rate
    result = environment.step(rows[0])
    for number in range(1, len(rows) + _PATIENCE):
        if number % each == 0:
            report_activity(f"physics at {min(number / recording.rate, total):.0f} of {total:.0f} s")
        if not result.is_stable and result.failure:
            return environment.finish(result.failure)
        if number >= len(rows) and result.is_success:
            break
        result = environment.step(rows[min(number, len(rows) - 1)])
    outcome = result.failure if not result.is_success else None
    outcome = outcome or find_unbelievable(environment.scene.contact_extremes()) or Outcome(success=True)
    if not outcome.success and not outcome.phase.startswith("success"):
        outcome = replace(outcome, phase=f"success {outcome.phase}")
    return environment.finish(outcome)
