"""Process that makes episodes of one task, run after run; shared data are loaded once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.open_policy import WEIGHTS_ONLY
from nimbus.datagen.random_streams import EVALUATION
from nimbus.datagen.stages import Request
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.records import EpisodeStatus
from nimbus.datagen.tasks.task import Task, load_task
from nimbus.runner.cell.missing_work import missing_work
from nimbus.runner.cell.start_run import dataset_of
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.job import job_of
from nimbus.runner.evaluation.results import Evaluation, collect, write_evaluation
from nimbus.runner.improvement.loop import SPLIT, Improvement, LayoutPart, demonstrations_hash, failed_indices
from nimbus.runner.system.threads import prepare_libraries

if TYPE_CHECKING:
    from nimbus.datagen.policies.state_policy import StatePolicy
    from nimbus.datagen.store.dataset import Dataset
    from nimbus.datagen.store.ledger.ledger import Ledger
    from nimbus.datagen.tasks.scene_assets import SceneAssets

Stop = Callable[[], bool]


def refuse_quarantined(ledger: Ledger, folder: Path) -> None:
    """Refuse a dataset in which a run of workers has given up an episode, for which a round would wait forever.

    Raises:
        InputError: The ledger has a quarantined episode.
    """
    if lost := ledger.episodes(EpisodeStatus.QUARANTINED):
        what = f"episode {lost[0].idx} is quarantined, and a round waits for all its episodes"
        raise InputError(what, where=str(folder), instead="remove this folder; the same command makes it again")


class EpisodeMaker:
    """Makes demonstrations, rollouts, corrections and evaluations of an improvement, each a run that can be continued.

    Args:
        loop: The improvement.
    """

    def __init__(self, loop: Improvement) -> None:
        self.loop = loop
        self._assets: SceneAssets | None = None

    @cached_property
    def _task(self) -> Task:
        task = load_task(self.loop.settings.task)
        prepare_libraries()
        return task

    def make(self, spec: CellSpec, *, stop: Stop = lambda: False) -> None:
        """Make the missing episodes of a run, until ``stop`` returns True for more urgent work."""
        from nimbus.datagen.load.scene_loader import assets_of

        job = job_of(spec, self._task, assets=self._assets)
        self._assets = assets_of(job.context)
        began = time.monotonic()
        with dataset_of(job.origin, spec.folder) as dataset:
            refuse_quarantined(dataset.ledger, Path(spec.folder))
            run = dataset.ledger.start_run(mode="serial", cores=1, settings={"seed": spec.seed})
            with job.chain(dataset) as chain:
                for _ in chain.run(_requests(dataset, spec, stop)):
                    pass
            dataset.ledger.end_run(run, state="done", wall_seconds=time.monotonic() - began)

    def demonstrate(self) -> None:
        """Make the demonstrations."""
        self.make(self._demonstrations())

    def roll_out_part(self, number: int, part: LayoutPart, *, stop: Stop = lambda: False) -> None:
        """Make the rollouts of a part of a round, until ``stop`` returns True."""
        version = self.loop.acting_version(number)
        spec = self._policy_run(part.rollouts, version, number=number, split=SPLIT, indices=part.indices)
        self.make(spec, stop=stop)

    def correct(self, number: int) -> None:
        """Make corrections of the rollouts of a round that have failed so far."""
        loop = self.loop
        if not (indices := tuple(failed_indices(loop, number))):
            return
        ancestors = self._ancestors("correction", number, loop.acting_version(number))
        self.make(
            CellSpec(
                folder=str(loop.corrections(number).absolute()),
                task=loop.settings.task,
                pipeline="correction",
                settings={"images": "none", "rollouts": str(loop.rollouts(number).absolute())},
                choices={"policy": ancestors["policy"], "split": SPLIT},
                ancestors=ancestors,
                seed=loop.settings.seed,
                split=SPLIT,
                episodes=max(indices) + 1,
                indices=indices,
            )
        )

    def evaluate_part(self, version: int, part: LayoutPart, *, stop: Stop = lambda: False) -> None:
        """Evaluate a version on the held-out layouts of a part, until ``stop`` returns True."""
        spec = self._policy_run(part.rollouts, version, number=version, split=EVALUATION, indices=part.indices)
        self.make(spec, stop=stop)

    def finish_evaluation(self, version: int) -> None:
        """Write the results of a version whose parts are all done; a repeated call writes the same results."""
        parts = self.loop.evaluation_parts(version)
        found = [self._results(version, part) for part in parts]
        whole = replace(
            found[0],
            layouts=tuple(layout for one in found for layout in one.layouts),
            is_repeatable=all(one.is_repeatable for one in found),
        )
        write_evaluation(self.loop.evaluation(version), whole)

    def _results(self, version: int, part: LayoutPart) -> Evaluation:
        folder = part.rollouts
        spec = self._policy_run(folder, version, number=version, split=EVALUATION, indices=part.indices)
        info, own = read_info(folder), spec.settings
        base = Evaluation(
            task=info.task,
            task_hash=info.task_hash,
            policy=spec.choices["policy"],
            split=spec.split,
            seed=spec.seed,
            execute=own["execute"],
            limit=own["limit"],
            inputs=dict(info.inputs),
        )
        return collect(folder, base, indices=part.indices)

    def _demonstrations(self) -> CellSpec:
        settings = self.loop.settings
        return CellSpec(
            folder=str(self.loop.demonstrations.absolute()),
            task=settings.task,
            settings={"images": "none"},
            ancestors={"role": "demonstration", "round": "0"} | self._proposal(),
            seed=settings.seed,
            episodes=settings.episodes,
        )

    def _policy_run(self, folder: Path, version: int, *, number: int, split: str, indices: tuple[int, ...]) -> CellSpec:
        path = self.loop.policy(version)
        policy = _open(path)
        execute, limit = self.loop.settings.execute, policy.limit
        own = {"policy": f"{WEIGHTS_ONLY}:{path.absolute()}", "execute": execute, "limit": limit, "options": {}}
        return CellSpec(
            folder=str(folder.absolute()),
            task=self.loop.settings.task,
            pipeline="evaluation",
            settings=own | {"images": "none", "keep_failures": True},
            choices={"policy": policy.identity, "execute": str(execute), "limit": str(limit), "split": split},
            ancestors=self._ancestors("evaluation" if split == EVALUATION else "rollout", number, version),
            seed=self.loop.settings.seed,
            split=split,
            episodes=max(indices) + 1,
            indices=indices,
        )

    def _ancestors(self, role: str, number: int, version: int) -> dict[str, str]:
        own = {"role": role, "round": str(number), "policy": _open(self.loop.policy(version)).identity}
        return own | {"demonstration": demonstrations_hash(self.loop)} | self._proposal()

    def _proposal(self) -> dict[str, str]:
        return {"proposal": self.loop.settings.proposal} if self.loop.settings.proposal else {}


def _open(folder: Path) -> StatePolicy:
    from nimbus.datagen.policies.state_policy import StatePolicy

    return StatePolicy(folder)


def _requests(dataset: Dataset, spec: CellSpec, stop: Stop) -> Iterator[Request]:
    for item in missing_work(dataset.ledger, spec):
        if stop():
            return
        yield Request(index=item.index, variants=item.variants)
