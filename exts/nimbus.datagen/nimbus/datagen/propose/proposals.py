"""Proposals: conversion of goal graphs to task files that pass the doctor and succeed in physics.

Each graph is planned, packed, checked by the doctor, and tried in three layouts; two successes accept it. Findings are
returned to the source of the graph, which may repair it for a few rounds. Limits are counts, so that equal seeds give
equal files.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.examine import look_for
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.scene_files import is_path
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.propose.catalogue import Catalogue
from nimbus.datagen.propose.difficulty import CURRICULUM, curriculum, curriculum_text
from nimbus.datagen.propose.goal_graph import GoalGraph
from nimbus.datagen.propose.packing import PackedPlaces, pack
from nimbus.datagen.propose.planner import order_goals, plan_task
from nimbus.datagen.propose.task_text import write_task
from nimbus.datagen.propose.work_area import WorkArea, find_work_area
from nimbus.datagen.random_streams import generator
from nimbus.datagen.tasks.task import parse_task
from nimbus.datagen.usd.stage import StageInfo, read_stage

LOG = "proposals.jsonl"
LAYOUTS = 3
"""Largest number of layouts tried; a task is accepted if more than half succeed."""
ROUNDS = 3
"""Largest number of repairs of a graph."""
_DRAWS = 8
"""Largest number of graphs drawn per requested task."""


@dataclass(frozen=True)
class AttemptResult:
    """Outcome of one attempt in physics."""

    success: bool
    phase: str = ""
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Trial:
    """Result of checking and trying one graph."""

    graph: GoalGraph
    stage: str
    """Stage at which the trial ended: ``plan``, ``pack``, ``doctor``, ``physics`` or ``accepted``."""
    findings: tuple[Diagnostic, ...] = ()
    attempts: tuple[AttemptResult, ...] = ()
    text: str = ""
    """Text of the task file."""
    steps: int = 0
    plan: tuple[Any, ...] = ()
    """Steps of the task file."""
    seconds: float = field(default=0.0, compare=False)
    """CPU time of the trial [s]."""

    def messages(self) -> list[str]:
        """Return the problems of the graph, one line each."""
        failed = [one for one in self.attempts if not one.success]
        return [str(found) for found in self.findings] + [f"{one.phase}: {one.reason}: {one.detail}" for one in failed]


class GraphSource(Protocol):
    """Source of goal graphs: the grammar, or a language model."""

    def draw(self, index: int) -> GoalGraph | None:
        """Return the graph with the given index; None if there is none."""
        ...

    def repair(self, trial: Trial, *, index: int, attempt: int) -> GoalGraph | None:
        """Return a graph that replaces a refused one; None to give up."""
        ...

    def notes(self) -> Iterable[Mapping[str, Any]]:
        """Return the source's own steps since the last call, for the log."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProposalRequest:
    """Settings of a run of proposals."""

    count: int
    seed: int
    robot: str = "panda"
    scene: str = "table"
    planner: str = "ompl"
    uses_physics: bool = True
    rounds: int = ROUNDS
    layouts: int = LAYOUTS
    folder: Path = Path()
    """Folder of the task files; they contain paths of libraries relative to it."""


class Workshop:
    """Robot, scene and kinds, opened once for all proposals.

    Args:
        request: Settings of the run.
        catalogue: Catalogue of kinds for the robot.
        stage: Scene of the tasks.
        area: Area of the scene's table where the robot works well.
        instructions: Function that returns the wordings of a graph; without wordings, a plain one is used.
    """

    def __init__(
        self,
        request: ProposalRequest,
        catalogue: Catalogue,
        stage: StageInfo,
        area: WorkArea,
        instructions: Callable[[GoalGraph], Iterable[str]] = lambda graph: (),
    ) -> None:
        self.request, self.catalogue, self.stage, self.area = request, catalogue, stage, area
        self._instructions = instructions
        self._libraries = {
            name: _path_from(request.folder, opened) if is_path(opened) else opened
            for name, opened in catalogue.opened.items()
        }

    @classmethod
    def open(
        cls, request: ProposalRequest, catalogue: Catalogue, instructions: Callable[[GoalGraph], Iterable[str]]
    ) -> Workshop:
        """Open the scene and find the work area."""
        stage = read_stage(request.scene, where="--scene")
        return cls(request, catalogue, stage, find_work_area(stage, catalogue.robot), instructions)

    def try_graph(self, graph: GoalGraph, *, index: int, attempt: int) -> Trial:
        """Plan, pack and check a graph, and try it in physics.

        Args:
            graph: Graph to try.
            index: Number of the graph; its positions depend on it.
            attempt: Number of the repair.
        """
        begin = time.process_time()
        trial = self._examined(graph, index, attempt)
        return Trial(**{**trial.__dict__, "seconds": time.process_time() - begin})

    def has_room(self, graph: GoalGraph, index: int, attempt: int) -> bool:
        """Return True if the things of a graph fit on the table; arguments as for :meth:`try_graph`."""
        try:
            self._pack(graph, index, attempt)
        except InputError:
            return False
        return True

    def _pack(self, graph: GoalGraph, index: int, attempt: int) -> PackedPlaces:
        rng = generator(self.request.seed, "propose", index, attempt, "places")
        return pack(graph, self.catalogue, self.area, self.stage, rng=rng)

    def _examined(self, graph: GoalGraph, index: int, attempt: int) -> Trial:
        stage, text, steps, written = "plan", "", 0, ()
        try:
            graph.check()
            plan = plan_task(graph, self.catalogue, arms=len(self.catalogue.robot.arms))
            stage, steps, written = "pack", len(plan.steps), plan.steps
            places = self._pack(graph, index, attempt)
            goals, words = order_goals(graph), self._instructions(graph)
            top = self.stage.surfaces[self.area.surface].upper[2]
            text = write_task(
                graph, plan, places, self.catalogue, goals=goals, top=top, instructions=words, libraries=self._libraries
            )
            stage = "doctor"
            task = parse_task(text, name=f"proposal_{index}", folder=self.request.folder)
            case = Case(task, load_assets(task), seed=self.request.seed)
        except InputError as error:
            return Trial(graph, stage, (error.diagnostic,), text=text, steps=steps, plan=written)
        if findings := look_for(case):
            return Trial(graph, "doctor", tuple(findings), text=text, steps=steps, plan=written)
        attempts = self._attempt(case) if self.request.uses_physics else ()
        good = not self.request.uses_physics or sum(one.success for one in attempts) > self.request.layouts // 2
        stage = "accepted" if good else "physics"
        return Trial(graph, stage, attempts=attempts, text=text, steps=steps, plan=written)

    def _attempt(self, case: Case) -> tuple[AttemptResult, ...]:
        """Attempt layouts until it is decided whether the task is accepted."""
        done: list[AttemptResult] = []
        for index in range(self.request.layouts):
            if max(sum(one.success for one in done), sum(not one.success for one in done)) > self.request.layouts // 2:
                break
            streams = partial(generator, case.seed, index, "attempt", 0)
            layout, planner = case.layouts[index], self.request.planner
            outcome = run_attempt(case.task, case.simulation, layout, streams=streams, planner=planner).outcome
            done.append(AttemptResult(outcome.success, outcome.phase, str(outcome.reason), outcome.detail))
        return tuple(done)


