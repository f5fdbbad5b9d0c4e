"""A run in which a policy acts in place of the skills, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nimbus.datagen.errors import BUG, single_line
from nimbus.datagen.store.info import read_info
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.evaluation.layouts import Layouts
from nimbus.runner.evaluation.results import Evaluation, collect, write_evaluation
from nimbus.runner.system.output import write_error

PIPELINE = "evaluation"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One evaluation, as it is asked for."""

    folder: Path
    task: str
    policy: str
    """As ``--policy`` takes it; ``demonstrator``: the task's own skills."""
    identity: str
    layouts: Layouts
    execute: int
    limit: int
    options: dict[str, str]
    randomize: str = ""
    device: str = "cpu"
    skills: tuple[str, ...] = ()

    def spec(self) -> CellSpec:
        """The run that it is."""
        is_policy = self.policy != "demonstrator"
        own = {"policy": self.policy, "execute": self.execute, "limit": self.limit, "options": self.options}
        return CellSpec(
            folder=str(self.folder.absolute()),
            task=self.task,
            pipeline=PIPELINE if is_policy else "",
            settings=(own if is_policy else {"attempts": 1, "images": "none"}) | {"keep_failures": True},
            choices={
                "policy": self.identity,
                "execute": str(self.execute),
                "limit": str(self.limit),
                "split": self.layouts.split,
            },
            skills=self.skills,
            seed=self.layouts.seed,
            split=self.layouts.split,
            episodes=max(self.layouts.indices) + 1,
            indices=self.layouts.indices,
            device=self.device,
        )


def evaluate(
    asked: Asked, *, serial: bool = False, workers: tuple[int, int] | None = None
) -> tuple[int, Evaluation | None]:
    """Run an evaluation, or go on with one, and write its results.

    Args:
        asked: The evaluation.
        serial: In this process.
        workers: Planners and renderers.

    Returns:
        The exit code, and the results; None where the run did not get so far.
    """
    spec = asked.spec()
    spec = replace(spec, resources=replace(spec.resources, workers=workers))
    code = _run(spec, serial=serial)
    if not (asked.folder / "dataset.json").exists():
        return code, None
    found = collect(asked.folder, _base(asked), indices=asked.layouts.indices)
    write_evaluation(asked.folder, found)
    if code == 0 and not found.is_valid:
        code = 1
    return code, found


def _base(asked: Asked) -> Evaluation:
    info = read_info(asked.folder)
    return Evaluation(
        task=info.task,
        task_hash=info.task_hash,
        policy=asked.identity,
        split=asked.layouts.split,
        seed=asked.layouts.seed,
        execute=asked.execute,
        limit=asked.limit,
        randomize=asked.randomize,
        inputs=dict(info.inputs),
    )


def _run(spec: CellSpec, *, serial: bool) -> int:
    """Run a spec whose failures are results; 0 also where not all episodes are stored."""
    from nimbus.runner.cell.run import Drained, run_serial

    if serial:
        try:
            run_serial(spec)
        except Drained:
            return 130
        return 0
    from nimbus.runner.cell.launcher import run_cell
    from nimbus.runner.monitor.dashboard import StatusDashboard

    with StatusDashboard(Path(spec.folder)) as dashboard:
        ended = run_cell(spec, watch=dashboard.look)
    if ended.state == "interrupted":
        raise KeyboardInterrupt
    if ended.line:
        write_error((ended.line.rstrip("\n") if ended.code == BUG else single_line(ended.line)) + "\n")
    return 0 if ended.state in ("done", "short") else ended.code
