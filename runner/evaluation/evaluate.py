"""Evaluation: a run in which a policy replaces the skills, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from nimbus.datagen.datasets.export.training_source import read_training_source
from nimbus.datagen.errors import BUG, InputError, quote_words, single_line
from nimbus.datagen.files.own_files import check_own, part_folder
from nimbus.datagen.policies.open_policy import DEMONSTRATOR, function_of, open_policy
from nimbus.datagen.policies.policy import layout_source
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.ledger import FILE_NAME, Ledger
from nimbus.datagen.tasks.task import Task, load_task, randomize_task
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.evaluation.compare import Comparison, pair
from nimbus.runner.evaluation.layouts import Layouts
from nimbus.runner.evaluation.page import Curve, RateBar, rate_bar, write_page
from nimbus.runner.evaluation.results import Evaluation, collect, write_evaluation
from nimbus.runner.evaluation.videos import choose_shown, write_videos
from nimbus.runner.system.output import write_error

PIPELINE = "evaluation"
_GREETING = "30"
"""Time within which a server must greet before anything is loaded [s]; workers wait longer for a busy server."""
_TRAINED_ON = "--trained-on"
UNPERTURBED = "none"
"""Randomization level of the control evaluation, and name of its folder."""


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """Request for one evaluation."""

    folder: Path
    task: str
    policy: str
    """Policy in the form of ``--policy``; ``demonstrator`` for the task's own skills."""
    layouts: Layouts
    robot: str = ""
    """Name or path of a robot that replaces the task's own; empty for none."""
    identity: str = ""
    """Identity of the policy; set by :meth:`with_identity`."""
    execute: int = 8
    limit: int = 0
    """Largest number of steps per episode; set by :meth:`with_identity` if it is 0."""
    options: dict[str, str] = field(default_factory=dict)
    randomize: str = ""
    """Level of randomization; empty for the task's own."""
    only: tuple[str, ...] = ()
    """Randomizers of that level that are used; all if empty."""
    trained_on: str = ""
    """Folder of the policy's training data, whose view is used and whose conventions are compared."""
    view: SignalView = SignalView()
    """Signals of the policy; set by :meth:`with_identity`."""
    trained_layouts: int = 0
    """Number of layouts on which the policy was trained; set by :meth:`with_identity`."""
    device: str = "cpu"
    skills: tuple[str, ...] = ()

    def with_identity(self) -> EvaluationRequest:
        """Return the request with the policy's identity and view, and its step limit if none is given.

        Raises:
            InputError: The policy is unknown, its answers are shorter than the executed chunk, it was trained with
                conventions that differ from the task's, or the layouts come from another task.
        """
        if self.policy == DEMONSTRATOR and self.trained_on:
            raise InputError("the demonstrator is not trained", where=_TRAINED_ON, instead="leave it out")
        task = load_task(self.task, skill_folders=[Path(one) for one in self.skills], robot=self.robot)
        self.layouts.compare(task)
        if self.policy == DEMONSTRATOR:
            return replace(self, identity=DEMONSTRATOR, limit=self.limit or self.layouts.limit)
        policy = open_policy(self.policy, options=self.options | {"opening": _GREETING})
        try:
            if 0 < policy.horizon < self.execute:
                what = f"{self.execute} actions of each answer must be executed, but the policy gives {policy.horizon}"
                raise InputError(
                    what, where="--execute", instead=f"write {quote_words('--execute', policy.horizon)} or less"
                )
            for name in policy.needs.cameras or ():
                if name not in task.cameras:
                    what = f"the policy uses a camera '{name}', but {task.name} has {_listed(task.cameras)}"
                    raise InputError(what, where="--policy", instead="evaluate it on a task with that camera")
            source = layout_source(task.name, self.layouts.split, self.layouts.seed)
            trained = set(policy.trained_layouts.get(source, ()))
            return replace(
                self,
                identity=policy.identity,
                limit=self.limit or policy.limit or self.layouts.limit,
                view=self._view(policy.view, task),
                trained_layouts=len(trained.intersection(self.layouts.indices)),
            )
        finally:
            policy.close()

    def _view(self, stated: SignalView | None, task: Task) -> SignalView:
        """Return the policy's signals: those that it declares, or else those of its training data."""
        if not self.trained_on:
            return stated or SignalView()
        source = read_training_source(Path(self.trained_on), where=_TRAINED_ON)
        source.compare(task, where=_TRAINED_ON)
        if stated is not None and not stated.acts_like(source.view):
            what = f"the policy declares {stated}, but {self.trained_on} contains {source.view}"
            raise InputError(what, where=_TRAINED_ON, instead="give the data that it was trained on")
        return source.view

    def spec(self) -> CellSpec:
        """Return the specification of the run."""
        is_policy = self.policy != DEMONSTRATOR
        view = {"actions": self.view.actions, "rotation": self.view.rotation, "state": self.view.state}
        own = {"policy": self.policy, "execute": self.execute, "limit": self.limit, "options": self.options} | view
        return CellSpec(
            folder=str(self.folder.absolute()),
            task=self.task,
            robot=self.robot,
            pipeline=PIPELINE if is_policy else "",
            settings=(own if is_policy else {"attempts": 1, "images": "none"}) | {"keep_failures": True},
            choices={
                "policy": self.identity,
                "execute": str(self.execute),
                "limit": str(self.limit),
                "split": self.layouts.split,
            }
            | ({"randomize": self.randomize} if self.randomize else {})
            | ({"only": ",".join(self.only)} if self.only else {})
            | ({} if self.view.acts_like(SignalView()) else {"view": str(self.view)}),
            skills=self.skills,
            seed=self.layouts.seed,
            split=self.layouts.split,
            episodes=max(self.layouts.indices) + 1,
            indices=self.layouts.indices,
            device=self.device,
        )