@dataclass
class Proposal:
    """Graph of a source with the results of all its trials; it has no trials if no reply of a model was usable."""

    index: int
    trials: list[Trial] = field(default_factory=list)
    name: str = ""
    """Name of the task file; empty for a refused graph."""
    unusable: tuple[str, ...] = ()
    """Reasons why replies of a model gave no graph."""

    @property
    def accepted(self) -> Trial | None:
        """Accepted trial, or None."""
        return self.trials[-1] if self.name else None


def propose(workshop: Workshop, source: GraphSource, folder: Path) -> Iterator[Proposal]:
    """Write task files, a log of all steps and a curriculum into a folder, and yield each proposal.

    Args:
        workshop: Robot, scene and kinds.
        source: Source that draws graphs and repairs them.
        folder: Empty folder for the files.
    """
    request, seen, made, lines = workshop.request, set[str](), 0, list[str]()
    done: list[Proposal] = []

    def write_log() -> None:
        write_atomic(folder / LOG, "".join(lines), durable=False, shared=True)

    def noted(graph: GoalGraph | None, proposal: Proposal) -> GoalGraph | None:
        for note in source.notes():
            lines.append(f"{json.dumps(note)}\n")
            proposal.unusable += tuple(found["what"] for found in note["findings"])
        return graph

    for index in range(_DRAWS * request.count + _DRAWS):
        if made == request.count:
            return
        proposal = Proposal(index)
        graph = noted(source.draw(index), proposal)
        for attempt in range(request.rounds + 1):
            if graph is None:
                break
            if graph.canonical() in seen:
                lines.append(_line(index, attempt, "duplicate", graph))
                break
            trial = workshop.try_graph(graph, index=index, attempt=attempt)
            proposal.trials.append(trial)
            lines.append(_line(index, attempt, trial.stage, graph, trial))
            write_log()
            if trial.stage == "accepted":
                seen.add(graph.canonical())
                proposal.name = f"task_{made:04d}"
                made += 1
                write_atomic(folder / f"{proposal.name}.yaml", trial.text, durable=False, shared=True)
                break
            if attempt < request.rounds:
                graph = noted(source.repair(trial, index=index, attempt=attempt), proposal)
        write_log()
        if proposal.trials:
            done.append(proposal)
            entries = curriculum(done, workshop.catalogue)
            write_atomic(folder / CURRICULUM, curriculum_text(entries), durable=False, shared=True)
        if proposal.trials or proposal.unusable:
            yield proposal


def _path_from(folder: Path, library: str) -> str:
    """Return the path of a library relative to a folder; the path of a folder keeps its trailing slash."""
    path = os.path.relpath(os.path.realpath(library), os.path.realpath(folder))
    return f"{path}/" if Path(library).is_dir() else path


def _line(index: int, attempt: int, stage: str, graph: GoalGraph, trial: Trial | None = None) -> str:
    """Return one line of the log."""
    entry: dict[str, Any] = {"index": index, "round": attempt, "stage": stage, "canonical": graph.canonical()}
    entry["graph"] = graph.to_plain()
    if trial is not None:
        entry["steps"] = trial.steps
        entry["findings"] = [
            {"check": found.check, "field": found.field, "what": found.what, "instead": found.instead}
            for found in trial.findings
        ]
        entry["attempts"] = [asdict(one) for one in trial.attempts]
    return json.dumps(entry) + "\n"