def evaluate(
    asked: EvaluationRequest, *, serial: bool = False, workers: tuple[int, int] | None = None
) -> tuple[int, Evaluation | None]:
    """Run an evaluation, or resume it, and write its results.

    Args:
        asked: Request for the evaluation.
        serial: True to run in this process.
        workers: Numbers of planners and of renderers.

    Returns:
        The exit code, and the results; None instead of results if the run was refused or ended before any were
        written. A refused run leaves the results in the folder, which may be of another policy, as they are.
    """
    spec = asked.spec()
    spec = replace(spec, resources=replace(spec.resources, workers=workers))
    before = _attempt_count(asked.folder)
    code = _run(spec, serial=serial)
    if code == InputError.exit_code or not (asked.folder / "dataset.json").exists():
        return code, None
    if code == 0 and _attempt_count(asked.folder) == before:
        write_error("".join(f"{line}\n" for line in _nothing_ran(asked)))
    found = collect(asked.folder, _base(asked), indices=asked.layouts.indices)
    write_evaluation(asked.folder, found)
    if code == 0 and not found.is_valid:
        code = 1
    return code, found


def evaluate_with_control(
    asked: EvaluationRequest, *, serial: bool = False, workers: tuple[int, int] | None = None, videos: int = 0
) -> tuple[int, Evaluation | None, Evaluation | None]:
    """Evaluate, and write videos and the page; with a randomization level, first evaluate without any as a control.

    Args:
        asked: Request for the evaluation.
        serial: True to run in this process.
        workers: Numbers of planners and of renderers.
        videos: Number of failures to render, and of successes.

    Returns:
        The exit code, the results, and those of the control or None. With a level, each has its own subfolder.
    """
    if asked.randomize:
        check_own(asked.folder)
    control = None
    if asked.randomize and asked.randomize != UNPERTURBED:
        folder = part_folder(asked.folder.parent, UNPERTURBED)
        plain = replace(asked, folder=folder, randomize=UNPERTURBED, only=())
        code, control = evaluate(plain, serial=serial, workers=workers)
        if control is None:
            return code, None, None
    code, found = evaluate(asked, serial=serial, workers=workers)
    if found is not None:
        beside = [rate_bar("the same layouts, not randomized", control)] if control else []
        comparison = pair(found, control) if control else None
        show_evaluation(asked, found, beside=beside, comparison=comparison, videos=videos)
    return code, found, control


def show_evaluation(
    asked: EvaluationRequest,
    found: Evaluation,
    *,
    beside: Sequence[RateBar] = (),
    comparison: Comparison | None = None,
    facts: Sequence[tuple[str, str]] = (),
    curve: Curve | None = None,
    videos: int = 0,
) -> None:
    """Render some videos of an evaluation, and write its page; for the arguments see :func:`.write_page`."""
    task = load_task(asked.task, skill_folders=[Path(folder) for folder in asked.skills], robot=asked.robot)
    if asked.randomize:
        task = randomize_task(task, asked.randomize, only=asked.only)
    write_videos(asked.folder, task, choose_shown(found, count=videos), device=asked.device)
    write_page(asked.folder, found, beside=beside, comparison=comparison, facts=facts, curve=curve)


def _base(asked: EvaluationRequest) -> Evaluation:
    info = read_info(asked.folder)
    return Evaluation(
        task=info.task,
        task_hash=info.task_hash,
        policy=asked.identity,
        split=asked.layouts.split,
        seed=asked.layouts.seed,
        execute=asked.execute,
        limit=asked.limit,
        randomize=" ".join(filter(None, (asked.randomize, ",".join(asked.only)))),
        trained_layouts=asked.trained_layouts,
        inputs=dict(info.inputs),
    )


def _attempt_count(folder: Path) -> int:
    """Return the number of attempts in the folder of an evaluation, which may not exist yet."""
    if not (folder / FILE_NAME).is_file():
        return 0
    with closing(Ledger(folder, read_only=True)) as ledger:
        return ledger.row_count()


def _nothing_ran(asked: EvaluationRequest) -> Iterable[str]:
    """Yield the lines for an evaluation whose results were all there: weights may have changed unnoticed."""
    count = len(asked.layouts.indices)
    were = "the layout was" if count == 1 else f"all {count} layouts were"
    yield f"{were} evaluated before, with this policy ({asked.identity}); nothing ran"
    if function_of(asked.policy):
        yield "  its Python file, its 'files' and --checkpoint are its identity; other weights that it loads are not"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _run(spec: CellSpec, *, serial: bool) -> int:
    """Run a specification; return 0 even if not all episodes succeed, because failures are results of an evaluation."""
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
